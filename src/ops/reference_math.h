#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace crest::ops {

/// Four floats that compilers keep in one register on any x86-64; operations are lane by lane, in the order written.
using Float4 = float __attribute__((vector_size(16)));

inline void load4(Float4& value, const float* source) { std::memcpy(&value, source, sizeof value); }
inline void store4(float* target, const Float4& value) { std::memcpy(target, &value, sizeof value); }

/// Sums of products of `Rows` rows a (row_stride floats apart) with b. Every sum has eight partial sums (element i goes
/// to partial sum i % 8) that are added in a fixed order, so it does not depend on Rows.
template <int Rows>
inline void dot_rows(const float* a, int64_t row_stride, const float* b, int64_t n, float* result) {
  Float4 low[Rows] = {};
  Float4 high[Rows] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    Float4 b0, b1;
    load4(b0, b + i);
    load4(b1, b + i + 4);
    for (int r = 0; r < Rows; ++r) {
      Float4 a0, a1;
      load4(a0, a + r * row_stride + i);
      load4(a1, a + r * row_stride + i + 4);
      low[r] += a0 * b0;
      high[r] += a1 * b1;
    }
  }
  for (int r = 0; r < Rows; ++r) {
    float tail = 0;
    for (int64_t j = i; j < n; ++j) tail += a[r * row_stride + j] * b[j];
    const Float4 sum = low[r] + high[r];
    result[r] = (sum[0] + sum[2]) + (sum[1] + sum[3]) + tail;
  }
}

inline float dot(const float* a, const float* b, int64_t n) {
  float result;
  dot_rows<1>(a, 0, b, n, &result);
  return result;
}

inline double sum_of_squares(const float* x, int64_t n) {
  double sums[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int l = 0; l < 4; ++l) sums[l] += double{x[i + l]} * double{x[i + l]};
  }
  for (; i < n; ++i) sums[0] += double{x[i]} * double{x[i]};
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/// y += a * x.
inline void axpy(float* y, float a, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += a * x[i];
}

/// 1 / (1 + exp(-x)) without overflow.
inline float sigmoid(float x) {
  if (x >= 0) return 1.0f / (1.0f + std::exp(-x));
  const float e = std::exp(x);
  return e / (1.0f + e);
}
inline float silu(float x) { return x * sigmoid(x); }

}  // namespace crest::ops
