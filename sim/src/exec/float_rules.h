// Scalar rules of floating-point operations where AMD's differ from the host's instructions.
#pragma once

#include "exec/half.h"

namespace crest_sim::CREST_SIM_LEVEL {

inline bool is_nan(uint32_t x) { return (x & 0x7fffffff) > 0x7f800000; }
inline bool is_signalling(uint32_t x) { return is_nan(x) && !(x & 0x400000); }
inline bool is_nan16(uint32_t x) { return (x & 0x7fff) > 0x7c00; }
inline bool is_signalling16(uint32_t x) { return is_nan16(x) && !(x & 0x200); }

/// minNum/maxNum: a NaN gives way to a number, -0 < +0; in IEEE mode a signalling NaN wins and becomes quiet.
template <bool Max, bool Ieee>
inline uint32_t pick32(uint32_t a, uint32_t b) {
  float x = as_float(a), y = as_float(b);
  bool first = Max ? x > y : x < y;
  uint32_t ties = Max ? a & b : a | b;
  uint32_t r = first ? a : x == y ? ties : b;
  r = is_nan(b) ? a : r;
  r = is_nan(a) ? b : r;
  if constexpr (Ieee) {
    r = is_signalling(b) ? b | 0x400000 : r;
    r = is_signalling(a) ? a | 0x400000 : r;
  }
  return r;
}

template <bool Max, bool Ieee>
inline uint32_t pick16(uint32_t a, uint32_t b) {
  float x = half_to_float(a), y = half_to_float(b);
  bool first = Max ? x > y : x < y;
  uint32_t ties = Max ? a & b : a | b;
  uint32_t r = first ? a : x == y ? ties : b;
  r = is_nan16(b) ? a : r;
  r = is_nan16(a) ? b : r;
  if constexpr (Ieee) {
    r = is_signalling16(b) ? b | 0x200 : r;
    r = is_signalling16(a) ? a | 0x200 : r;
  }
  return r;
}

template <bool Max, bool Ieee>
inline uint64_t pick64(uint64_t a, uint64_t b) {
  auto nan = [](uint64_t x) { return (x & 0x7fffffffffffffff) > 0x7ff0000000000000; };
  constexpr uint64_t quiet = 0x8000000000000;
  if (Ieee && nan(a) && !(a & quiet)) return a | quiet;
  if (Ieee && nan(b) && !(b & quiet)) return b | quiet;
  if (nan(a)) return b;
  if (nan(b)) return a;
  double x = as_double(a), y = as_double(b);
  if (x == y) return Max ? a & b : a | b;
  return (Max ? x > y : x < y) ? a : b;
}

template <bool Ieee>
inline uint32_t median32(uint32_t a, uint32_t b, uint32_t c) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return pick32<false, Ieee>(pick32<false, Ieee>(a, b), c);
  return pick32<true, Ieee>(pick32<false, Ieee>(a, b), pick32<false, Ieee>(pick32<true, Ieee>(a, b), c));
}
template <bool Ieee>
inline uint32_t median16(uint32_t a, uint32_t b, uint32_t c) {
  if (is_nan16(a) || is_nan16(b) || is_nan16(c)) return pick16<false, Ieee>(pick16<false, Ieee>(a, b), c);
  return pick16<true, Ieee>(pick16<false, Ieee>(a, b), pick16<false, Ieee>(pick16<true, Ieee>(a, b), c));
}

/// x - floor(x), below 1 even where the subtraction rounds up.
inline float fract(float x) {
  float r = x - __builtin_floorf(x);
  return r > 0x1.fffffep-1f ? 0x1.fffffep-1f : r;
}

inline double power_of_two(int e) { return as_double(static_cast<uint64_t>(static_cast<int64_t>(e) + 1023) << 52); }

/// x · 2^e with one rounding.
inline float scale(float x, int32_t e) {
  int bounded = e > 400 ? 400 : e < -400 ? -400 : e;
  return static_cast<float>(static_cast<double>(x) * power_of_two(bounded));
}

/// The bit of v_cmp_class's mask that a value belongs to: sNaN, qNaN, -inf, -normal, -denormal, -0, +0, +denormal,
/// +normal, +inf.
inline int float_class(bool negative, bool exponent_zero, bool exponent_full, bool fraction_zero, bool quiet) {
  if (exponent_full) return fraction_zero ? (negative ? 2 : 9) : quiet ? 1 : 0;
  if (exponent_zero) return fraction_zero ? (negative ? 5 : 6) : negative ? 4 : 7;
  return negative ? 3 : 8;
}

}  // namespace crest_sim::CREST_SIM_LEVEL
