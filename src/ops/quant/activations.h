#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "ops/context.h"
#include "ops/registry.h"

namespace crest::ops {

/// Forms in which linear kernels read their input.
enum class ActivationFormat : uint8_t {
  kF32,  // fp32 rows
  kQ8,   // int8 with an fp32 scale for each 32 columns: see QuantRow
};
std::string_view name(ActivationFormat format);
inline constexpr int64_t kActivationBlock = 32;
/// Bytes of one row; a multiple of 64. For kQ8, cols must be a multiple of the block.
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

/// One row of format kQ8: x[c] is about quants[c] * scales[c / 32], |quants[c]| <= 127. The sums are of quants times
/// scale, over 32 and over 16 columns: weight types with a minimum or an offset multiply them. A block that holds a
/// NaN or an infinity has a NaN scale, so that it reaches the result.
struct QuantRow {
  const int8_t* quants;  // [cols]
  const float* scales;   // [cols / 32]
  const float* sums32;   // [cols / 32]
  const float* sums16;   // [cols / 16]
};
QuantRow quant_row(const Activations& x, int64_t token);

/// Rows of fp32 to format kQ8: scale = max |x| / 127, quants rounded to nearest even. Threads share the rows; the
/// memory comes from the workspace. Every kernel gives the same bits.
Result<Activations> quantize_activations(const Activations& x, Context& context);

struct QuantizeProblem {
  int64_t cols = 0;
};
struct QuantizeArgs {
  const float* x = nullptr;  // one row
  std::byte* row = nullptr;  // its quantised form
};
const Operator<QuantizeProblem, QuantizeArgs>& quantize_activations_operator();

}  // namespace crest::ops
