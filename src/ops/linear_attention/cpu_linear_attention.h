#pragma once

#include "ops/linear_attention/causal_conv1d.h"
#include "ops/linear_attention/gated_delta.h"

namespace crest::ops {

// NOTE: constants, because code of their files must not run before the processor was looked at.
extern const Kernel<GatedDeltaProblem, GatedDeltaArgs> kGatedDeltaAvx2;
extern const Kernel<GatedDeltaProblem, GatedDeltaArgs> kGatedDeltaAvx512;
extern const Kernel<CausalConv1dProblem, CausalConv1dArgs> kCausalConv1dAvx2;

}  // namespace crest::ops
