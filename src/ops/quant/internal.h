#pragma once

#include "ops/quant/activations.h"
#include "ops/quant/rotation.h"

namespace crest::ops {

Kernel<RotationProblem, RotationArgs> rotate_reference();

/// NOTE: a constant, because code of its file must not run before the processor was looked at.
extern const Kernel<QuantizeProblem, QuantizeArgs> kQuantizeActivationsAvx2;

}  // namespace crest::ops
