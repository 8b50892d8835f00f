#include <cmath>

#include "tensor/pack.h"
#include "tensor/quantize_affine.h"
#include "tensor/quantize_kernels.h"
#include "tensor/quantize_scaled.h"

// Types of 32 elements with a scale of their own.
namespace crest::tensor::detail {
namespace {

constexpr ScaleSearch kSearch4{-1.6f, 0.2f, 15};
constexpr ScaleSearch kSearch5{-5.0f, 0.5f, 16};
constexpr ScaleSearch kSearchIQ4{-40.0f, 4.0f, 20};
constexpr AffineSearch kSearchAffine4{-1.5f, 0.3f, 11};
constexpr AffineSearch kSearchAffine5{-3.0f, 0.5f, 11};

template <typename Block, typename Write>
void each_block(const float* x, const float* weights, void* dst, int64_t n, Write write) {
  auto* blocks = static_cast<Block*>(dst);
  for (int64_t b = 0; b < n / kSmallBlock; ++b) write(x + b * kSmallBlock, weights + b * kSmallBlock, blocks[b]);
}

template <typename Grid>
uint16_t scaled(const float* x, const float* weights, const ScaleSearch& search, uint8_t* codes) {
  const ScaledSums sums = search_scale<kSmallBlock, Grid>(x, weights, search);
  const uint16_t d = to_half(sums.scale());
  const float scale = f16_to_f32(d);
  encode<kSmallBlock, Grid>(x, scale != 0 ? 1 / scale : 0, codes);
  return d;
}

struct ScaleOffset {
  uint16_t d;
  uint16_t m;
};
template <int kMaxCode>
ScaleOffset affine(const float* x, const float* weights, const AffineSearch& search, uint8_t* codes) {
  AffineSums sums;
  const AffineFit best = search_affine<kSmallBlock, kMaxCode, false>(x, weights, search, sums);
  const uint16_t d = to_half(best.scale);
  const float scale = f16_to_f32(d);
  // The rounded scale moves the best offset a little.
  const uint16_t m = to_half((sums.x - scale * sums.q) / sums.w);
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
    const ScaleOffset so = affine<15>(values, w, kSearchAffine4, codes);
    block.d = so.d;
    block.m = so.m;
    pack_nibbles(codes, block.qs);
  });
}

void quantize_q5_1(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockQ5_1>(x, weights, dst, n, [](const float* values, const float* w, BlockQ5_1& block) {
    uint8_t codes[kSmallBlock];
    const ScaleOffset so = affine<31>(values, w, kSearchAffine5, codes);
    block.d = so.d;
    block.m = so.m;
    pack_nibbles(codes, block.qs);
    pack_fifth_bits(codes, block.qh);
  });
}

// Errors of neighbouring scales are nearly independent at this many steps, so a slightly larger scale than the least
// one often happens to fit the values better.
void quantize_q8_0(const float* x, const float* weights, void* dst, int64_t n) {
  using Grid = IntegerGrid<-127, 127>;
  constexpr int kCandidates = 24;
  each_block<BlockQ8_0>(x, weights, dst, n, [](const float* values, const float* w, BlockQ8_0& block) {
    const float top = largest_magnitude<kSmallBlock>(values);
    block.d = to_half(top / 127);
    double best = std::numeric_limits<double>::infinity();
    for (int i = -1; i < kCandidates; ++i) {
      const uint16_t d = to_half(top / (127 - 0.5f * static_cast<float>(i)));
      const double error = grid_error<kSmallBlock, Grid>(values, w, f16_to_f32(d));
      if (error < best) {
        best = error;
        block.d = d;
      }
    }
    const float scale = f16_to_f32(block.d);
    uint8_t codes[kSmallBlock];
    encode<kSmallBlock, Grid>(values, scale != 0 ? 1 / scale : 0, codes);
    for (int i = 0; i < kSmallBlock; ++i) block.qs[i] = static_cast<int8_t>(codes[i] - 127);
  });
}

// Power-of-two scales: the one that keeps the largest value below 8, and its neighbours. Scale bytes below 2 would need
// reciprocals that overflow; values so small become 0.
void quantize_mxfp4(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockMXFP4>(x, weights, dst, n, [](const float* values, const float* w, BlockMXFP4& block) {
    const float top = largest_magnitude<kSmallBlock>(values);
    const int middle = top > 0 ? std::ilogb(top) - 2 + 127 : 2;
    block.e = 2;
    double best = std::numeric_limits<double>::infinity();
    for (int e = std::max(middle - 1, 2); e <= std::min(middle + 1, 254); ++e) {
      const double error = grid_error<kSmallBlock, E2M1Grid>(values, w, std::ldexp(1.0f, e - 128));
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
