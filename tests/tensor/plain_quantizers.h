#pragma once

#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace crest::testing {

/// The quantisers that llama.cpp's files are made with, written plainly from their description: the yardstick that
/// Crest's own must meet or beat. Block types of 32 and 256 elements; importance is null or one weight a column.
std::vector<uint8_t> plain_quantize(tensor::DType dtype, const float* x, int64_t n, const float* importance);

}  // namespace crest::testing
