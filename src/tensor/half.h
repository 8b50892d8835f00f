#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace crest::tensor {

// Written with selections instead of branches, so that loops over arrays vectorise.

/// IEEE binary16 bits of a float, round to nearest even; NaN stays a quiet NaN.
inline uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  // Adding 0.5 aligns the value so that the float unit itself rounds it to a multiple of 2^-24.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  const uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
  uint32_t half = magnitude < 0x38800000 ? subnormal : normal;
  half = magnitude >= 0x477ff000 ? 0x7c00 : half;
  half = magnitude > 0x7f800000 ? nan : half;
  return static_cast<uint16_t>(sign | half);
}

inline float f16_to_f32(uint16_t half) {
  const uint32_t sign = uint32_t{half} << 16 & 0x80000000;
  const uint32_t magnitude = half & 0x7fff;
  const uint32_t normal = (magnitude << 13) + 0x38000000;
  // 2^-14 * (1 + mantissa) - 2^-14: exact, and no slow fp32 subnormals on the way.
  const float subnormal = std::bit_cast<float>(normal + 0x800000) - 0x1p-14f;
  const uint32_t finite = magnitude < 0x400 ? std::bit_cast<uint32_t>(subnormal) : normal;
  const uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
  const uint32_t infinite = 0x7f800000 | magnitude << 13 | quiet;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00 ? infinite : finite));
}

/// bfloat16 bits of a float, round to nearest even; NaN stays a quiet NaN, subnormals are kept.
inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float bf16_to_f32(uint16_t value) { return std::bit_cast<float>(uint32_t{value} << 16); }

}  // namespace crest::tensor
