#include "tensor/blocks.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

// Types with 256 elements a block and scales of sub-blocks. Loops run over consecutive outputs.
namespace crest::tensor::detail {
namespace {

template <typename Block, typename Body>
void each_block(const void* src, float* dst, int64_t n, Body body) {
  const auto* blocks = static_cast<const Block*>(src);
  for (int64_t i = 0; i < n / kSuperBlock; ++i) body(blocks[i], dst + i * kSuperBlock);
}

}  // namespace

void dequantize_q2_k(const void* src, float* dst, int64_t n) {
  each_block<BlockQ2_K>(src, dst, n, [](const BlockQ2_K& b, float* y) {
    const float d = f16_to_f32(b.d);
    const float dmin = f16_to_f32(b.dmin);
    for (int s = 0; s < 16; ++s) {
      const uint8_t* qs = b.qs + 32 * (s / 8) + 16 * (s % 2);
      const int shift = s % 8 / 2 * 2;
      const float scale = d * static_cast<float>(b.scales[s] & 15);
      const float minimum = dmin * static_cast<float>(b.scales[s] >> 4);
      for (int l = 0; l < 16; ++l) y[16 * s + l] = scale * static_cast<float>(qs[l] >> shift & 3) - minimum;
    }
  });
}

void dequantize_q3_k(const void* src, float* dst, int64_t n) {
  each_block<BlockQ3_K>(src, dst, n, [](const BlockQ3_K& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int s = 0; s < 16; ++s) {
      const uint8_t* qs = b.qs + 32 * (s / 8) + 16 * (s % 2);
      const uint8_t* high = b.hmask + 16 * (s % 2);
      const int shift = s % 8 / 2 * 2;
      const int bit = s / 2;
      const float scale = d * static_cast<float>(unpack_q3_scale(b.scales, s) - 32);
      for (int l = 0; l < 16; ++l) {
        const int q = (qs[l] >> shift & 3) + (high[l] >> bit & 1) * 4 - 4;
        y[16 * s + l] = scale * static_cast<float>(q);
      }
    }
  });
}

void dequantize_q4_k(const void* src, float* dst, int64_t n) {
  each_block<BlockQ4_K>(src, dst, n, [](const BlockQ4_K& b, float* y) {
    const float d = f16_to_f32(b.d);
    const float dmin = f16_to_f32(b.dmin);
    for (int s = 0; s < 8; ++s) {
      const uint8_t* qs = b.qs + 32 * (s / 2);
      const int shift = s % 2 * 4;
      const ScaleMin sm = unpack_scale_min(b.scales, s);
      const float scale = d * static_cast<float>(sm.scale);
      const float minimum = dmin * static_cast<float>(sm.minimum);
      for (int l = 0; l < 32; ++l) y[32 * s + l] = scale * static_cast<float>(qs[l] >> shift & 15) - minimum;
    }
  });
}

void dequantize_q5_k(const void* src, float* dst, int64_t n) {
  each_block<BlockQ5_K>(src, dst, n, [](const BlockQ5_K& b, float* y) {
    const float d = f16_to_f32(b.d);
    const float dmin = f16_to_f32(b.dmin);
    for (int s = 0; s < 8; ++s) {
      const uint8_t* qs = b.qs + 32 * (s / 2);
      const int shift = s % 2 * 4;
      const ScaleMin sm = unpack_scale_min(b.scales, s);
      const float scale = d * static_cast<float>(sm.scale);
      const float minimum = dmin * static_cast<float>(sm.minimum);
      for (int l = 0; l < 32; ++l) {
        const int q = (qs[l] >> shift & 15) + (b.qh[l] >> s & 1) * 16;
        y[32 * s + l] = scale * static_cast<float>(q) - minimum;
      }
    }
  });
}

void dequantize_q6_k(const void* src, float* dst, int64_t n) {
  each_block<BlockQ6_K>(src, dst, n, [](const BlockQ6_K& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int s = 0; s < 16; ++s) {
      const int part = s % 8 / 2;  // which 32 of the 128
      const uint8_t* ql = b.ql + 64 * (s / 8) + 32 * (part % 2) + 16 * (s % 2);
      const uint8_t* qh = b.qh + 32 * (s / 8) + 16 * (s % 2);
      const int low_shift = part / 2 * 4;
      const int high_shift = part * 2;
      const float scale = d * static_cast<float>(b.scales[s]);
      for (int l = 0; l < 16; ++l) {
        const int q = (ql[l] >> low_shift & 15) + (qh[l] >> high_shift & 3) * 16 - 32;
        y[16 * s + l] = scale * static_cast<float>(q);
      }
    }
  });
}

void dequantize_iq4_xs(const void* src, float* dst, int64_t n) {
  each_block<BlockIQ4_XS>(src, dst, n, [](const BlockIQ4_XS& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int s = 0; s < 8; ++s) {
      const uint8_t* qs = b.qs + 16 * s;
      const int scale = (b.scales_l[s / 2] >> (s % 2 * 4) & 15) | (b.scales_h >> (2 * s) & 3) << 4;
      const float dl = d * static_cast<float>(scale - 32);
      for (int j = 0; j < 16; ++j) y[32 * s + j] = dl * static_cast<float>(kIQ4Values[qs[j] & 15]);
      for (int j = 0; j < 16; ++j) y[32 * s + j + 16] = dl * static_cast<float>(kIQ4Values[qs[j] >> 4]);
    }
  });
}

}  // namespace crest::tensor::detail
