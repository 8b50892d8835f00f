#pragma once

#include "ops/activation/activation.h"

namespace crest::ops {

Kernel<GatedActivationProblem, GatedActivationArgs> gated_activation_reference();
Kernel<AddProblem, AddArgs> add_reference();

}  // namespace crest::ops
