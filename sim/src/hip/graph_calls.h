// What the calls that make nodes and those that change instantiated ones share.
#pragma once

#include "hip/operation.h"

namespace crest_sim::hip {

hipError_t kernel_operation(Machine& machine, const hipKernelNodeParams* parameters, Operation& out);
hipError_t memset_operation(Machine& machine, const hipMemsetParams* parameters, Operation& out);
hipError_t copy_operation(Machine& machine, void* to, const void* from, size_t bytes, hipMemcpyKind kind,
                          Operation& out);
hipError_t host_operation(const hipHostNodeParams* parameters, Operation& out);

}  // namespace crest_sim::hip
