#pragma once

#include "ops/sampling/sampling.h"

namespace crest::ops {

Kernel<SampleProblem, SampleArgs> sample_reference();

}  // namespace crest::ops
