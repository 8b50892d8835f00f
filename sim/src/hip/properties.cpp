#include "hip/properties.h"

#include <fmt/format.h>

#include <array>

namespace crest_sim::hip {

static_assert(sizeof(hipDeviceProp_tR0600) == 1472);
static_assert(offsetof(hipDeviceProp_tR0600, gcnArchName) == 1160);

// Clocks, buses and caches: AMD's data sheets (MI300X, MI355X, RX 7900 XTX, Ryzen AI Max+ 395). Registers and waves:
// LLVM's AMDGPU target description.
const DeviceFacts& facts(Arch arch) {
  static constexpr std::array<DeviceFacts, 4> kFacts{{
      {2100000, 1300000, 8192, 4 << 20, 8, 9, 4, 0x74a1, false, 8, 512, 8},
      {2400000, 2000000, 8192, 4 << 20, 8, 9, 5, 0x75a3, false, 8, 512, 8},
      {2500000, 1249000, 384, 6 << 20, 1, 11, 0, 0x744c, false, 16, 1536, 24},
      {2900000, 1000000, 256, 2 << 20, 1, 11, 5, 0x1586, true, 16, 1536, 24},
  }};
  return kFacts[static_cast<size_t>(arch)];
}

int multiprocessors(const DeviceState& device) {
  int units = static_cast<int>(device.target().compute_units);
  return device.target().cdna ? units : units / 2;
}

hipDeviceProp_tR0600 properties_of(const DeviceState& device) {
  const TargetInfo& target = device.target();
  const DeviceFacts& f = facts(target.arch);
  hipDeviceProp_tR0600 p{};
  auto set = [](char* to, size_t bytes, const std::string& text) {
    std::memcpy(to, text.data(), std::min(bytes - 1, text.size()));
  };
  set(p.name, sizeof p.name, fmt::format("{} (Crest simulator)", target.name));
  set(p.gcnArchName, sizeof p.gcnArchName, device.arch_name());
  set(p.uuid.bytes, sizeof p.uuid.bytes, fmt::format("GPU-sim-{:07}", device.ordinal));
  p.totalGlobalMem = device.capacity;
  p.sharedMemPerBlock = p.sharedMemPerBlockOptin = target.lds_bytes;
  p.sharedMemPerMultiprocessor = p.maxSharedMemoryPerMultiProcessor = target.cdna ? target.lds_bytes : 131072;
  p.regsPerBlock = 65536;
  p.regsPerMultiprocessor = 4 * f.vgprs_per_simd_lane * static_cast<int>(target.default_wave_size);
  p.warpSize = static_cast<int>(target.default_wave_size);
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = 1024;
  for (int& n : p.maxThreadsDim) n = 1024;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65536;
  p.clockRate = f.clock_khz;
  p.clockInstructionRate = 100000;
  p.totalConstMem = 0x7fffffff;
  p.major = f.major;
  p.minor = f.minor;
  p.textureAlignment = p.texturePitchAlignment = 256;
  p.deviceOverlap = p.asyncEngineCount = 1;
  p.multiProcessorCount = multiprocessors(device);
  p.integrated = f.integrated;
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = 1;
  p.pciBusID = device.ordinal + 1;
  p.memoryClockRate = f.memory_clock_khz;
  p.memoryBusWidth = f.memory_bus_bits;
  p.l2CacheSize = f.l2_bytes;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.streamPrioritiesSupported = 1;
  p.managedMemory = p.concurrentManagedAccess = p.directManagedMemAccessFromHost = 1;
  p.hostNativeAtomicSupported = p.canUseHostPointerForRegisteredMem = p.hostRegisterSupported = 1;
  p.cooperativeLaunch = 1;
  p.memoryPoolsSupported = 1;
  p.isLargeBar = 1;
  p.singleToDoublePrecisionPerfRatio = target.cdna ? 1 : 32;
  hipDeviceArch_t& a = p.arch;
  a.hasGlobalInt32Atomics = a.hasGlobalFloatAtomicExch = a.hasSharedInt32Atomics = a.hasSharedFloatAtomicExch = 1;
  a.hasFloatAtomicAdd = a.hasGlobalInt64Atomics = a.hasSharedInt64Atomics = a.hasDoubles = a.hasWarpVote = 1;
  a.hasWarpBallot = a.hasWarpShuffle = a.hasThreadFenceSystem = a.has3dGrid = 1;
  return p;
}

bool attribute_of(const DeviceState& d, hipDeviceAttribute_t which, int& value) {
  const hipDeviceProp_tR0600 p = properties_of(d);
  switch (which) {
#define CREST_SIM_ATTRIBUTE(name, expression) \
  case hipDeviceAttribute##name:              \
    value = static_cast<int>(expression);     \
    return true;
    CREST_SIM_ATTRIBUTE(EccEnabled, p.ECCEnabled)
    CREST_SIM_ATTRIBUTE(AccessPolicyMaxWindowSize, 0)
    CREST_SIM_ATTRIBUTE(AsyncEngineCount, p.asyncEngineCount)
    CREST_SIM_ATTRIBUTE(CanMapHostMemory, p.canMapHostMemory)
    CREST_SIM_ATTRIBUTE(CanUseHostPointerForRegisteredMem, p.canUseHostPointerForRegisteredMem)
    CREST_SIM_ATTRIBUTE(ClockRate, p.clockRate)
    CREST_SIM_ATTRIBUTE(ComputeMode, p.computeMode)
    CREST_SIM_ATTRIBUTE(ComputePreemptionSupported, 0)
    CREST_SIM_ATTRIBUTE(ConcurrentKernels, p.concurrentKernels)
    CREST_SIM_ATTRIBUTE(ConcurrentManagedAccess, p.concurrentManagedAccess)
    CREST_SIM_ATTRIBUTE(CooperativeLaunch, p.cooperativeLaunch)
    CREST_SIM_ATTRIBUTE(CooperativeMultiDeviceLaunch, 0)
    CREST_SIM_ATTRIBUTE(DeviceOverlap, p.deviceOverlap)
    CREST_SIM_ATTRIBUTE(DirectManagedMemAccessFromHost, p.directManagedMemAccessFromHost)
    CREST_SIM_ATTRIBUTE(GlobalL1CacheSupported, 1)
    CREST_SIM_ATTRIBUTE(HostNativeAtomicSupported, p.hostNativeAtomicSupported)
    CREST_SIM_ATTRIBUTE(Integrated, p.integrated)
    CREST_SIM_ATTRIBUTE(IsMultiGpuBoard, 0)
    CREST_SIM_ATTRIBUTE(KernelExecTimeout, 0)
    CREST_SIM_ATTRIBUTE(L2CacheSize, p.l2CacheSize)
    CREST_SIM_ATTRIBUTE(LocalL1CacheSupported, 1)
    CREST_SIM_ATTRIBUTE(ComputeCapabilityMajor, p.major)
    CREST_SIM_ATTRIBUTE(ManagedMemory, p.managedMemory)
    CREST_SIM_ATTRIBUTE(MaxBlocksPerMultiProcessor, p.maxBlocksPerMultiProcessor)
    CREST_SIM_ATTRIBUTE(MaxBlockDimX, p.maxThreadsDim[0])
    CREST_SIM_ATTRIBUTE(MaxBlockDimY, p.maxThreadsDim[1])
    CREST_SIM_ATTRIBUTE(MaxBlockDimZ, p.maxThreadsDim[2])
    CREST_SIM_ATTRIBUTE(MaxGridDimX, p.maxGridSize[0])
    CREST_SIM_ATTRIBUTE(MaxGridDimY, p.maxGridSize[1])
    CREST_SIM_ATTRIBUTE(MaxGridDimZ, p.maxGridSize[2])
    CREST_SIM_ATTRIBUTE(MaxThreadsDim, p.maxThreadsDim[0])
    CREST_SIM_ATTRIBUTE(MaxThreadsPerBlock, p.maxThreadsPerBlock)
    CREST_SIM_ATTRIBUTE(MaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor)
    CREST_SIM_ATTRIBUTE(MaxPitch, p.memPitch)
    CREST_SIM_ATTRIBUTE(MemoryBusWidth, p.memoryBusWidth)
    CREST_SIM_ATTRIBUTE(MemoryClockRate, p.memoryClockRate)
    CREST_SIM_ATTRIBUTE(ComputeCapabilityMinor, p.minor)
    CREST_SIM_ATTRIBUTE(MultiGpuBoardGroupID, 0)
    CREST_SIM_ATTRIBUTE(MultiprocessorCount, p.multiProcessorCount)
    CREST_SIM_ATTRIBUTE(PageableMemoryAccess, 0)
    CREST_SIM_ATTRIBUTE(PageableMemoryAccessUsesHostPageTables, 0)
    CREST_SIM_ATTRIBUTE(PciBusId, p.pciBusID)
    CREST_SIM_ATTRIBUTE(PciDeviceId, 0)
    CREST_SIM_ATTRIBUTE(PciDomainID, 0)
    CREST_SIM_ATTRIBUTE(PersistingL2CacheMaxSize, 0)
    CREST_SIM_ATTRIBUTE(MaxRegistersPerBlock, p.regsPerBlock)
    CREST_SIM_ATTRIBUTE(MaxRegistersPerMultiprocessor, p.regsPerMultiprocessor)
    CREST_SIM_ATTRIBUTE(ReservedSharedMemPerBlock, 0)
    CREST_SIM_ATTRIBUTE(MaxSharedMemoryPerBlock, p.sharedMemPerBlock)
    CREST_SIM_ATTRIBUTE(SharedMemPerBlockOptin, p.sharedMemPerBlockOptin)
    CREST_SIM_ATTRIBUTE(SharedMemPerMultiprocessor, p.sharedMemPerMultiprocessor)
    CREST_SIM_ATTRIBUTE(SingleToDoublePrecisionPerfRatio, p.singleToDoublePrecisionPerfRatio)
    CREST_SIM_ATTRIBUTE(StreamPrioritiesSupported, p.streamPrioritiesSupported)
    CREST_SIM_ATTRIBUTE(TccDriver, 0)
    CREST_SIM_ATTRIBUTE(TextureAlignment, p.textureAlignment)
    CREST_SIM_ATTRIBUTE(TexturePitchAlignment, p.texturePitchAlignment)
    CREST_SIM_ATTRIBUTE(TotalConstantMemory, p.totalConstMem)
    CREST_SIM_ATTRIBUTE(TotalGlobalMem, std::min<size_t>(p.totalGlobalMem, 0x7fffffff))
    CREST_SIM_ATTRIBUTE(UnifiedAddressing, p.unifiedAddressing)
    CREST_SIM_ATTRIBUTE(WarpSize, p.warpSize)
    CREST_SIM_ATTRIBUTE(MemoryPoolsSupported, p.memoryPoolsSupported)
    CREST_SIM_ATTRIBUTE(VirtualMemoryManagementSupported, 0)
    CREST_SIM_ATTRIBUTE(HostRegisterSupported, p.hostRegisterSupported)
    CREST_SIM_ATTRIBUTE(MemoryPoolSupportedHandleTypes, 0)
    CREST_SIM_ATTRIBUTE(ClockInstructionRate, p.clockInstructionRate)
    CREST_SIM_ATTRIBUTE(MaxSharedMemoryPerMultiprocessor, p.maxSharedMemoryPerMultiProcessor)
    CREST_SIM_ATTRIBUTE(CooperativeMultiDeviceUnmatchedFunc, 0)
    CREST_SIM_ATTRIBUTE(CooperativeMultiDeviceUnmatchedGridDim, 0)
    CREST_SIM_ATTRIBUTE(CooperativeMultiDeviceUnmatchedBlockDim, 0)
    CREST_SIM_ATTRIBUTE(CooperativeMultiDeviceUnmatchedSharedMem, 0)
    CREST_SIM_ATTRIBUTE(IsLargeBar, p.isLargeBar)
    CREST_SIM_ATTRIBUTE(AsicRevision, p.asicRevision)
    CREST_SIM_ATTRIBUTE(CanUseStreamWaitValue, 0)
    CREST_SIM_ATTRIBUTE(ImageSupport, 0)
    CREST_SIM_ATTRIBUTE(PhysicalMultiProcessorCount, d.target().compute_units)
    CREST_SIM_ATTRIBUTE(FineGrainSupport, 1)
    CREST_SIM_ATTRIBUTE(WallClockRate, p.clockInstructionRate)
    CREST_SIM_ATTRIBUTE(NumberOfXccs, facts(d.target().arch).xccs)
#undef CREST_SIM_ATTRIBUTE
    default:
      return false;
  }
}

}  // namespace crest_sim::hip
