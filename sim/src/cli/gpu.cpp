// The same launch through a HIP library: a real device, or the simulator's own library.
#include <dlfcn.h>
#include <fmt/format.h>

#include "cli/session.h"
#include "crest_sim/hip/hip_runtime_api.h"

namespace crest_sim::cli {
namespace {

/// The calls that are needed, from the library.
struct Hip {
#define CREST_SIM_CALL(name) decltype(&::name) name = nullptr;
#define CREST_SIM_CALLS(X)                                                                                         \
  X(hipInit)                                                                                                       \
  X(hipMemcpyHtoD)                                                                                                 \
  X(hipMemcpyDtoH)                                                                                                 \
  X(hipFree)                                                                                                       \
  X(hipModuleLoadData)                                                                                             \
  X(hipModuleUnload) X(hipModuleGetFunction) X(hipModuleLaunchKernel) X(hipDeviceSynchronize) X(hipGetErrorString) \
      X(hipGetDevicePropertiesR0600)
  CREST_SIM_CALLS(CREST_SIM_CALL)
#undef CREST_SIM_CALL
  hipError_t (*hipMalloc)(void**, size_t) = nullptr;

  Status open(const std::string& path) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return Error{fmt::format("--gpu {}: {}", path, dlerror())};
    std::string missing;
    auto find = [&](const char* name, auto& out) {
      out = reinterpret_cast<std::remove_reference_t<decltype(out)>>(dlsym(library, name));
      if (!out) missing = name;
    };
#define CREST_SIM_CALL(name) find(#name, name);
    CREST_SIM_CALLS(CREST_SIM_CALL)
#undef CREST_SIM_CALL
#undef CREST_SIM_CALLS
    find("hipMalloc", hipMalloc);
    if (!missing.empty()) return Error{fmt::format("--gpu {}: it has no {}", path, missing)};
    return Unit{};
  }
};

/// Replaces the simulator's buffer addresses in the argument segment by the device's. Addresses are found by value: a
/// buffer's own address occurs nowhere else.
void relocate(std::vector<uint8_t>& arguments, uint64_t from, uint64_t to) {
  for (size_t at = 0; at + 8 <= arguments.size(); at += 4) {
    uint64_t value;
    std::memcpy(&value, &arguments[at], 8);
    if (value == from) std::memcpy(&arguments[at], &to, 8);
  }
}

}  // namespace

Result<bool> compare_with_gpu(const std::string& library, const Launch& launch,
                              const std::vector<std::vector<uint8_t>>& inputs, double atol, double rtol) {
  Hip hip;
  if (auto s = hip.open(library); !s) return Error{s.error()};
  std::string failed;
  auto ok = [&](hipError_t e, const char* what) {
    if (e == hipSuccess) return true;
    if (failed.empty()) failed = fmt::format("--gpu {}: {}: {}", library, what, hip.hipGetErrorString(e));
    return false;
  };
  hipDeviceProp_tR0600 properties{};
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  std::vector<void*> device(inputs.size());
  std::vector<uint8_t> arguments = launch.arguments.bytes;
  bool good = ok(hip.hipInit(0), "hipInit") &&
              ok(hip.hipGetDevicePropertiesR0600(&properties, 0), "hipGetDeviceProperties") &&
              ok(hip.hipModuleLoadData(&module, launch.object.file.data()), "hipModuleLoadData") &&
              ok(hip.hipModuleGetFunction(&function, module, launch.kernel->name.c_str()), "hipModuleGetFunction");
  for (size_t n = 0; good && n < inputs.size(); ++n) {
    good = ok(hip.hipMalloc(&device[n], std::max<size_t>(inputs[n].size(), 1)), "hipMalloc") &&
           (inputs[n].empty() || ok(hip.hipMemcpyHtoD(device[n], inputs[n].data(), inputs[n].size()), "hipMemcpyHtoD"));
    relocate(arguments, launch.arguments.buffers[n].address, reinterpret_cast<uint64_t>(device[n]));
  }
  size_t bytes = arguments.size();
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, arguments.data(), HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   HIP_LAUNCH_PARAM_END};
  const LaunchConfig& c = launch.config;
  good = good &&
         ok(hip.hipModuleLaunchKernel(function, c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z,
                                      c.dynamic_lds_bytes, nullptr, nullptr, extra),
            "hipModuleLaunchKernel") &&
         ok(hip.hipDeviceSynchronize(), "hipDeviceSynchronize");
  bool equal = true;
  for (size_t n = 0; good && n < inputs.size(); ++n) {
    const PlacedBuffer& b = launch.arguments.buffers[n];
    std::vector<uint8_t> got(b.bytes);
    good = got.empty() || ok(hip.hipMemcpyDtoH(got.data(), device[n], got.size()), "hipMemcpyDtoH");
    if (!good) break;
    Difference d = compare(b.format, b.contents(), got, atol, rtol);
    fmt::print("argument {}: {} of {} elements differ from {}, largest difference {:.3g} (relative {:.3g})\n",
               b.argument, d.different, b.bytes / type_bytes(b.format.type), properties.gcnArchName, d.max_absolute,
               d.max_relative);
    equal = equal && d.beyond == 0;
  }
  for (void* p : device)
    if (p) hip.hipFree(p);
  if (module) hip.hipModuleUnload(module);
  if (!failed.empty()) return Error{failed};
  return equal;
}

}  // namespace crest_sim::cli
