// Narrowing to small floating-point formats, by search among the values of the format.
#pragma once

#include <cmath>

#include "number_formats.h"

namespace crest_sim_test {

/// Magnitude of a code as if the format had no infinities and NaNs, so that the place of the next larger value is
/// known.
inline double plain_magnitude(const Format& f, uint32_t code) {
  const uint32_t field = code >> f.mantissa_bits, mantissa = code & ((1u << f.mantissa_bits) - 1);
  const double significand = field ? (1u << f.mantissa_bits) + mantissa : mantissa;
  return std::ldexp(significand, int(field ? field : 1) - f.bias - f.mantissa_bits);
}

/// Codes: largest finite value, overflow without saturation, NaN (without sign).
struct EndCodes {
  uint32_t largest, overflow, nan;
};
inline EndCodes end_codes(const Format& f) {
  const uint32_t last = (1u << (f.width() - 1)) - 1;
  switch (f.top) {
    case TopExponent::kFinite:
      return {last, last, last};
    case TopExponent::kLastIsNan:
      return {last - 1, last, last};
    case TopExponent::kFnuz:
      return {last, last + 1, last + 1};
    default: {
      const uint32_t infinity = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
      return {infinity - 1, infinity, last};
    }
  }
}

inline uint32_t finish_code(const Format& f, uint32_t code, double x, bool saturate) {
  const EndCodes ends = end_codes(f);
  if (code > ends.largest) code = saturate || f.top == TopExponent::kFinite ? ends.largest : ends.overflow;
  const bool negative = std::signbit(x);
  if (f.top == TopExponent::kFnuz && (code == 0 || code == ends.nan)) return code;
  return code | (negative ? 1u << (f.width() - 1) : 0);
}

inline uint32_t narrow_nearest(const Format& f, double x, bool saturate) {
  if (std::isnan(x)) {
    const bool has_sign = f.top != TopExponent::kFnuz && std::signbit(x);
    return end_codes(f).nan | (has_sign ? 1u << (f.width() - 1) : 0);
  }
  const double magnitude = std::fabs(x);
  const uint32_t end = end_codes(f).largest + 1;
  if (magnitude >= plain_magnitude(f, end)) return finish_code(f, end, x, saturate);
  uint32_t low = 0, high = end;  // value(low) ≤ magnitude < value(high)
  while (high - low > 1) {
    const uint32_t mid = (low + high) / 2;
    (plain_magnitude(f, mid) <= magnitude ? low : high) = mid;
  }
  const double down = magnitude - plain_magnitude(f, low), up = plain_magnitude(f, high) - magnitude;
  return finish_code(f, down < up || (down == up && low % 2 == 0) ? low : high, x, saturate);
}

/// Stochastic: the significand is cut to 23 bits below the larger of its exponent and the smallest normal one, the
/// upper seed bits are added below the last place kept, and the rest is cut.
inline uint32_t narrow_stochastic(const Format& f, double x, uint32_t seed, bool saturate) {
  if (std::isnan(x)) return narrow_nearest(f, x, saturate);
  const double magnitude = std::fabs(x);
  const uint32_t end = end_codes(f).largest + 1;
  if (magnitude >= 2 * plain_magnitude(f, end)) return finish_code(f, end, x, saturate);
  if (magnitude == 0) return finish_code(f, 0, x, saturate);
  const int exponent = std::max(std::ilogb(magnitude), 1 - f.bias), drop = 23 - f.mantissa_bits;
  const double units = std::floor(std::ldexp(magnitude, 23 - exponent)) + double(seed >> (32 - drop));
  const double value = std::ldexp(std::floor(units / std::ldexp(1.0, drop)), exponent - f.mantissa_bits);
  uint32_t low = 0, high = 2 * end;
  while (high - low > 1) {
    const uint32_t mid = (low + high) / 2;
    (plain_magnitude(f, mid) <= value ? low : high) = mid;
  }
  return finish_code(f, low, x, saturate);
}

/// fp32 bits of the nearest fp32 value.
inline uint32_t to_f32_bits(double x) { return __builtin_bit_cast(uint32_t, float(x)); }

inline uint32_t bf16_nearest(uint32_t word) {
  const Decoded d = decode(kF32, word);
  if (d.kind == Kind::kNan) return (word >> 16) | 0x40;
  if (d.kind == Kind::kInfinite) return word >> 16;
  const Rounded r = round_to_nearest_even(BigInteger(d.significand), d.exponent - 23, 8, -126);
  const uint32_t sign = word >> 16 & 0x8000;
  if (r.exponent > 127) return sign | 0x7f80;
  return sign | (r.significand < 128 ? uint32_t(r.significand)
                                     : uint32_t(r.exponent + 127) << 7 | (uint32_t(r.significand) & 127));
}

}  // namespace crest_sim_test
