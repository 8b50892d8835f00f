#pragma once

#include <cstdint>

namespace crest::tensor {

/// Block layouts of GGUF (little-endian), readable at any address. Halves are kept as bits.
inline constexpr int kSmallBlock = 32;
inline constexpr int kSuperBlock = 256;

#pragma pack(push, 1)
struct BlockQ4_0 {  // y = d * (q - 8); low nibbles are elements 0-15, high nibbles 16-31
  uint16_t d;
  uint8_t qs[16];
};
struct BlockQ4_1 {  // y = d * q + m
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
};
struct BlockQ5_0 {  // as Q4_0 with bit 4 of element j in bit j of qh; y = d * (q - 16)
  uint16_t d;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ5_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ8_0 {
  uint16_t d;
  int8_t qs[32];
};
struct BlockIQ4_NL {  // y = d * kIQ4Values[q]
  uint16_t d;
  uint8_t qs[16];
};
struct BlockMXFP4 {  // y = 2^(e-127) * e2m1(q)
  uint8_t e;
  uint8_t qs[16];
};
struct BlockQ2_K {  // 16 sub-blocks of 16; scales: low nibble scale, high nibble minimum
  uint8_t scales[16];
  uint8_t qs[64];
  uint16_t d;
  uint16_t dmin;
};
struct BlockQ3_K {  // 16 sub-blocks of 16, 6-bit scales around 32
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint16_t d;
};
struct BlockQ4_K {  // 8 sub-blocks of 32, 6-bit scales and minima
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};
struct BlockQ5_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
struct BlockQ6_K {  // 16 sub-blocks of 16, 8-bit scales
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};
struct BlockIQ4_XS {  // 8 sub-blocks of 32, 6-bit scales around 32
  uint16_t d;
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};
struct BlockIQ2_XXS {
  uint16_t d;
  uint16_t qs[32];
};
struct BlockIQ2_XS {
  uint16_t d;
  uint16_t qs[32];
  uint8_t scales[8];
};
struct BlockIQ2_S {
  uint16_t d;
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};
struct BlockIQ3_XXS {
  uint16_t d;
  uint8_t qs[64];
  uint8_t scales_signs[32];
};
struct BlockIQ3_S {
  uint16_t d;
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
#pragma pack(pop)

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockMXFP4) == 17);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210 && sizeof(BlockIQ4_XS) == 136);
static_assert(sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74 && sizeof(BlockIQ2_S) == 82);
static_assert(sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ3_S) == 110);

/// Values of the 16 codes of IQ4_NL and IQ4_XS.
inline constexpr int8_t kIQ4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
/// Twice the values of the 16 E2M1 codes.
inline constexpr int8_t kE2M1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Scale and minimum (6 bits each) of sub-block j of Q4_K and Q5_K.
struct ScaleMin {
  uint8_t scale;
  uint8_t minimum;
};
inline ScaleMin unpack_scale_min(const uint8_t* scales, int j) {
  if (j < 4) return {static_cast<uint8_t>(scales[j] & 63), static_cast<uint8_t>(scales[j + 4] & 63)};
  return {static_cast<uint8_t>((scales[j + 4] & 15) | scales[j - 4] >> 6 << 4),
          static_cast<uint8_t>(scales[j + 4] >> 4 | scales[j] >> 6 << 4)};
}
inline void pack_scale_min(uint8_t* scales, int j, ScaleMin value) {
  if (j < 4) {
    scales[j] = static_cast<uint8_t>((scales[j] & 0xc0) | value.scale);
    scales[j + 4] = static_cast<uint8_t>((scales[j + 4] & 0xc0) | value.minimum);
    return;
  }
  scales[j + 4] = static_cast<uint8_t>((value.scale & 15) | (value.minimum & 15) << 4);
  scales[j - 4] = static_cast<uint8_t>((scales[j - 4] & 0x3f) | value.scale >> 4 << 6);
  scales[j] = static_cast<uint8_t>((scales[j] & 0x3f) | value.minimum >> 4 << 6);
}

/// 6-bit scale of sub-block j (0-15) of Q3_K, without the offset of 32.
inline int unpack_q3_scale(const uint8_t* scales, int j) {
  const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
  return low | (scales[8 + j % 4] >> (2 * (j / 4)) & 3) << 4;
}
/// The bytes must be zero before the first call.
inline void pack_q3_scale(uint8_t* scales, int j, int value) {
  scales[j % 8] = static_cast<uint8_t>(scales[j % 8] | (value & 15) << (j < 8 ? 0 : 4));
  scales[8 + j % 4] = static_cast<uint8_t>(scales[8 + j % 4] | value >> 4 << (2 * (j / 4)));
}

}  // namespace crest::tensor
