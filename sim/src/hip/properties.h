// Published facts of the real devices that programs ask for.
#pragma once

#include "hip/machine.h"

namespace crest_sim::hip {

struct DeviceFacts {
  int clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes, xccs, major, minor, pci_device;
  bool integrated;
  int max_waves_per_simd, vgprs_per_simd_lane, vgpr_granule;  ///< for the native wave size
};

const DeviceFacts& facts(Arch arch);
hipDeviceProp_tR0600 properties_of(const DeviceState& device);
/// False if there is no such attribute here.
bool attribute_of(const DeviceState& device, hipDeviceAttribute_t which, int& value);
/// HIP counts a work-group processor (two compute units) as one multiprocessor on RDNA.
int multiprocessors(const DeviceState& device);

}  // namespace crest_sim::hip
