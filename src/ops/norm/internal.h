#pragma once

#include "ops/norm/norm.h"

namespace crest::ops {

Kernel<RmsNormProblem, RmsNormArgs> rms_norm_reference();

}  // namespace crest::ops
