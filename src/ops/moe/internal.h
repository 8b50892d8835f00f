#pragma once

#include "ops/moe/moe.h"

namespace crest::ops {

Kernel<RouterProblem, RouterArgs> moe_router_reference();
Kernel<SharedExpertProblem, SharedExpertArgs> shared_expert_add_reference();

}  // namespace crest::ops
