// f16 ↔ f32. Widening is exact; narrowing follows the host's rounding mode.
#pragma once

#include "exec/common.h"

namespace crest_sim::CREST_SIM_LEVEL {

#if defined(__F16C__)
inline float half_to_float(uint32_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
}
inline uint32_t float_to_half(float x) { return std::bit_cast<uint16_t>(static_cast<_Float16>(x)); }
#else
inline float half_to_float(uint32_t bits) {
  uint32_t sign = (bits & 0x8000) << 16, exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return as_float(sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0));
  if (exponent == 0) {
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return as_float(as_bits(magnitude) | sign);
  }
  return as_float(sign | (exponent + 112) << 23 | fraction << 13);
}
inline uint32_t float_to_half(float x) {
  uint32_t bits = as_bits(x), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((bits >> 13) & 0x1ff);
  if (magnitude == 0x7f800000) return sign | 0x7c00;
  uint32_t exponent = magnitude >> 23, shift = exponent >= 113 ? 13 : 126 - exponent;
  uint32_t significand = exponent ? (magnitude & 0x7fffff) | 0x800000 : magnitude & 0x7fffff;
  if (exponent == 0) shift = 125;
  uint64_t base = exponent >= 113 ? uint64_t(exponent - 113) << 10 : 0;  // the hidden bit adds the last exponent step
  uint64_t kept = shift > 31 ? 0 : significand >> shift;
  uint64_t rest = shift > 31 ? significand : significand & ((1u << shift) - 1),
           half = shift > 31 ? ~0u : 1u << (shift - 1);
  uint32_t rounding = (_mm_getcsr() >> 13) & 3;
  bool up = rounding == 0   ? rest > half || (rest == half && (kept & 1))
            : rounding == 1 ? sign && rest
            : rounding == 2 ? !sign && rest
                            : false;
  uint64_t result = base + kept + up;
  if (result >= 0x7c00)
    return sign | (rounding == 3 || (rounding == 1 && !sign) || (rounding == 2 && sign) ? 0x7bff : 0x7c00);
  return sign | static_cast<uint32_t>(result);
}
#endif

/// An f32 from which rounding to f16 gives what rounding the f64 directly would give (round to odd keeps the sticky
/// bit).
inline float narrow_to_odd(double x) {
  float nearest = static_cast<float>(x);
  uint32_t bits = as_bits(nearest);
  double back = nearest;
  bool inexact = back != x && x == x && (bits & 0x7f800000) != 0x7f800000;
  // Truncate, then set the lowest bit.
  bool too_big = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  uint32_t truncated = bits - static_cast<uint32_t>(too_big);
  return as_float(inexact ? truncated | 1 : bits);
}

inline uint32_t double_to_half(double x) { return float_to_half(narrow_to_odd(x)); }

}  // namespace crest_sim::CREST_SIM_LEVEL
