#include "ops/linear_attention/cpu_linear_attention.h"
#include "ops/linear_attention/delta_kernel.h"

namespace crest::ops {

constinit const Kernel<GatedDeltaProblem, GatedDeltaArgs> kGatedDeltaAvx512 =
    delta_kernel<VecAvx512>("avx512", "avx512", 20);

}  // namespace crest::ops
