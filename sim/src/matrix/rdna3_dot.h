// The two-term dot product of RDNA3, on which v_dot2_* and (as eight steps of two values of k) WMMA are built.
//
// Rule: measured on gfx1100 and gfx1151 (ROCm/rocm-systems issue 12056 and the rocjitsu model that followed from it).
//   * Products are exact. fp16 factors keep subnormals; bf16 factors and the fp32 accumulator c flush them to zero.
//   * All three terms are cut (toward zero) to multiples of one unit 2^g, where g is the larger of
//     (largest exponent sum of a nonzero product's factors) - 24 and (largest leading exponent of the terms) - 26.
//   * The sign of c is the frame. A term of the other sign contributes the complement of its magnitude, one unit more
//     than its negation; that is so for zeros too.
//   * The sum is rounded to nearest-even fp32; a result below the normal range is +0, and so is a sum of zero units.
//   * An fp16 accumulator takes part with an exponent of at least -14 and the sum is rounded to fp16 directly
//   (subnormals
//     kept, overflow to infinity or, with FP16_OVFL, to 65504). A bf16 result is the fp32 result cut to 16 bits.
//   * NaNs have fixed encodings: 0xffc00a3d if a factor is NaN, 0xffc00000 for 0·∞ and ∞ - ∞, else c quieted.
#pragma once

#include "matrix/simd.h"

namespace crest_sim::CREST_SIM_LEVEL {

enum class DotOutput : uint8_t { kF32, kF16, kBf16 };

struct HalfFormat {
  int mantissa_bits, bias;
  bool flushes_subnormals;
};
template <bool Bf16>
inline constexpr HalfFormat kHalfFormat = Bf16 ? HalfFormat{7, 127, true} : HalfFormat{10, 15, false};

inline constexpr int kNoExponent = -1024;
inline constexpr uint32_t kFactorNan = 0xffc00a3d, kInvalidNan = 0xffc00000;

/// Factors in parts: value = ±significand × 2^(exponent - mantissa_bits).
struct FactorVec {
  WideI significand, exponent, sign;  ///< sign: 0 or -1
};

template <bool Bf16>
CREST_SIM_INLINE FactorVec split_factor(WideU raw) {
  constexpr HalfFormat f = kHalfFormat<Bf16>;
  const WideI magnitude = bits<WideI>(raw & 0x7fffu);
  const WideI field = magnitude >> f.mantissa_bits;
  const WideI subnormal = field == 0;
  const WideI fraction = magnitude & ((1 << f.mantissa_bits) - 1);
  const WideI low = f.flushes_subnormals ? splat(0) : fraction;
  return {select(subnormal, low, fraction | (1 << f.mantissa_bits)), vmax(field, splat(1)) - f.bias,
          bits<WideI>(raw << 16) >> 31};
}

/// Index of the highest set bit of a value below 2^24; kNoExponent for 0.
CREST_SIM_INLINE WideI leading_bit(WideI value) {
  const WideI zero = value == 0;
  return select(zero, splat(kNoExponent), (bits<WideI>(__builtin_convertvector(value, WideF)) >> 23) - 127);
}

/// significand × 2^(exponent - grid), cut. Nonzero results stay below 2^28.
CREST_SIM_INLINE WideI to_grid(WideI significand, WideI exponent, WideI grid) {
  const WideI shift = exponent - grid;
  const WideI left = significand << vmin(vmax(shift, splat(0)), splat(31));
  return left >> vmin(vmax(-shift, splat(0)), splat(31));
}

struct UnitsSum {
  WideI total, grid, frame, all_zero;
};

/// The aligned sum. `c` is fp32 with an exponent field below 255; factors are finite.
template <bool Bf16, bool HalfAccumulator>
CREST_SIM_INLINE UnitsSum sum_two_products(FactorVec a0, FactorVec b0, FactorVec a1, FactorVec b1, WideU c) {
  constexpr int kFraction = 2 * kHalfFormat<Bf16>.mantissa_bits;
  const WideI c_field = bits<WideI>(c >> 23) & 255;
  const WideI c_zero = c_field == 0;
  const WideI c_significand = select(c_zero, splat(0), (bits<WideI>(c) & 0x7fffff) | 0x800000);
  WideI c_lead = select(c_zero, splat(kNoExponent), c_field - 127);
  if constexpr (HalfAccumulator) c_lead = vmax(c_lead, splat(-14));

  const WideI p0 = a0.significand * b0.significand, p1 = a1.significand * b1.significand;
  const WideI e0 = a0.exponent + b0.exponent, e1 = a1.exponent + b1.exponent;
  const WideI zero0 = p0 == 0, zero1 = p1 == 0;
  const WideI factor_grid = vmax(select(zero0, splat(kNoExponent), e0), select(zero1, splat(kNoExponent), e1)) - 24;
  const WideI lead0 = leading_bit(p0) + (e0 - kFraction), lead1 = leading_bit(p1) + (e1 - kFraction);
  const WideI lead =
      vmax(c_lead, vmax(select(zero0, splat(kNoExponent), lead0), select(zero1, splat(kNoExponent), lead1)));
  const WideI grid = vmax(factor_grid, lead - 26);

  const WideI frame = bits<WideI>(c) >> 31;
  const WideI total = to_grid(c_significand, c_field - 150, grid) +
                      (to_grid(p0, e0 - kFraction, grid) ^ (a0.sign ^ b0.sign ^ frame)) +
                      (to_grid(p1, e1 - kFraction, grid) ^ (a1.sign ^ b1.sign ^ frame));
  const WideI all_zero = (c_significand | p0 | p1) == 0;
  return {total, grid, frame, all_zero};
}

/// Rounds to fp32 as described above.
CREST_SIM_INLINE WideU round_to_f32(UnitsSum sum) {
  const WideI negative = (sum.total >> 31) ^ sum.frame;
  const WideI magnitude = (sum.total ^ (sum.total >> 31)) - (sum.total >> 31);
  const WideI rounded = bits<WideI>(__builtin_convertvector(magnitude, WideF));
  const WideI field = (rounded >> 23) + sum.grid;
  const WideI sign = negative & int32_t(0x80000000);
  WideI word = sign | (field << 23) | (rounded & 0x7fffff);
  const WideI overflow = field > 254, vanished = (field < 1) | (sum.total == 0) | sum.all_zero;
  word = select(overflow, sign | 0x7f800000, word);
  return bits<WideU>(select(vanished, splat(0), word));
}

/// Rounds to fp16, subnormals included.
CREST_SIM_INLINE WideU round_to_f16(UnitsSum sum, bool saturate) {
  const WideI negative = (sum.total >> 31) ^ sum.frame;
  const WideI magnitude = (sum.total ^ (sum.total >> 31)) - (sum.total >> 31);
  // Exponent of the leading bit before rounding: the conversion in leading_bit() must be exact, magnitudes reach 2^29.
  const WideI big = magnitude > 0xffffff;
  const WideI lead = leading_bit(select(big, magnitude >> 8, magnitude)) + (big & 8);
  const WideI exponent = vmax(lead + sum.grid, splat(-14));
  // Units dropped: the result's last place is 2^(exponent - 10).
  const WideI drop = exponent - 10 - sum.grid;
  const WideI right = vmin(vmax(drop, splat(0)), splat(31)), up = vmin(vmax(-drop, splat(0)), splat(31));
  const WideI kept = (magnitude >> right) << up;
  const WideI one = splat(1);
  const WideI tail = magnitude & ((one << right) - 1);
  const WideI half = (one << right) >> 1;  // 0 if nothing is dropped
  const WideI above = tail > half, tie = (tail == half) & (half > 0);
  const WideI significand = kept - (above & (right > 0)) + (tie & kept & 1);
  // A carry out of the significand moves into the exponent field by itself.
  const WideI subnormal = significand < 1024;
  WideI word = select(subnormal, significand, ((exponent + 14) << 10) + significand);
  const WideI overflow = word > 0x7bff;
  word = select(overflow, splat(saturate ? 0x7bff : 0x7c00), word);
  const WideI zero = (word == 0) | sum.all_zero;
  return bits<WideU>(select(zero, splat(0), word | (negative & 0x8000)));
}

/// A lane with an infinity or a NaN among its operands; returns the bits of the output format.
template <bool Bf16>
uint32_t dot2_special(uint32_t a0, uint32_t b0, uint32_t a1, uint32_t b1, uint32_t c, DotOutput output);

/// fp32 bits of an fp16 or bf16 encoding, exactly.
template <bool Bf16>
CREST_SIM_INLINE WideU widen_half(WideU raw) {
  if constexpr (Bf16) return raw << 16;
  const WideU magnitude = raw & 0x7fffu;
  const WideF scaled = bits<WideF>(magnitude << 13) * 0x1p112f;
  const WideI top = magnitude >= 0x7c00u;
  return select(top, (magnitude << 13) | 0x7f800000u, bits<WideU>(scaled)) | ((raw & 0x8000u) << 16);
}

/// Lanes that hold an infinity or a NaN.
template <bool Bf16>
CREST_SIM_INLINE WideI special_half(WideU raw) {
  return (raw & 0x7fffu) >= (Bf16 ? 0x7f80u : 0x7c00u);
}
template <DotOutput Output>
CREST_SIM_INLINE WideI special_accumulator(WideU c) {
  if constexpr (Output == DotOutput::kF32) return (c & 0x7fffffffu) >= 0x7f800000u;
  return special_half<Output == DotOutput::kBf16>(c);
}

/// One step for a vector of lanes without infinities and NaNs. c and the result: fp32 bits or a 16-bit encoding.
template <bool Bf16, DotOutput Output>
CREST_SIM_INLINE WideU dot2_finite(FactorVec a0, FactorVec b0, FactorVec a1, FactorVec b1, WideU c, bool saturate) {
  constexpr bool kHalf = Output == DotOutput::kF16;
  WideU wide_c = c;
  if constexpr (Output != DotOutput::kF32) wide_c = widen_half<Output == DotOutput::kBf16>(c);
  const UnitsSum sum = sum_two_products<Bf16, kHalf>(a0, b0, a1, b1, wide_c);
  if constexpr (kHalf) return round_to_f16(sum, saturate);
  const WideU result = round_to_f32(sum);
  return Output == DotOutput::kBf16 ? result >> 16 : result;
}

/// One step for a vector of lanes with any operands (raw encodings in the low bits).
template <bool Bf16, DotOutput Output>
CREST_SIM_INLINE WideU dot2(WideU a0, WideU b0, WideU a1, WideU b1, WideU c, bool saturate) {
  WideU result = dot2_finite<Bf16, Output>(split_factor<Bf16>(a0), split_factor<Bf16>(b0), split_factor<Bf16>(a1),
                                           split_factor<Bf16>(b1), c, saturate);
  const WideI special = special_half<Bf16>(a0) | special_half<Bf16>(b0) | special_half<Bf16>(a1) |
                        special_half<Bf16>(b1) | special_accumulator<Output>(c);
  if (any(special)) {
    for (int l = 0; l < kWide; ++l) {
      if (special[l]) result[l] = dot2_special<Bf16>(a0[l], b0[l], a1[l], b1[l], c[l], Output);
    }
  }
  return result;
}

}  // namespace crest_sim::CREST_SIM_LEVEL
