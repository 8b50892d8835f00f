#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "ops/context.h"

namespace crest::ops {

/// Forms in which linear kernels read their input. Quantised forms keep, for every block, the fp32 scale and the sum of
/// its quants (for weight types with a minimum).
enum class ActivationFormat : uint8_t {
  kF32,   // fp32 rows
  kQ8_0,  // int8, blocks of 32
  kQ8_K,  // int8, blocks of 256 with sums of 16
};
std::string_view name(ActivationFormat format);
/// Bytes of one row; a multiple of 64. cols must be a multiple of the block.
int64_t activation_row_bytes(ActivationFormat format, int64_t cols);

/// Input rows in one of the forms.
struct Activations {
  ActivationFormat format = ActivationFormat::kF32;
  int64_t tokens = 0;
  int64_t cols = 0;
  const std::byte* data = nullptr;
  int64_t row_bytes = 0;  // from token to token

  const float* f32(int64_t token) const { return reinterpret_cast<const float*>(data + token * row_bytes); }
};

}  // namespace crest::ops
