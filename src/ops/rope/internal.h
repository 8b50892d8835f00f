#pragma once

#include "ops/rope/rope.h"

namespace crest::ops {

Kernel<RopeTableProblem, RopeTableArgs> rope_table_reference();
Kernel<RopeProblem, RopeArgs> rope_reference();

// NOTE: a constant, because code of its file must not run before the processor was looked at.
extern const Kernel<RopeProblem, RopeArgs> kRopeAvx2;

}  // namespace crest::ops
