#pragma once

#include "ops/norm/norm.h"

namespace crest::ops {

Kernel<RmsNormProblem, RmsNormArgs> rms_norm_reference();

// NOTE: a constant, because code of its file must not run before the processor was looked at.
extern const Kernel<RmsNormProblem, RmsNormArgs> kRmsNormAvx2;

}  // namespace crest::ops
