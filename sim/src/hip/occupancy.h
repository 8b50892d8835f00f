// How many workgroups of a kernel a compute unit holds.
#pragma once

#include "hip/machine.h"

namespace crest_sim::hip {

/// Workgroups on one multiprocessor as HIP counts them; 0 if not even one fits.
int resident_blocks(const DeviceState& device, const Kernel& kernel, uint64_t threads, uint64_t dynamic_lds_bytes);
/// On the whole device.
uint64_t co_resident_blocks(const DeviceState& device, const Kernel& kernel, uint64_t threads,
                            uint64_t dynamic_lds_bytes);

}  // namespace crest_sim::hip
