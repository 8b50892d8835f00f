// The published rule of CDNA3's matrix cores for products of narrow formats (Xie et al., "MMA-Sim: Bit-Accurate
// Reference Model of Tensor Cores and Matrix Cores", arXiv 2511.10909), on host vectors.
//
// A group of products a·b is added to the accumulator c in one step:
//   1. The exponent of a product is the sum of its factors' exponents (a subnormal has the format's smallest exponent);
//      a product with a zero factor is zero with exponent -126. `e` is the largest exponent of the group.
//   2. Each exact product is cut (toward zero) to multiples of 2^(e-24); the cut products are summed exactly.
//   3. With E the larger of e and c's exponent, the sum is floored to multiples of 2^(E-31) and c to multiples of
//   2^(E-24).
//   4. Both are added exactly and rounded to nearest-even fp32. Nothing is flushed.
// 8-bit and narrower formats take 16 products a step: the even and the odd ones are summed separately as in 2, each sum
// is floored to the larger exponent's 2^(e-24) and added; a c smaller than 2^(E-25) counts as 0. A finite product of
// 2^128 or more is an infinity. Infinities and NaNs follow IEEE addition; a NaN result is 0x7fc00000.
//
// The rule was measured on gfx942. For gfx950 and for SMFMAC (groups of stored values) it is an extrapolation.
#pragma once

#include "matrix/simd.h"

namespace crest_sim::CREST_SIM_LEVEL {

inline constexpr int kMinExponent = -126;
inline constexpr int kZeroExponent = -1000;  // in exponent tables; no sum of two other exponents comes near
inline constexpr int kMaxTerms = 128;

/// Factors of the terms of one row of D, in the order in which they are grouped. a[t] + row is the value of A (or, for
/// 4 × 4 blocks, a vector of them), b[t] + column the first value of B. The same for exponents.
struct Terms {
  const float* a[kMaxTerms];
  const int32_t* a_exponent[kMaxTerms];
  const float* b[kMaxTerms];
  const int32_t* b_exponent[kMaxTerms];
  int count = 0;
  int per_half = 0;  ///< terms that are summed together; a group has one or two halves
};

/// How the tables hold their values.
enum class Factors : uint8_t {
  kValues,        ///< products neither overflow nor underflow fp32
  kSignificands,  ///< values scaled by 2^-exponent
};

struct PartialSum {
  WideI sum;  ///< in units of 2^(exponent - 24)
  WideI exponent;
};

/// Vectors of columns that are computed together: enough to keep the host's units busy.
inline constexpr int kColumnVectors = kWide <= 8 ? 2 : 1;
inline constexpr int kColumnStep = kColumnVectors * kWide;
struct PartialSums {
  PartialSum at[kColumnVectors];
};

template <bool VectorA>
CREST_SIM_INLINE WideF factor_a(const float* from) {
  if constexpr (VectorA) return load<WideF>(from);
  return splat(*from);
}
template <bool VectorA>
CREST_SIM_INLINE WideI factor_a(const int32_t* from) {
  if constexpr (VectorA) return load<WideI>(from);
  return splat(*from);
}

/// Steps 1 and 2 for `Count` terms from `t0` on, for the columns from `column` on.
template <bool VectorA, Factors F, int Count>
CREST_SIM_INLINE PartialSums sum_products(const Terms& terms, int t0, int row, int column) {
  const auto exponent = [&](int t, int v) {
    const int at = column + v * kWide;
    const WideI sum = factor_a<VectorA>(terms.a_exponent[t] + row + (VectorA ? v * kWide : 0)) +
                      load<WideI>(terms.b_exponent[t] + at);
    if constexpr (F == Factors::kValues) return sum;
    const WideI zero = sum < splat(kZeroExponent / 2);
    return select(zero, splat(kMinExponent), sum);
  };
  PartialSums r;
  WideF unit[kColumnVectors];
  for (auto& partial : r.at) partial = {splat(0), splat(F == Factors::kValues ? kMinExponent : 2 * kZeroExponent)};
  for (int t = t0; t < t0 + Count; ++t) {
    for (int v = 0; v < kColumnVectors; ++v) r.at[v].exponent = vmax(r.at[v].exponent, exponent(t, v));
  }
  // Without under- or overflow a group of nonzero products has an exponent above -102: the cut at 2^127 meets zeros
  // only.
  for (int v = 0; v < kColumnVectors; ++v) unit[v] = power_of_two(vmin(24 - r.at[v].exponent, splat(127)));
  for (int t = t0; t < t0 + Count; ++t) {
    for (int v = 0; v < kColumnVectors; ++v) {
      const WideF product = factor_a<VectorA>(terms.a[t] + row + (VectorA ? v * kWide : 0)) *
                            load<WideF>(terms.b[t] + column + v * kWide);
      if constexpr (F == Factors::kValues) {
        r.at[v].sum += truncate(product * unit[v]);
      } else {
        const WideI shift = vmax(24 + exponent(t, v) - r.at[v].exponent, splat(-126));
        r.at[v].sum += truncate(product * power_of_two(shift));
      }
    }
  }
  return r;
}

CREST_SIM_INLINE WideI exponent_of(WideF c) { return vmax((bits<WideI>(c) >> 23) & 255, splat(1)) - 127; }

/// Steps 3 and 4.
template <bool TwoHalves>
CREST_SIM_INLINE WideF add_to_accumulator(PartialSum dot, WideF c) {
  const WideI c_exponent = exponent_of(c);
  const WideI top = vmax(dot.exponent, c_exponent);
  const WideD sum = __builtin_elementwise_floor(__builtin_convertvector(dot.sum, WideD) *
                                                power_of_two_double(7 - (top - dot.exponent)));
  WideD old = __builtin_elementwise_floor(__builtin_convertvector(c, WideD) * power_of_two_double(24 - top));
  if constexpr (TwoHalves) {
    // An infinite c stays, however large the scaled sum.
    const WideL kept = __builtin_convertvector(c_exponent >= vmin(top - 25, splat(128)), WideL);
    old = bits<WideD>(bits<WideL>(old) & kept);
  }
  const WideD total = (sum + old * 128.0) * power_of_two_double(top - 31);
  const WideF result = __builtin_convertvector(total, WideF);
  const WideI nan = result != result;
  return select(nan, bits<WideF>(splat(0x7fc00000)), result);
}

/// Step 2 of a group with two halves: their sums on a common exponent.
CREST_SIM_INLINE PartialSum join_halves(PartialSum even, PartialSum odd) {
  const WideI exponent = vmax(even.exponent, odd.exponent);
  return {floor_shift(even.sum, exponent - even.exponent) + floor_shift(odd.sum, exponent - odd.exponent), exponent};
}

}  // namespace crest_sim::CREST_SIM_LEVEL
