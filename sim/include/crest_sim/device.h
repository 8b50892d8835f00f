// The in-process interface: load an object, launch a kernel, read the report.
//
//   auto memory = crest_sim::Memory::create();
//   auto device = crest_sim::Device::create(crest_sim::Arch::kGfx942, *memory);
//   auto module = (*device)->load(bytes_of_the_code_object);
//   crest_sim::LaunchConfig config{.grid = {n / 256}, .block = {256}};
//   crest_sim::LaunchResult result = (*device)->launch(**module, "vadd", config, args.bytes());
//   if (!result.ok) puts(result.fault.to_string().c_str());
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "crest_sim/code_object.h"
#include "crest_sim/memory.h"
#include "crest_sim/observer.h"
#include "crest_sim/result.h"
#include "crest_sim/target.h"

namespace crest_sim {

enum class FaultKind : uint8_t {
  kNone,
  kLaunch,
  kUnknownInstruction,
  kRegisterRange,
  kGlobalAddress,
  kLdsAddress,
  kScratchAddress,
  kBranchTarget,
  kTrap,
  kDeadlock,
  kCheck,
};

/// Why a launch stopped.
struct Fault {
  FaultKind kind = FaultKind::kNone;
  std::string message;
  std::string kernel;
  uint64_t pc = 0;  ///< byte offset in the code section
  std::string disassembly;
  Dim3 workgroup{0, 0, 0};
  int wave = -1;
  int lane = -1;
  uint64_t address = 0;

  /// One line with all of the above.
  std::string to_string() const;
};

struct LaunchConfig {
  Dim3 grid;   ///< in workgroups
  Dim3 block;  ///< in work-items; at most 1024 together
  uint32_t dynamic_lds_bytes = 0;
  int threads = 0;                          ///< host threads; 0: one per core. Results do not depend on it.
  bool strict_matrix = false;               ///< matrix arithmetic by the published bit-accurate CDNA3 rule
  uint32_t quantum = 16;                    ///< instructions per turn of a wave, 1 … 16
  uint32_t extra_scratch_bytes = 0;         ///< per lane, for kernels with a dynamic stack
  uint64_t max_wave_instructions = 0;       ///< per workgroup; beyond it the launch fails as hanging. 0: no limit
  uint64_t visible_devices = ~uint64_t(0);  ///< bit per ordinal: whose memory the kernel may access
  std::vector<Observer*> observers;
};

struct LaunchResult {
  bool ok = false;
  Fault fault;
  uint64_t wave_instructions = 0;
  double seconds = 0;
};

/// An object placed in a device's memory.
class Module {
 public:
  const CodeObject& object() const { return *object_; }
  uint64_t image_base() const { return base_; }
  /// Device address of a variable or function, 0 if there is none.
  uint64_t symbol_address(std::string_view name, uint64_t* bytes = nullptr) const;
  ~Module();

 private:
  friend class Device;
  Module() = default;
  struct Patched;
  const Instruction* code_for(const Kernel& kernel) const;

  std::shared_ptr<const CodeObject> object_;
  std::shared_ptr<Memory> memory_;
  uint64_t base_ = 0;
  std::unique_ptr<Patched> patched_;
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> create(Arch arch, std::shared_ptr<Memory> memory, int ordinal = 0);

  const TargetInfo& target() const { return *target_; }
  Memory& memory() { return *memory_; }
  const std::shared_ptr<Memory>& shared_memory() const { return memory_; }

  /// A plain or bundled code object (see extract_code_object).
  Result<std::shared_ptr<Module>> load(std::span<const uint8_t> data);
  /// Why a launch would be refused before it starts; empty if it would not.
  std::string refusal(const Kernel& kernel, const LaunchConfig& config, size_t argument_bytes) const;
  /// `arguments` are the explicit arguments laid out as the kernel's metadata says; hidden ones are appended.
  LaunchResult launch(const Module& module, std::string_view kernel, const LaunchConfig& config,
                      std::span<const uint8_t> arguments);

 private:
  Device(const TargetInfo& target, std::shared_ptr<Memory> memory, int ordinal)
      : target_(&target), memory_(std::move(memory)), ordinal_(ordinal) {}
  Result<uint64_t> take_kernarg(size_t bytes);

  const TargetInfo* target_;
  std::shared_ptr<Memory> memory_;
  int ordinal_;
  std::mutex kernarg_mutex_;
  std::map<size_t, std::vector<uint64_t>> idle_kernargs_;  // by size: launches of one kernel use the same places
};

/// Packs kernel arguments with their natural alignment.
class Arguments {
 public:
  template <class T>
  Arguments& add(const T& value) {
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace crest_sim
