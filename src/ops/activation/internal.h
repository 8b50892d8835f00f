#pragma once

#include "ops/activation/activation.h"

namespace crest::ops {

Kernel<GatedActivationProblem, GatedActivationArgs> gated_activation_reference();
Kernel<AddProblem, AddArgs> add_reference();

// NOTE: a constant, because code of its file must not run before the processor was looked at.
extern const Kernel<GatedActivationProblem, GatedActivationArgs> kGatedActivationAvx2;

}  // namespace crest::ops
