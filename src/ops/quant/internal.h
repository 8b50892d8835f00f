#pragma once

#include "ops/quant/rotation.h"

namespace crest::ops {

Kernel<RotationProblem, RotationArgs> rotate_reference();

}  // namespace crest::ops
