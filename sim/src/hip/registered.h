// Kernels and variables that a program carries itself (fat binaries in its ELF file), known by the addresses of their
// host stand-ins.
#pragma once

#include "hip/operation.h"

namespace crest_sim::hip {

/// Bytes of an ELF file or offload bundle in memory, read from its own headers; 0 if it is neither.
size_t image_bytes(const void* image);

/// Loads for a device; explains what is wrong with an image.
hipError_t load_module(Machine& machine, int device, std::span<const uint8_t> image,
                       std::shared_ptr<LoadedModule>& out);
/// The function's handle, made once per module. Needs the lock.
hipError_t find_function(Machine& machine, const std::shared_ptr<LoadedModule>& module, const std::string& name,
                         std::shared_ptr<Function>& out);

/// The kernel behind a host stand-in (or behind a hipFunction_t) on the current device.
hipError_t find_kernel(Machine& machine, const void* host_function, std::shared_ptr<Function>& out);
/// The variable on the current device. Either result pointer may be null.
hipError_t find_variable(Machine& machine, const void* symbol, void** pointer, size_t* bytes);

}  // namespace crest_sim::hip
