// fp32 → small floating-point formats, vectorised, integer arithmetic only (the host's rounding and denormal modes do
// not matter).
//
// One rule for all targets (KN-3): values round to nearest even (or stochastically) in the target format, subnormals
// included;
//   * above the largest finite value: that value if `saturate` (MODE.FP16_OVFL), else NaN (E4M3, FNUZ) or infinity
//   (E5M2);
//     an infinite input counts as such a value. Formats without NaN always saturate.
//   * NaN: 0x7f with the input's sign in OCP 8-bit formats, 0x80 in FNUZ, the largest value in formats without NaN.
//   * FNUZ has no -0: negative values that round to zero give 0x00.
//   * Stochastic rounding aligns the significand to the smallest normal exponent (cutting what falls off), adds the
//   upper
//     bits of the seed below the last kept place, and cuts.
#pragma once

#include "matrix/decode_small.h"

namespace crest_sim::CREST_SIM_LEVEL {

enum class Rounding : uint8_t { kNearestEven, kStochastic };

/// Code for overflow without saturation, and for NaN (sign added where the format has signed ones).
constexpr int overflow_code(const SmallFormat& f) {
  const int last = (1 << (f.exponent_bits + f.mantissa_bits)) - 1;
  switch (f.special) {
    case Special::kIeee:
      return ((1 << f.exponent_bits) - 1) << f.mantissa_bits;
    case Special::kNone:
      return last;
    case Special::kFnuz:
      return last + 1;
    default:
      return last;
  }
}
constexpr int largest_code(const SmallFormat& f) {
  const int last = (1 << (f.exponent_bits + f.mantissa_bits)) - 1;
  switch (f.special) {
    case Special::kIeee:
      return overflow_code(f) - 1;
    case Special::kAllOnesIsNan:
      return last - 1;
    default:
      return last;
  }
}
constexpr int nan_code(const SmallFormat& f) {
  const int last = (1 << (f.exponent_bits + f.mantissa_bits)) - 1;
  return f.special == Special::kFnuz ? last + 1 : last;
}

/// x · 2^scale in format E. `seed` is used by stochastic rounding only.
template <Element E, bool Fnuz, Rounding R>
CREST_SIM_INLINE WideU narrow(WideU x, WideU seed, WideI scale, bool saturate) {
  constexpr SmallFormat f = small_format(E, Fnuz);
  constexpr int kSign = f.exponent_bits + f.mantissa_bits, kDrop = 23 - f.mantissa_bits;
  const WideI magnitude = bits<WideI>(x & 0x7fffffffu);
  // Subnormal inputs are normalised first: scales can lift them into range.
  const WideI subnormal = magnitude < 0x00800000;
  const WideI lifted = bits<WideI>(__builtin_convertvector(magnitude, WideF));  // magnitude · 2^149 as a float
  const WideI word = select(subnormal, lifted, magnitude);
  const WideI zero = magnitude == 0;
  const WideI exponent = (word >> 23) - 127 + f.bias + scale - (subnormal & 149);
  const WideI significand = (word & 0x7fffff) | 0x800000;
  const WideI one = splat(1);
  const WideI below = vmin(vmax(one - exponent, splat(0)), splat(31));

  WideI kept;
  if constexpr (R == Rounding::kNearestEven) {
    const WideI shift = vmin(below + kDrop, splat(31));  // everything goes from 25 on
    const WideI rest = significand & ((one << shift) - 1), half = one << (shift - 1);
    kept = significand >> shift;
    const WideI up = (rest > half) | ((rest == half) & ((kept & 1) == 1));
    kept -= up;
  } else {
    const WideI added = bits<WideI>(seed >> uint32_t(32 - kDrop));
    kept = ((significand >> below) + added) >> kDrop;
  }
  // The hidden bit of a normal result adds the last step of the exponent.
  const WideI normal = exponent > 0;
  WideI code = kept + select(normal, (exponent - 1) << f.mantissa_bits, splat(0));
  const WideI infinite = magnitude >= 0x7f800000, huge = exponent > (1 << f.exponent_bits) + 1;
  const WideI over = (code > largest_code(f)) | infinite | huge;
  code = select(over, splat(saturate || f.special == Special::kNone ? largest_code(f) : overflow_code(f)), code);
  code = select(magnitude > splat(0x7f800000), splat(nan_code(f)), code);
  code = select(zero, splat(0), code);
  WideU sign = (x >> 31) << kSign;
  if constexpr (f.special == Special::kFnuz) {
    const WideI unsigned_code = (code == 0) | (code == nan_code(f));
    sign &= ~bits<WideU>(unsigned_code);
  }
  return bits<WideU>(code) | sign;
}

/// fp32 → bf16, to nearest even; NaNs are quieted.
CREST_SIM_INLINE WideU narrow_bf16(WideU x) {
  const WideI nan = (x & 0x7fffffffu) > 0x7f800000u;
  const WideU rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
  return select(nan, (x >> 16) | 0x40u, rounded);
}

/// fp32 → bf16 with the upper half of the seed added below the last kept place.
CREST_SIM_INLINE WideU narrow_bf16_stochastic(WideU x, WideU seed) {
  const WideI special = (x & 0x7fffffffu) >= 0x7f800000u;
  const WideI nan = (x & 0x7fffffffu) > 0x7f800000u;
  const WideU quiet = (x >> 16) | (bits<WideU>(nan) & 0x40u);
  return select(special, quiet, (x + (seed >> 16)) >> 16);
}

/// fp32 → fp16 likewise (13 bits of the seed).
CREST_SIM_INLINE WideU narrow_f16_stochastic(WideU x, WideU seed, bool saturate) {
  const WideU code = narrow<Element::kF16, false, Rounding::kStochastic>(x, seed, splat(0), saturate);
  const WideI nan = (x & 0x7fffffffu) > 0x7f800000u;
  return select(nan, ((x >> 16) & 0x8000u) | 0x7e00u | ((x >> 13) & 0x1ffu), code);
}

/// value · 2^scale, rounded once to fp32.
CREST_SIM_INLINE WideF scale_value(WideF value, WideI scale) {
  const WideD scaled = __builtin_convertvector(value, WideD) * power_of_two_double(scale);
  return __builtin_convertvector(scaled, WideF);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
