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
  kQ8,   // int8 with an fp32 scale for each 32 columns, in tiles: see QuantTile
};
std::string_view name(ActivationFormat format);
inline constexpr int64_t kActivationBlock = 32;

/// Up to 256 columns of one row in format kQ8: x[c] is about quants[c] * scales[c / 32], |quants[c]| <= 127. Weight
/// types with a minimum multiply the sums (quants times scale, over 32 and over 16 columns); kernels that store signed
/// weights plus 128 start their integer sums from the zeros. A block of 32 that holds a NaN or an infinity has a NaN
/// scale, so that it reaches the result.
struct alignas(64) QuantTile {
  static constexpr int64_t kCols = 256;
  int8_t quants[256];
  float scales[8];
  float sums32[8];
  int32_t zeros32[8];  // -128 * sum of 32 quants
  float sums16[16];
  int32_t zeros16[16];
};

/// Input rows in one of the forms. kQ8 is stored tile column by tile column, so that kernels, which take 256 columns of
/// all rows at a time, read it as one stream.
struct Activations {
  ActivationFormat format = ActivationFormat::kF32;
  int64_t tokens = 0;
  int64_t cols = 0;
  const std::byte* data = nullptr;
  int64_t row_bytes = 0;    // from token to token
  int64_t block_bytes = 0;  // kQ8: from tile column to tile column

  const float* f32(int64_t token) const { return reinterpret_cast<const float*>(data + token * row_bytes); }
  /// Columns [256 * block, 256 * block + 256) of a row.
  const QuantTile* tile(int64_t token, int64_t block) const {
    return reinterpret_cast<const QuantTile*>(data + block * block_bytes + token * row_bytes);
  }
};

/// Rows of fp32 to format kQ8: scale = max |x| / 127, quants rounded to nearest even. Threads share the rows; the
/// memory comes from the workspace. Every kernel gives the same bits.
Result<Activations> quantize_activations(const Activations& x, Context& context);

struct QuantizeProblem {
  int64_t cols = 0;
};
struct QuantizeArgs {
  const float* x = nullptr;    // one row
  QuantTile* tiles = nullptr;  // its first tile
  int64_t tile_stride = 0;     // tiles from one of the row to the next
};
const Operator<QuantizeProblem, QuantizeArgs>& quantize_activations_operator();

}  // namespace crest::ops
