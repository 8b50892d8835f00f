#pragma once

#include <bit>
#include <cstdint>

namespace crest::tensor {

/// 8-bit floats: sign, 4 exponent bits, 3 mantissa bits. e4m3fn (OCP): bias 7, largest value 448, 0x7f and 0xff are
/// NaN, no infinities. e4m3fnuz (gfx942): bias 8, largest value 240, no negative zero, 0x80 is the only NaN. From
/// float: round to nearest even; whatever rounds beyond the largest value, infinities included, becomes the largest
/// value with its sign (saturation, the one rule on every device); NaN stays NaN.
namespace fp8_detail {

/// Magnitude bits (0 to 0x7f) of |value|, not above `largest`. `bias` is the format's exponent bias.
inline uint8_t round_magnitude(float magnitude, int bias, uint8_t largest) {
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  const int smallest_exponent = 128 - bias;  // biased fp32 exponent of the smallest normal number
  if (static_cast<int>(bits >> 23) < smallest_exponent) {
    // Adding 2^k whose unit in the last place is the format's smallest step lets the float unit round.
    const auto anchor_bits = static_cast<uint32_t>(smallest_exponent - 3 + 23) << 23;
    const float sum = magnitude + std::bit_cast<float>(anchor_bits);
    return static_cast<uint8_t>(std::bit_cast<uint32_t>(sum) - anchor_bits);
  }
  const uint32_t rounded = bits + 0x7ffff + (bits >> 20 & 1);
  const uint32_t code = (rounded >> 20) - (static_cast<uint32_t>(127 - bias) << 3);
  return code > largest ? largest : static_cast<uint8_t>(code);
}

constexpr float magnitude_to_f32(uint8_t magnitude, int bias) {
  const uint32_t exponent = magnitude >> 3;
  const uint32_t mantissa = magnitude & 7;
  if (exponent == 0) {
    const float step = std::bit_cast<float>(static_cast<uint32_t>(128 - bias - 3) << 23);
    return static_cast<float>(mantissa) * step;
  }
  return std::bit_cast<float>((exponent + 127 - static_cast<uint32_t>(bias)) << 23 | mantissa << 20);
}

}  // namespace fp8_detail

inline uint8_t f32_to_e4m3fn(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80);
  if ((bits & 0x7fffffff) > 0x7f800000) return sign | 0x7f;
  return sign | fp8_detail::round_magnitude(std::bit_cast<float>(bits & 0x7fffffff), 7, 0x7e);
}

constexpr float e4m3fn_to_f32(uint8_t code) {
  const uint8_t magnitude = code & 0x7f;
  const float value =
      magnitude == 0x7f ? std::bit_cast<float>(0x7fc00000u) : fp8_detail::magnitude_to_f32(magnitude, 7);
  return code & 0x80 ? -value : value;
}

inline uint8_t f32_to_e4m3fnuz(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x80;
  const uint8_t magnitude = fp8_detail::round_magnitude(std::bit_cast<float>(bits & 0x7fffffff), 8, 0x7f);
  return magnitude == 0 ? 0 : static_cast<uint8_t>(magnitude | (bits >> 24 & 0x80));
}

constexpr float e4m3fnuz_to_f32(uint8_t code) {
  if (code == 0x80) return std::bit_cast<float>(0x7fc00000u);
  const float value = fp8_detail::magnitude_to_f32(code & 0x7f, 8);
  return code & 0x80 ? -value : value;
}

}  // namespace crest::tensor
