#pragma once

#include "ops/quant/activations.h"
#include "ops/quant/rotation.h"

namespace crest::ops {

Kernel<RotationProblem, RotationArgs> rotate_reference();

// NOTE: constants, because code of their files must not run before the processor was looked at.
extern const Kernel<RotationProblem, RotationArgs> kRotateAvx2;
extern const Kernel<QuantizeProblem, QuantizeArgs> kQuantizeActivationsAvx2;

}  // namespace crest::ops
