// What can be put into a stream or become a node of a graph.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "hip/machine.h"

namespace crest_sim::hip {

struct KernelOperation {
  std::shared_ptr<Function> function;
  LaunchConfig config;
  std::vector<uint8_t> arguments;
  void* extra[5] = {};  ///< storage of hipGraphKernelNodeGetParams
  size_t packed_bytes = 0;
};
struct CopyOperation {  ///< rows of `width` bytes
  uint8_t* to = nullptr;
  const uint8_t* from = nullptr;
  size_t width = 0, height = 1, depth = 1;
  size_t to_pitch = 0, from_pitch = 0, to_slice = 0, from_slice = 0;
  hipMemcpyKind kind = hipMemcpyDefault;
};
struct FillOperation {
  uint8_t* to = nullptr;
  uint32_t value = 0;
  uint32_t element_bytes = 1;
  size_t width = 0, height = 1, pitch = 0;  ///< width in elements, pitch in bytes
};
struct HostOperation {
  std::function<void()> function;
  hipHostNodeParams parameters{};
};
struct EmptyOperation {};
struct EventOperation {
  std::shared_ptr<Event> event;
  bool record = true;
};
struct FreeOperation {
  void* pointer = nullptr;
};
struct ChildOperation {
  std::shared_ptr<Graph> graph;
};
using Operation = std::variant<EmptyOperation, KernelOperation, CopyOperation, FillOperation, HostOperation,
                               EventOperation, FreeOperation, ChildOperation>;

/// Does it now, on this thread.
hipError_t execute(Machine& machine, const Operation& operation);

/// Checks that need no waiting: ranges against allocations, the launch against the kernel. Explains a refusal.
hipError_t check(Machine& machine, const Operation& operation);

/// Into the stream, or into the graph that the stream is capturing. Checks first. `mark` receives the task, null when
/// captured.
hipError_t enqueue(Machine& machine, std::unique_lock<std::mutex>& lock, const std::shared_ptr<Stream>& stream,
                   Operation operation, Mark* mark = nullptr);

/// As enqueue; then waits.
hipError_t perform(Machine& machine, const std::shared_ptr<Stream>& stream, Operation operation);

/// Explicit arguments from either form of a launch call.
hipError_t pack_arguments(const Kernel& kernel, void** parameters, void** extra, std::vector<uint8_t>& out);

/// The launch that hipModuleLaunchKernel and its relatives ask for, checked.
hipError_t make_launch(Machine& machine, const std::shared_ptr<Function>& function, dim3 grid, dim3 block,
                       size_t shared_bytes, void** parameters, void** extra, KernelOperation& out);

/// hipFree and relatives: the memory and its entry.
hipError_t release(Machine& machine, void* pointer);

/// Drops what the program's own kernels and variables have on a device; the next use loads them again.
void forget_registered(int device);

/// Whether an address lies in memory that devices own or that is pinned; otherwise it is the program's own.
bool is_known_memory(Machine& machine, const void* pointer);

}  // namespace crest_sim::hip
