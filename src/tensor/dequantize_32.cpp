#include <bit>

#include "tensor/blocks.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

// Types with 32 elements a block. The loops over 16 bytes give elements j and j + 16.
namespace crest::tensor::detail {
namespace {

template <typename Block, typename Body>
void each_block(const void* src, float* dst, int64_t n, Body body) {
  const auto* blocks = static_cast<const Block*>(src);
  for (int64_t i = 0; i < n / kSmallBlock; ++i) body(blocks[i], dst + i * kSmallBlock);
}

// The fifth bits of elements j and j + 16, at bit 4.
struct HighBits {
  explicit HighBits(const uint8_t* qh)
      : bits(static_cast<uint32_t>(qh[0]) | qh[1] << 8 | qh[2] << 16 | static_cast<uint32_t>(qh[3]) << 24) {}
  int low(int j) const { return static_cast<int>(bits >> j << 4 & 16); }
  int high(int j) const { return static_cast<int>(bits >> (j + 12) & 16); }
  uint32_t bits;
};

// 2^(e-128): half of the scale, because the table holds doubled values.
float half_e8m0(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? uint32_t{0x00200000} << e : static_cast<uint32_t>(e - 1) << 23);
}

template <typename Block>
void by_table(const Block& block, float d, const int8_t (&table)[16], float* y) {
  for (int j = 0; j < 16; ++j) y[j] = d * static_cast<float>(table[block.qs[j] & 15]);
  for (int j = 0; j < 16; ++j) y[j + 16] = d * static_cast<float>(table[block.qs[j] >> 4]);
}

}  // namespace

void dequantize_q4_0(const void* src, float* dst, int64_t n) {
  each_block<BlockQ4_0>(src, dst, n, [](const BlockQ4_0& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int j = 0; j < 16; ++j) y[j] = d * static_cast<float>((b.qs[j] & 15) - 8);
    for (int j = 0; j < 16; ++j) y[j + 16] = d * static_cast<float>((b.qs[j] >> 4) - 8);
  });
}

void dequantize_q4_1(const void* src, float* dst, int64_t n) {
  each_block<BlockQ4_1>(src, dst, n, [](const BlockQ4_1& b, float* y) {
    const float d = f16_to_f32(b.d);
    const float m = f16_to_f32(b.m);
    for (int j = 0; j < 16; ++j) y[j] = d * static_cast<float>(b.qs[j] & 15) + m;
    for (int j = 0; j < 16; ++j) y[j + 16] = d * static_cast<float>(b.qs[j] >> 4) + m;
  });
}

void dequantize_q5_0(const void* src, float* dst, int64_t n) {
  each_block<BlockQ5_0>(src, dst, n, [](const BlockQ5_0& b, float* y) {
    const float d = f16_to_f32(b.d);
    const HighBits bits(b.qh);
    for (int j = 0; j < 16; ++j) y[j] = d * static_cast<float>(((b.qs[j] & 15) | bits.low(j)) - 16);
    for (int j = 0; j < 16; ++j) y[j + 16] = d * static_cast<float>((b.qs[j] >> 4 | bits.high(j)) - 16);
  });
}

void dequantize_q5_1(const void* src, float* dst, int64_t n) {
  each_block<BlockQ5_1>(src, dst, n, [](const BlockQ5_1& b, float* y) {
    const float d = f16_to_f32(b.d);
    const float m = f16_to_f32(b.m);
    const HighBits bits(b.qh);
    for (int j = 0; j < 16; ++j) y[j] = d * static_cast<float>((b.qs[j] & 15) | bits.low(j)) + m;
    for (int j = 0; j < 16; ++j) y[j + 16] = d * static_cast<float>(b.qs[j] >> 4 | bits.high(j)) + m;
  });
}

void dequantize_q8_0(const void* src, float* dst, int64_t n) {
  each_block<BlockQ8_0>(src, dst, n, [](const BlockQ8_0& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int j = 0; j < 32; ++j) y[j] = d * static_cast<float>(b.qs[j]);
  });
}

void dequantize_iq4_nl(const void* src, float* dst, int64_t n) {
  each_block<BlockIQ4_NL>(src, dst, n,
                          [](const BlockIQ4_NL& b, float* y) { by_table(b, f16_to_f32(b.d), kIQ4Values, y); });
}

void dequantize_mxfp4(const void* src, float* dst, int64_t n) {
  each_block<BlockMXFP4>(src, dst, n,
                         [](const BlockMXFP4& b, float* y) { by_table(b, half_e8m0(b.e), kE2M1Doubled, y); });
}

}  // namespace crest::tensor::detail
