#include <cmath>

#include "tensor/pack.h"
#include "tensor/quantize_affine.h"
#include "tensor/quantize_kernels.h"
#include "tensor/quantize_scaled.h"

// Types of 32 elements with a scale of their own.
namespace crest::tensor::detail {
namespace {

constexpr ScaleSearch kSearch4{-1.2f, 0.15f, 14};
constexpr ScaleSearch kSearch5{-1.6f, 0.2f, 14};
constexpr ScaleSearch kSearchIQ4{-16.0f, 2.0f, 16};
constexpr AffineSearch kSearchAffine{-0.6f, 0.2f, 14};

template <typename Block, typename Write>
void each_block(const float* x, const float* weights, void* dst, int64_t n, Write write) {
  auto* blocks = static_cast<Block*>(dst);
  for (int64_t b = 0; b < n / kSmallBlock; ++b) write(x + b * kSmallBlock, weights + b * kSmallBlock, blocks[b]);
}

template <typename Grid>
uint16_t scaled(const float* x, const float* weights, const ScaleSearch& search, uint8_t* codes) {
  const ScaledSums sums = search_scale<kSmallBlock, Grid>(x, weights, search);
  const uint16_t d = f32_to_f16(static_cast<float>(sums.scale()));
  const float scale = f16_to_f32(d);
  encode<kSmallBlock, Grid>(x, scale != 0 ? 1 / scale : 0, codes);
  return d;
}

struct ScaleOffset {
  uint16_t d;
  uint16_t m;
};
template <int kMaxCode>
ScaleOffset affine(const float* x, const float* weights, uint8_t* codes) {
  AffineSums sums;
  const AffineFit best = search_affine<kSmallBlock, kMaxCode, false>(x, weights, kSearchAffine, sums);
  const uint16_t d = f32_to_f16(best.scale);
  const float scale = f16_to_f32(d);
  // The rounded scale moves the best offset a little.
  const uint16_t m = f32_to_f16(scale > 0 ? (sums.x - scale * sums.q) / sums.w : best.offset);
  const float inverse = scale > 0 ? 1 / scale : 0;
  for (int i = 0; i < kSmallBlock; i += 4) {
    const Lanes q = snap((load(x + i) - splat(f16_to_f32(m))) * splat(inverse), 0, kMaxCode);
    for (int k = 0; k < 4; ++k) codes[i + k] = static_cast<uint8_t>(q[k]);
  }
  return {d, m};
}

}  // namespace

void quantize_q4_0(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockQ4_0>(x, weights, dst, n, [](const float* values, const float* w, BlockQ4_0& block) {
    uint8_t codes[kSmallBlock];
    block.d = scaled<IntegerGrid<-8, 7>>(values, w, kSearch4, codes);
    pack_nibbles(codes, block.qs);
  });
}

void quantize_q5_0(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockQ5_0>(x, weights, dst, n, [](const float* values, const float* w, BlockQ5_0& block) {
    uint8_t codes[kSmallBlock];
    block.d = scaled<IntegerGrid<-16, 15>>(values, w, kSearch5, codes);
    pack_nibbles(codes, block.qs);
    pack_fifth_bits(codes, block.qh);
  });
}

void quantize_iq4_nl(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockIQ4_NL>(x, weights, dst, n, [](const float* values, const float* w, BlockIQ4_NL& block) {
    uint8_t codes[kSmallBlock];
    block.d = scaled<IQ4Grid>(values, w, kSearchIQ4, codes);
    pack_nibbles(codes, block.qs);
  });
}

void quantize_q4_1(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockQ4_1>(x, weights, dst, n, [](const float* values, const float* w, BlockQ4_1& block) {
    uint8_t codes[kSmallBlock];
    const ScaleOffset so = affine<15>(values, w, codes);
    block.d = so.d;
    block.m = so.m;
    pack_nibbles(codes, block.qs);
  });
}

void quantize_q5_1(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockQ5_1>(x, weights, dst, n, [](const float* values, const float* w, BlockQ5_1& block) {
    uint8_t codes[kSmallBlock];
    const ScaleOffset so = affine<31>(values, w, codes);
    block.d = so.d;
    block.m = so.m;
    pack_nibbles(codes, block.qs);
    pack_fifth_bits(codes, block.qh);
  });
}

// The largest magnitude needs 127 steps; the half-precision scales around that, a little below too, are all tried.
void quantize_q8_0(const float* x, const float* weights, void* dst, int64_t n) {
  using Grid = IntegerGrid<-127, 127>;
  each_block<BlockQ8_0>(x, weights, dst, n, [](const float* values, const float* w, BlockQ8_0& block) {
    const uint16_t middle = f32_to_f16(largest_magnitude<kSmallBlock>(values) / 127);
    block.d = middle;
    float best = std::numeric_limits<float>::infinity();
    for (int d = std::max(middle - 4, 0); d <= middle + 2 && d < 0x7c00; ++d) {
      const float error = grid_error<kSmallBlock, Grid>(values, w, f16_to_f32(static_cast<uint16_t>(d)));
      if (error < best) {
        best = error;
        block.d = static_cast<uint16_t>(d);
      }
    }
    const float scale = f16_to_f32(block.d);
    uint8_t codes[kSmallBlock];
    encode<kSmallBlock, Grid>(values, scale != 0 ? 1 / scale : 0, codes);
    for (int i = 0; i < kSmallBlock; ++i) block.qs[i] = static_cast<int8_t>(codes[i] - 127);
  });
}

// Power-of-two scales: the one that keeps the largest value below 8, and its neighbours.
void quantize_mxfp4(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockMXFP4>(x, weights, dst, n, [](const float* values, const float* w, BlockMXFP4& block) {
    const float top = largest_magnitude<kSmallBlock>(values);
    const int middle = top > 0 ? std::ilogb(top) - 2 + 127 : 0;
    block.e = 0;
    float best = std::numeric_limits<float>::infinity();
    for (int e = std::max(middle - 1, 0); e <= std::min(middle + 1, 254); ++e) {
      const float error = grid_error<kSmallBlock, E2M1Grid>(values, w, std::ldexp(1.0f, e - 128));
      if (error < best) {
        best = error;
        block.e = static_cast<uint8_t>(e);
      }
    }
    uint8_t codes[kSmallBlock];
    encode<kSmallBlock, E2M1Grid>(values, std::ldexp(1.0f, 128 - block.e), codes);
    pack_nibbles(codes, block.qs);
  });
}

}  // namespace crest::tensor::detail
