#pragma once

#include "ops/rope/rope.h"

namespace crest::ops {

Kernel<RopeTableProblem, RopeTableArgs> rope_table_reference();
Kernel<RopeProblem, RopeArgs> rope_reference();

}  // namespace crest::ops
