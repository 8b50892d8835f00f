#pragma once

// One row of fp32 to format kQ8. Included by the reference and by the file compiled for AVX2: the same operations in
// the same order, so the same bits. Internal linkage keeps the two apart.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ops/quant/activations.h"

namespace crest::ops {
namespace {

inline void quantize_row(const float* x, int64_t cols, QuantTile* tiles, int64_t tile_stride) {
  for (int64_t block = 0; block < cols / 32; ++block, x += 32) {
    QuantTile& tile = tiles[block / 8 * tile_stride];
    const int64_t b = block % 8;
    int8_t* quants = tile.quants + 32 * b;
    // As integers, magnitudes order like the floats, with infinity and NaN on top.
    int32_t largest = 0;
    for (int i = 0; i < 32; ++i) {
      const int32_t magnitude = std::bit_cast<int32_t>(x[i]) & 0x7fffffff;
      largest = magnitude > largest ? magnitude : largest;
    }
    const float max = std::bit_cast<float>(largest);
    const bool finite = largest < 0x7f800000;
    const float scale = finite ? max / 127.0f : std::numeric_limits<float>::quiet_NaN();
    // Below this the quotient would overflow; such a block is zero in 8 bits.
    const float inverse = finite && max > 1e-35f ? 127.0f / max : 0.0f;
    int32_t sums[2] = {0, 0};
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 16; ++i) {
        // Adding 1.5 * 2^23 rounds to nearest even and leaves the integer in the low bits.
        const float shifted = (finite ? x[16 * half + i] : 0.0f) * inverse + 12582912.0f;
        const int32_t q = std::bit_cast<int32_t>(shifted) - 0x4b400000;
        quants[16 * half + i] = static_cast<int8_t>(q);
        sums[half] += q;
      }
    }
    tile.scales[b] = scale;
    tile.sums32[b] = static_cast<float>(sums[0] + sums[1]) * scale;
    tile.zeros32[b] = -128 * (sums[0] + sums[1]);
    for (int half = 0; half < 2; ++half) {
      tile.sums16[2 * b + half] = static_cast<float>(sums[half]) * scale;
      tile.zeros16[2 * b + half] = -128 * sums[half];
    }
  }
}

}  // namespace
}  // namespace crest::ops
