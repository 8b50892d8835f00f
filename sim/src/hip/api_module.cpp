// Modules and launches.
#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "hip/graph.h"
#include "hip/occupancy.h"
#include "hip/registered.h"

using namespace crest_sim::hip;

namespace {

hipError_t load(Machine& m, hipModule_t* out, std::span<const uint8_t> image) {
  std::shared_ptr<LoadedModule> module;
  if (hipError_t e = load_module(m, this_thread().device, image, module)) return e;
  std::lock_guard lock(m.mutex);
  *out = reinterpret_cast<hipModule_t>(module.get());
  m.modules.add(std::move(module));
  return hipSuccess;
}

template <class Body>
hipError_t with_module(hipModule_t handle, Body&& body) {
  return call([&](Machine& m) {
    std::lock_guard lock(m.mutex);
    auto module = m.modules.find(handle);
    return module ? body(m, module) : hipErrorInvalidHandle;
  });
}

struct LaunchEvents {
  hipEvent_t start = nullptr, stop = nullptr;
};

hipError_t record(Machine& m, const std::shared_ptr<Stream>& s, hipEvent_t handle) {
  if (!handle) return hipSuccess;
  auto event = m.events.find(handle);
  if (!event) return hipErrorInvalidHandle;
  if (s->capture) return hipErrorStreamCaptureUnsupported;
  event->capture = nullptr;
  event->mark = m.submit(s, nullptr);
  return hipSuccess;
}

hipError_t launch(Machine& m, const std::shared_ptr<Function>& function, dim3 grid, dim3 block, size_t shared_bytes,
                  hipStream_t stream, void** parameters, void** extra, bool cooperative = false,
                  LaunchEvents events = {}) {
  KernelOperation k;
  if (hipError_t e = make_launch(m, function, grid, block, shared_bytes, parameters, extra, k)) return e;
  if (cooperative) {
    const DeviceState& d = *m.devices[static_cast<size_t>(function->module->device)];
    uint64_t threads = uint64_t(block.x) * block.y * block.z, blocks = uint64_t(grid.x) * grid.y * grid.z;
    if (blocks > co_resident_blocks(d, *function->kernel, threads, shared_bytes))
      return hipErrorCooperativeLaunchTooLarge;
    for (const auto& a : function->kernel->arguments)
      if (a.value_kind == "hidden_multigrid_sync_arg") {
        explain_once(fmt::format("kernel {}: grid synchronisation through the device library is not supported",
                                 function->kernel->name));
        return hipErrorNotSupported;
      }
  }
  std::unique_lock lock(m.mutex);
  auto s = m.stream(stream);
  if (!s) return hipErrorInvalidHandle;
  if (hipError_t e = record(m, s, events.start)) return e;
  if (hipError_t e = enqueue(m, lock, s, std::move(k))) return e;
  return record(m, s, events.stop);
}

std::shared_ptr<Function> function_of(Machine& m, hipFunction_t handle) {
  std::lock_guard lock(m.mutex);
  return m.functions.find(handle);
}

hipError_t launch_symbol(const void* function, dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream,
                         void** parameters, bool cooperative = false, LaunchEvents events = {}) {
  return call([&](Machine& m) {
    std::shared_ptr<Function> f;
    {
      // The kernel is wanted for the stream's device, which need not be the current one.
      std::unique_lock lock(m.mutex);
      auto s = m.stream(stream);
      if (!s) return hipErrorInvalidHandle;
      lock.unlock();
      int current = this_thread().device;
      this_thread().device = s->device;
      hipError_t e = find_kernel(m, function, f);
      this_thread().device = current;
      if (e) return e;
    }
    return launch(m, f, grid, block, shared_bytes, stream, parameters, nullptr, cooperative, events);
  });
}

}  // namespace

extern "C" {

hipError_t hipModuleLoad(hipModule_t* module, const char* file) {
  return call([&](Machine& m) {
    if (!module || !file) return hipErrorInvalidValue;
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      explain(fmt::format("{}: cannot be read", file));
      return hipErrorFileNotFound;
    }
    std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    return load(m, module, bytes);
  });
}
hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
  return call([&](Machine& m) {
    if (!module || !image) return hipErrorInvalidValue;
    size_t bytes = image_bytes(image);
    if (!bytes) {
      explain("hipModuleLoadData: neither an ELF file nor an offload bundle");
      return hipErrorInvalidImage;
    }
    return load(m, module, {static_cast<const uint8_t*>(image), bytes});
  });
}
hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned, void*, void**) {
  return hipModuleLoadData(module, image);
}
hipError_t hipModuleUnload(hipModule_t handle) {
  return call([&](Machine& m) {
    std::unique_lock lock(m.mutex);
    auto module = m.modules.find(handle);
    if (!module) return hipErrorInvalidHandle;
    m.wait_all(lock, module->device);
    m.functions.remove_if([&](const Function& f) { return f.module == module; });
    m.modules.remove(handle);
    return hipSuccess;
  });
}
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
  return with_module(module, [&](Machine& m, const std::shared_ptr<LoadedModule>& x) {
    if (!function || !name) return hipErrorInvalidValue;
    std::shared_ptr<Function> f;
    if (hipError_t e = find_function(m, x, name, f)) return e;
    *function = reinterpret_cast<hipFunction_t>(f.get());
    return hipSuccess;
  });
}
hipError_t hipModuleGetFunctionCount(unsigned* count, hipModule_t module) {
  return with_module(module, [&](Machine&, const std::shared_ptr<LoadedModule>& x) {
    if (!count) return hipErrorInvalidValue;
    *count = static_cast<unsigned>(x->code->object().kernels().size());
    return hipSuccess;
  });
}
hipError_t hipModuleGetGlobal(hipDeviceptr_t* pointer, size_t* bytes, hipModule_t module, const char* name) {
  return with_module(module, [&](Machine&, const std::shared_ptr<LoadedModule>& x) {
    if (!name) return hipErrorInvalidValue;
    uint64_t size = 0, address = x->code->symbol_address(name, &size);
    if (!address) return hipErrorNotFound;
    if (pointer) *pointer = reinterpret_cast<void*>(address);
    if (bytes) *bytes = size;
    return hipSuccess;
  });
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                 unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                 hipStream_t stream, void** parameters, void** extra) {
  return call([&](Machine& m) {
    return launch(m, function_of(m, function), {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
                  stream, parameters, extra);
  });
}
hipError_t hipExtModuleLaunchKernel(hipFunction_t function, uint32_t global_x, uint32_t global_y, uint32_t global_z,
                                    uint32_t local_x, uint32_t local_y, uint32_t local_z, size_t shared_bytes,
                                    hipStream_t stream, void** parameters, void** extra, hipEvent_t start,
                                    hipEvent_t stop, uint32_t) {
  return call([&](Machine& m) {
    if (!local_x || !local_y || !local_z) return hipErrorInvalidConfiguration;
    if (global_x % local_x || global_y % local_y || global_z % local_z) {
      explain_once("hipExtModuleLaunchKernel: grids that end inside a workgroup are not supported");
      return hipErrorNotSupported;
    }
    return launch(m, function_of(m, function), {global_x / local_x, global_y / local_y, global_z / local_z},
                  {local_x, local_y, local_z}, shared_bytes, stream, parameters, extra, false, {start, stop});
  });
}
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                            hipStream_t stream, void** parameters) {
  return call([&](Machine& m) {
    return launch(m, function_of(m, function), {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes,
                  stream, parameters, nullptr, true);
  });
}
hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters, size_t shared_bytes,
                           hipStream_t stream) {
  return launch_symbol(function, grid, block, shared_bytes, stream, parameters);
}
hipError_t hipExtLaunchKernel(const void* function, dim3 grid, dim3 block, void** parameters, size_t shared_bytes,
                              hipStream_t stream, hipEvent_t start, hipEvent_t stop, int) {
  return launch_symbol(function, grid, block, shared_bytes, stream, parameters, false, {start, stop});
}
hipError_t hipLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** parameters,
                                      unsigned shared_bytes, hipStream_t stream) {
  return launch_symbol(function, grid, block, shared_bytes, stream, parameters, true);
}
hipError_t hipGetFuncBySymbol(hipFunction_t* function, const void* symbol) {
  return call([&](Machine& m) {
    if (!function) return hipErrorInvalidValue;
    std::shared_ptr<Function> f;
    if (hipError_t e = find_kernel(m, symbol, f)) return e;
    *function = reinterpret_cast<hipFunction_t>(f.get());
    return hipSuccess;
  });
}
}
