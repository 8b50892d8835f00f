// The inner loop of `fast` matrix arithmetic: D = C + A·B, one fused multiply-add per product in ascending k.
#pragma once

#include "matrix/tile.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// How products are accumulated.
enum class Sum : uint8_t {
  kFused,    ///< start from C; products need a fused multiply-add (fp32 inputs)
  kExact,    ///< start from C; products are exact in fp32, so that multiply and add do where the host has no FMA
  kInteger,  ///< small integers: products and sums are exact in fp32; added to an int32 C (wrapping)
};

template <Sum S>
CREST_SIM_INLINE WideF accumulate(WideF a, WideF b, WideF sum) {
  if constexpr (S == Sum::kFused || kHasFma) return fused(a, b, sum);
  return a * b + sum;
}

/// Writes a finished sum; integer sums are still without C.
template <Sum S>
CREST_SIM_INLINE void store_sum(WideF sum, const uint32_t* c, uint32_t* d) {
  if constexpr (S == Sum::kInteger) {
    store(d, bits<WideU>(truncate(sum)) + load<WideU>(c));
  } else {
    store(d, sum);
  }
}

/// `Columns` is the number of columns of D (16 or 32), `lda`/`ldb` the floats per value of k in the tables.
/// Row r of `rows` is computed from column rows.column[r] of the A table.
template <int Columns, Sum S>
CREST_SIM_INLINE void multiply(const float* a, int lda, const float* b, int ldb, int k, const Rows& rows,
                               const uint32_t* c, uint32_t* d) {
  constexpr int kVectors = Columns / kWide;
  constexpr int kRows = kVectors >= 8 ? 1 : 8 / kVectors;
  for (int r = 0; r < rows.count; r += kRows) {
    WideF sum[kRows][kVectors];
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        sum[i][v] = S == Sum::kInteger ? WideF(0.0f) : load<WideF>(c + rows.offset[r + i] + v * kWide);
      }
    }
    for (int t = 0; t < k; ++t) {
      WideF left[kRows];
      for (int i = 0; i < kRows; ++i) left[i] = splat(a[t * lda + rows.column[r + i]]);
      for (int v = 0; v < kVectors; ++v) {
        const WideF right = load<WideF>(b + t * ldb + v * kWide);
        for (int i = 0; i < kRows; ++i) sum[i][v] = accumulate<S>(left[i], right, sum[i][v]);
      }
    }
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        const int at = rows.offset[r + i] + v * kWide;
        store_sum<S>(sum[i][v], c + at, d + at);
      }
    }
  }
}

/// `Count` rows of D whose accumulators lie `stride` dwords apart: row i multiplies value i · a_step of each row of the
/// A table. The compiler knows all sizes; it must not keep the whole B table in registers, where it would spill it.
template <int Columns, int K, int Count, Sum S>
CREST_SIM_INLINE void multiply_block(const float* a, int lda, int a_step, const float* b, int ldb, const uint32_t* c,
                                     uint32_t* d, int stride) {
  constexpr int kVectors = Columns / kWide, kWanted = kVectors >= 8 ? 1 : 8 / kVectors,
                kRows = kWanted < Count ? kWanted : Count;
  for (int r = 0; r < Count; r += kRows, a += kRows * a_step, c += kRows * stride, d += kRows * stride) {
    __asm__("" : "+r"(b));
    WideF sum[kRows][kVectors];
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v)
        sum[i][v] = S == Sum::kInteger ? WideF(0.0f) : load<WideF>(c + i * stride + v * kWide);
    }
#pragma clang loop unroll(full)
    for (int t = 0; t < K; ++t) {
      WideF left[kRows];
      for (int i = 0; i < kRows; ++i) left[i] = splat(a[t * lda + i * a_step]);
      for (int v = 0; v < kVectors; ++v) {
        const WideF right = load<WideF>(b + t * ldb + v * kWide);
        for (int i = 0; i < kRows; ++i) sum[i][v] = accumulate<S>(left[i], right, sum[i][v]);
      }
    }
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v) {
        const int at = i * stride + v * kWide;
        store_sum<S>(sum[i][v], c + at, d + at);
      }
    }
  }
}

/// Value of lane 4·⌊l/4⌋ + I in every lane l: row I of sixteen 4 × 4 blocks.
template <int I, int N>
CREST_SIM_INLINE VecF<N> spread_row(VecF<N> v) {
  if constexpr (N == 4) {
    return __builtin_shufflevector(v, v, I, I, I, I);
  } else if constexpr (N == 8) {
    return __builtin_shufflevector(v, v, I, I, I, I, 4 + I, 4 + I, 4 + I, 4 + I);
  } else {
    return __builtin_shufflevector(v, v, I, I, I, I, 4 + I, 4 + I, 4 + I, 4 + I, 8 + I, 8 + I, 8 + I, 8 + I, 12 + I,
                                   12 + I, 12 + I, 12 + I);
  }
}

/// Sixteen 4 × 4 blocks: register i of D is row i of all blocks.
template <Sum S, int I>
CREST_SIM_INLINE void multiply_small_row(const float* a, const float* b, int k, const uint32_t* c, uint32_t* d) {
  for (int l = 0; l < 64; l += kWide) {
    WideF sum = S == Sum::kInteger ? WideF(0.0f) : load<WideF>(c + I * 64 + l);
    for (int t = 0; t < k; ++t) {
      sum = accumulate<S>(spread_row<I, kWide>(load<WideF>(a + t * 64 + l)), load<WideF>(b + t * 64 + l), sum);
    }
    store_sum<S>(sum, c + I * 64 + l, d + I * 64 + l);
  }
}

template <Sum S>
CREST_SIM_INLINE void multiply_small(const float* a, const float* b, int k, const uint32_t* c, uint32_t* d) {
  multiply_small_row<S, 0>(a, b, k, c, d);
  multiply_small_row<S, 1>(a, b, k, c, d);
  multiply_small_row<S, 2>(a, b, k, c, d);
  multiply_small_row<S, 3>(a, b, k, c, d);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
