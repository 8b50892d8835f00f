// The rule of strict_group.h for one element of D in integer arithmetic: tables with infinities, NaNs or products that
// overflow come here.
#pragma once

#include <cmath>

#include "matrix/strict_group.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// significand × 2^(exponent - 23)
struct Parts {
  int64_t significand;
  int exponent;
};

inline Parts split(float x, int min_exponent) {
  const uint32_t word = __builtin_bit_cast(uint32_t, x);
  const int field = word >> 23 & 255;
  int64_t significand = word & 0x7fffff;
  int exponent = field - 127;
  if (field == 0) {
    exponent = kMinExponent;
  } else {
    significand |= 0x800000;
  }
  if (significand == 0) return {0, kMinExponent};
  if (exponent < min_exponent) {  // subnormal in its own format
    significand >>= min_exponent - exponent;
    exponent = min_exponent;
  }
  return {word >> 31 ? -significand : significand, exponent};
}

inline int larger(int a, int b) { return a > b ? a : b; }

/// ⌊value / 2^shift⌋ for any shift ≥ 0.
inline int64_t floor_divide(int64_t value, int shift) { return value >> (shift > 62 ? 62 : shift); }
inline int64_t cut(int64_t value, int shift) {
  const int64_t magnitude = shift > 62 ? 0 : (value < 0 ? -value : value) >> shift;
  return value < 0 ? -magnitude : magnitude;
}

struct ScalarRule {
  int a_min_exponent, b_min_exponent;
  bool two_halves;
  int scale = 0;  ///< exponent added to every product (microscaling)

  struct Sum {
    int64_t sum;  ///< in units of 2^(exponent - 24)
    int exponent;
  };

  Sum sum_products(const float* a, const float* b, int count) const {
    Sum result{0, 2 * kZeroExponent};
    const auto product = [&](int t) {
      const Parts left = split(a[t], a_min_exponent), right = split(b[t], b_min_exponent);
      const int64_t significand = left.significand * right.significand;  // × 2^(exponent - 46)
      return Parts{significand, significand ? left.exponent + right.exponent : kMinExponent};
    };
    for (int t = 0; t < count; ++t) result.exponent = larger(result.exponent, product(t).exponent);
    for (int t = 0; t < count; ++t) {
      const Parts p = product(t);
      result.sum += cut(p.significand, 22 + result.exponent - p.exponent);
    }
    return result;
  }

  /// One group: `per_half` products, or twice as many of which the first half are the even ones.
  float add_group(const float* a, const float* b, int per_half, float c) const {
    bool nan = std::isnan(c);
    bool infinite[2] = {std::isinf(c) && c > 0, std::isinf(c) && c < 0};
    const int count = two_halves ? 2 * per_half : per_half;
    for (int t = 0; t < count; ++t) {
      const double product = double(a[t]) * b[t];
      nan |= std::isnan(product);
      if (std::fabs(product) >= 0x1p128) infinite[product < 0] = true;
    }
    if (nan || (infinite[0] && infinite[1])) return __builtin_bit_cast(float, 0x7fc00000);
    if (infinite[0] || infinite[1]) return infinite[0] ? INFINITY : -INFINITY;

    Sum dot = sum_products(a, b, per_half);
    if (two_halves) {
      const Sum odd = sum_products(a + per_half, b + per_half, per_half);
      const int exponent = larger(dot.exponent, odd.exponent);
      dot.sum = floor_divide(dot.sum, exponent - dot.exponent) + floor_divide(odd.sum, exponent - odd.exponent);
      dot.exponent = exponent;
    }
    if (dot.exponent > kMinExponent) dot.exponent += scale;
    const Parts old = split(c, kMinExponent);
    const int top = larger(dot.exponent, old.exponent);
    const int64_t sum = floor_divide(dot.sum * 128, top - dot.exponent);
    int64_t rest = floor_divide(old.significand * 2, top - old.exponent) * 128;
    if (two_halves && old.exponent < top - 25) rest = 0;
    return float(std::ldexp(double(sum + rest), top - 31));
  }
};

}  // namespace crest_sim::CREST_SIM_LEVEL
