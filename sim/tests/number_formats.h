// Naive decoding of every number format the matrix and conversion instructions know, straight from the definitions.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "big_integer.h"

namespace crest_sim_test {

enum class TopExponent { kFinite, kIeee, kLastIsNan, kFnuz };

struct Format {
  const char* name;
  int exponent_bits, mantissa_bits, bias;
  TopExponent top;
  int width() const { return 1 + exponent_bits + mantissa_bits; }
  uint32_t mask() const { return width() == 32 ? ~0u : (1u << width()) - 1; }
  uint32_t codes() const { return mask() + 1; }  ///< of formats below 32 bits
};

inline constexpr Format kF32{"f32", 8, 23, 127, TopExponent::kIeee};
inline constexpr Format kF16{"f16", 5, 10, 15, TopExponent::kIeee};
inline constexpr Format kBf16{"bf16", 8, 7, 127, TopExponent::kIeee};
inline constexpr Format kTf32{"xf32", 8, 10, 127, TopExponent::kIeee};
inline constexpr Format kE4M3{"fp8", 4, 3, 7, TopExponent::kLastIsNan};
inline constexpr Format kE5M2{"bf8", 5, 2, 15, TopExponent::kIeee};
inline constexpr Format kE4M3Fnuz{"fp8 fnuz", 4, 3, 8, TopExponent::kFnuz};
inline constexpr Format kE5M2Fnuz{"bf8 fnuz", 5, 2, 16, TopExponent::kFnuz};
inline constexpr Format kE2M3{"fp6", 2, 3, 1, TopExponent::kFinite};
inline constexpr Format kE3M2{"bf6", 3, 2, 3, TopExponent::kFinite};
inline constexpr Format kE2M1{"fp4", 2, 1, 1, TopExponent::kFinite};

enum class Kind { kFinite, kInfinite, kNan };

/// value = ±significand × 2^(exponent - mantissa_bits); a subnormal has the smallest exponent of the format.
struct Decoded {
  Kind kind = Kind::kFinite;
  bool negative = false;
  int64_t significand = 0;
  int exponent = 0;
  int mantissa_bits = 0;

  double value() const {
    if (kind == Kind::kNan) return std::nan("");
    const double magnitude =
        kind == Kind::kInfinite ? INFINITY : std::ldexp(double(significand), exponent - mantissa_bits);
    return negative ? -magnitude : magnitude;
  }
};

inline Decoded decode(const Format& f, uint32_t code) {
  Decoded d;
  d.mantissa_bits = f.mantissa_bits;
  d.negative = code >> (f.width() - 1) & 1;
  const uint32_t field = code >> f.mantissa_bits & ((1u << f.exponent_bits) - 1);
  const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  const uint32_t last = (1u << f.exponent_bits) - 1;
  if (f.top == TopExponent::kFnuz && code == 1u << (f.width() - 1)) {
    d.kind = Kind::kNan;
    return d;
  }
  if (f.top == TopExponent::kIeee && field == last) {
    d.kind = mantissa ? Kind::kNan : Kind::kInfinite;
    return d;
  }
  if (f.top == TopExponent::kLastIsNan && field == last && mantissa == (1u << f.mantissa_bits) - 1) {
    d.kind = Kind::kNan;
    return d;
  }
  d.significand = field ? int64_t(mantissa) | int64_t(1) << f.mantissa_bits : int64_t(mantissa);
  d.exponent = int(field ? field : 1) - f.bias;
  return d;
}

/// The code of a value that the format can hold exactly; ~0 if it cannot.
inline uint32_t encode_exact(const Format& f, double value) {
  const bool negative = std::signbit(value);
  const double magnitude = std::fabs(value);
  const uint32_t sign = uint32_t(negative) << (f.width() - 1);
  if (magnitude == 0) return f.top == TopExponent::kFnuz ? 0 : sign;
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - f.bias) exponent = 1 - f.bias;
  const double scaled = std::ldexp(magnitude, f.mantissa_bits - exponent);
  const auto significand = uint32_t(scaled);
  if (scaled != significand) return ~0u;
  const uint32_t hidden = 1u << f.mantissa_bits;
  const uint32_t code =
      significand < hidden ? significand : (uint32_t(exponent + f.bias) << f.mantissa_bits) | (significand - hidden);
  return decode(f, sign | code).value() == value ? sign | code : ~0u;
}

/// Encodes ±magnitude × 2^exponent in fp32 with round-to-nearest-even.
inline uint32_t encode_f32(const BigInteger& value, int exponent) {
  const Rounded r = round_to_nearest_even(value.magnitude(), exponent, 24, -126);
  const uint32_t sign = value.negative() ? 0x80000000u : 0;
  if (r.exponent > 127) return sign | 0x7f800000u;
  if (r.significand < 1 << 23) return sign | uint32_t(r.significand);
  return sign | uint32_t(r.exponent + 127) << 23 | (uint32_t(r.significand) & 0x7fffff);
}

}  // namespace crest_sim_test
