#include "hip/occupancy.h"

#include "hip/properties.h"
#include "hip/registered.h"

namespace crest_sim::hip {

int resident_blocks(const DeviceState& device, const Kernel& kernel, uint64_t threads, uint64_t dynamic_lds_bytes) {
  const TargetInfo& target = device.target();
  const DeviceFacts& f = facts(target.arch);
  uint64_t limit = kernel.max_flat_workgroup_size ? kernel.max_flat_workgroup_size : 1024;
  if (threads == 0 || threads > limit) return 0;
  uint64_t waves = (threads + kernel.wave_size - 1) / kernel.wave_size;
  // A wave64 on RDNA3 takes twice the registers of a wave32.
  int per_lane = f.vgprs_per_simd_lane, granule = f.vgpr_granule;
  if (!target.cdna && kernel.wave_size == 64) per_lane /= 2, granule /= 2;
  int used = static_cast<int>(kernel.vgprs);
  if (kernel.agprs) used = static_cast<int>((kernel.vgprs + 3) / 4 * 4 + kernel.agprs);  // one file on CDNA3
  used = std::max(granule, (used + granule - 1) / granule * granule);
  uint64_t waves_per_simd = static_cast<uint64_t>(std::min(f.max_waves_per_simd, per_lane / used));
  uint64_t simds = 4;  // of a compute unit on CDNA, of a work-group processor on RDNA
  uint64_t blocks = waves_per_simd * simds / waves;
  uint64_t lds = kernel.descriptor.group_segment_bytes + dynamic_lds_bytes;
  uint64_t lds_available = target.cdna ? target.lds_bytes : 131072;
  if (lds > target.lds_bytes) return 0;
  if (lds) blocks = std::min(blocks, lds_available / lds);
  return static_cast<int>(std::min<uint64_t>(blocks, 32));
}

uint64_t co_resident_blocks(const DeviceState& device, const Kernel& kernel, uint64_t threads,
                            uint64_t dynamic_lds_bytes) {
  return static_cast<uint64_t>(resident_blocks(device, kernel, threads, dynamic_lds_bytes)) *
         static_cast<uint64_t>(multiprocessors(device));
}

}  // namespace crest_sim::hip

using namespace crest_sim::hip;

namespace {

const DeviceState& device_of(Machine& m, const Function& f) {
  return *m.devices[static_cast<size_t>(f.module->device)];
}

/// Either a hipFunction_t or the host stand-in of a kernel.
template <class Body>
hipError_t with_kernel(const void* function, Body&& body) {
  return call([&](Machine& m) {
    std::shared_ptr<Function> f;
    if (hipError_t e = find_kernel(m, function, f)) return e;
    return body(m, *f);
  });
}

hipError_t active_blocks(int* blocks, const void* function, int block_size, size_t shared_bytes) {
  return with_kernel(function, [&](Machine& m, const Function& f) {
    if (!blocks || block_size <= 0) return hipErrorInvalidValue;
    *blocks = resident_blocks(device_of(m, f), *f.kernel, static_cast<uint64_t>(block_size), shared_bytes);
    return hipSuccess;
  });
}

/// The block size that keeps most work-items resident; the larger one if two do.
hipError_t potential_block_size(int* grid_size, int* block_size, const void* function, size_t shared_bytes,
                                int block_limit) {
  return with_kernel(function, [&](Machine& m, const Function& f) {
    if (!grid_size || !block_size || block_limit < 0) return hipErrorInvalidValue;
    const DeviceState& d = device_of(m, f);
    int limit = f.kernel->max_flat_workgroup_size ? static_cast<int>(f.kernel->max_flat_workgroup_size) : 1024;
    if (block_limit) limit = std::min(limit, block_limit);
    int step = static_cast<int>(f.kernel->wave_size), best = 0, best_items = 0, best_blocks = 0;
    for (int size = std::max(step, limit / step * step); size >= step; size -= step) {
      int threads = std::min(size, limit);
      int blocks = resident_blocks(d, *f.kernel, static_cast<uint64_t>(threads), shared_bytes);
      if (blocks * threads <= best_items) continue;
      best = threads, best_items = blocks * threads, best_blocks = blocks;
    }
    if (!best) return hipErrorLaunchOutOfResources;
    *block_size = best;
    *grid_size = best_blocks * multiprocessors(d);
    return hipSuccess;
  });
}

int attribute(const DeviceState& d, const Function& f, hipFunction_attribute which, bool& known) {
  const crest_sim::Kernel& k = *f.kernel;
  known = true;
  switch (which) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return k.max_flat_workgroup_size ? static_cast<int>(k.max_flat_workgroup_size) : 1024;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return static_cast<int>(k.descriptor.group_segment_bytes);
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return static_cast<int>(k.descriptor.private_segment_bytes);
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
      return static_cast<int>(k.vgpr_count ? k.vgpr_count : k.vgprs);
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
      return facts(d.target().arch).major * 10 + facts(d.target().arch).minor;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return f.dynamic_lds_limit ? f.dynamic_lds_limit
                                 : static_cast<int>(d.target().lds_bytes - k.descriptor.group_segment_bytes);
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return 0;
  }
  known = false;
  return 0;
}

}  // namespace

extern "C" {

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                        size_t shared_bytes) {
  return active_blocks(blocks, function, block_size, shared_bytes);
}
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size,
                                                                 size_t shared_bytes, unsigned) {
  return active_blocks(blocks, function, block_size, shared_bytes);
}
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t function, int block_size,
                                                              size_t shared_bytes) {
  return active_blocks(blocks, function, block_size, shared_bytes);
}
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, hipFunction_t function,
                                                                       int block_size, size_t shared_bytes, unsigned) {
  return active_blocks(blocks, function, block_size, shared_bytes);
}
hipError_t hipOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size, const void* function, size_t shared_bytes,
                                             int block_limit) {
  return potential_block_size(grid_size, block_size, function, shared_bytes, block_limit);
}
hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size, hipFunction_t function,
                                                   size_t shared_bytes, int block_limit) {
  return potential_block_size(grid_size, block_size, function, shared_bytes, block_limit);
}
hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid_size, int* block_size, hipFunction_t function,
                                                            size_t shared_bytes, int block_limit, unsigned) {
  return potential_block_size(grid_size, block_size, function, shared_bytes, block_limit);
}

hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute which, hipFunction_t function) {
  return with_kernel(function, [&](Machine& m, const Function& f) {
    if (!value) return hipErrorInvalidValue;
    bool known = false;
    int v = attribute(device_of(m, f), f, which, known);
    if (known) *value = v;
    return known ? hipSuccess : hipErrorInvalidValue;
  });
}
hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* function) {
  return with_kernel(function, [&](Machine& m, const Function& f) {
    if (!attributes) return hipErrorInvalidValue;
    auto get = [&](hipFunction_attribute which) {
      bool known = false;
      return attribute(device_of(m, f), f, which, known);
    };
    hipFuncAttributes a{};
    a.binaryVersion = get(HIP_FUNC_ATTRIBUTE_BINARY_VERSION);
    a.ptxVersion = get(HIP_FUNC_ATTRIBUTE_PTX_VERSION);
    a.localSizeBytes = static_cast<size_t>(get(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    a.sharedSizeBytes = static_cast<size_t>(get(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    a.maxDynamicSharedSizeBytes = get(HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    a.maxThreadsPerBlock = get(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    a.numRegs = get(HIP_FUNC_ATTRIBUTE_NUM_REGS);
    *attributes = a;
    return hipSuccess;
  });
}
hipError_t hipFuncSetAttribute(const void* function, hipFuncAttribute which, int value) {
  return call([&](Machine& m) {
    std::shared_ptr<Function> f;
    if (hipError_t e = find_kernel(m, function, f)) return e;
    std::lock_guard lock(m.mutex);
    if (which == hipFuncAttributePreferredSharedMemoryCarveout) return hipSuccess;
    int64_t most = int64_t(device_of(m, *f).target().lds_bytes) - f->kernel->descriptor.group_segment_bytes;
    if (which != hipFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > most) return hipErrorInvalidValue;
    f->dynamic_lds_limit = value;
    return hipSuccess;
  });
}
hipError_t hipFuncSetCacheConfig(const void* function, hipFuncCache_t) {
  return with_kernel(function, [](Machine&, const Function&) { return hipSuccess; });
}
hipError_t hipFuncSetSharedMemConfig(const void* function, hipSharedMemConfig) {
  return with_kernel(function, [](Machine&, const Function&) { return hipSuccess; });
}
}
