#include "ops/linear_attention/cpu_linear_attention.h"
#include "ops/linear_attention/delta_kernel.h"

namespace crest::ops {

constinit const Kernel<GatedDeltaProblem, GatedDeltaArgs> kGatedDeltaAvx2 = delta_kernel<VecAvx2>("avx2", "avx2", 10);

}  // namespace crest::ops
