#pragma once

#include <memory>
#include <vector>

#include "ops/cases/buffers.h"
#include "ops/weight.h"

namespace crest::ops {

/// Element types that a linear layer may have.
std::vector<tensor::DType> weight_types();

/// A random weight of any type with values of order `scale` (quantised ones: random codes, which reach every value of
/// the format). ParoQuant weights get a random rotation.
Weight random_weight(tensor::DType dtype, int64_t rows, int64_t cols, int64_t experts, float scale, CaseRandom& random);

}  // namespace crest::ops
