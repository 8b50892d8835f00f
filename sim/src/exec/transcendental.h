// exp2, log2, reciprocals and roots as the hardware offers them: about 1 ulp there, from unpublished tables; here the
// f64 result rounded once. Denormal inputs and results of the f32 forms are flushed (LLVM's lowering relies on no
// more).
#pragma once

#include "exec/float_rules.h"

namespace crest_sim::CREST_SIM_LEVEL {

inline float flush(float x) { return as_float((as_bits(x) & 0x7f800000) ? as_bits(x) : as_bits(x) & 0x80000000); }

/// 2^x for |x| ≤ 1000, relative error below 2^-32: Taylor in x·ln 2 around the nearest integer.
inline double exp2_wide(double x) {
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer, which its low bits then hold
  double shifted = x + kRound, t = (x - (shifted - kRound)) * 0.693147180559945309417, z = t * t;
  double low = (1.0 + t) + z * (0.5 + t * (1.0 / 6));
  double high = (1.0 / 24 + t * (1.0 / 120)) + z * ((1.0 / 720 + t * (1.0 / 5040)) + z * (1.0 / 40320));
  double p = low + z * z * high;
  return as_double(as_bits(p) + (as_bits(shifted) << 52));
}

inline float exp2_f32(float x) {
  float bounded = x > 200.0f ? 200.0f : x > -200.0f ? x : -200.0f;  // NaN → -200, repaired below
  float r = flush(static_cast<float>(exp2_wide(static_cast<double>(flush(bounded)))));
  return x != x ? x : r;
}

/// log2 of a positive normal number: exponent + 2/ln 2 · atanh((m - 1)/(m + 1)), m in [√½, √2).
inline double log2_wide(double x) {
  uint64_t bits = as_bits(x);
  uint64_t shifted = bits - 0x3fe6a09e667f3bcdull;
  double e = static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(shifted) >> 52));
  double m = as_double(bits - (shifted & 0xfff0000000000000ull));
  double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 1.0 / 17;
  p = p * z + 1.0 / 15, p = p * z + 1.0 / 13, p = p * z + 1.0 / 11, p = p * z + 1.0 / 9, p = p * z + 1.0 / 7,
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3, p = p * z + 1.0;
  return e + s * p * 2.885390081777926814720;
}

inline float log2_f32(float input) {
  float x = flush(input);
  bool usable = x > 0.0f && x < __builtin_inff();
  float r = static_cast<float>(log2_wide(usable ? static_cast<double>(x) : 1.0));
  float special = x == 0.0f ? -__builtin_inff() : x > 0.0f ? x : x != x ? x : as_float(0x7fc00000);
  return usable ? r : special;
}

inline float rcp_f32(float x) { return flush(1.0f / flush(x)); }
inline float sqrt_f32(float x) { return __builtin_sqrtf(flush(x)); }
inline float rsq_f32(float input) {
  float x = flush(input);
  float r = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x)));
  return x == 0.0f ? as_float((as_bits(x) & 0x80000000) | 0x7f800000) : r;
}

/// sin(2π·t) for any t of moderate size: fold into a quarter turn, then the Taylor series.
inline double sine_of_turns(double t) {
  double halves = __builtin_roundeven(t * 2);
  double x = (t - halves * 0.5) * 6.28318530717958647692, z = x * x;
  double p = -1.0 / 121645100408832000.0;
  p = p * z + 1.0 / 355687428096000.0, p = p * z - 1.0 / 1307674368000.0, p = p * z + 1.0 / 6227020800.0,
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0, p = p * z - 1.0 / 5040.0, p = p * z + 1.0 / 120.0, p = p * z - 1.0 / 6.0, p = p * z + 1.0;
  double s = p * x;
  return static_cast<int32_t>(halves) & 1 ? -s : s;
}

/// Input in revolutions; beyond ±256 the hardware gives 0 (sin) and 1 (cos), NaN for infinities.
inline float sin_f32(float x) {
  bool inside = x >= -256.0f && x <= 256.0f, infinite = __builtin_fabsf(x) == __builtin_inff();
  float r = static_cast<float>(sine_of_turns(inside ? static_cast<double>(x) : 0.0));
  r = x == 0.0f ? x : r;
  return infinite || x != x ? as_float(0x7fc00000) : inside ? r : 0.0f;
}
inline float cos_f32(float x) {
  bool inside = x >= -256.0f && x <= 256.0f, infinite = __builtin_fabsf(x) == __builtin_inff();
  float r = static_cast<float>(sine_of_turns((inside ? static_cast<double>(x) : 0.0) + 0.25));
  return infinite || x != x ? as_float(0x7fc00000) : inside ? r : 1.0f;
}

}  // namespace crest_sim::CREST_SIM_LEVEL
