#pragma once

// Products of small fp32 matrices that stay in cache. Included only by files compiled for AVX2 or more.

#include <algorithm>

#include "ops/simd.h"

namespace crest::ops {
namespace {

/// a[row * row_stride + j * depth_stride]: rows or columns of a matrix.
struct Factor {
  const float* data;
  int64_t row_stride;
  int64_t depth_stride;
};

/// out[r, :] = out[r, :] * keep[r] (or 0 when keep is null) + sum over j < depth of a[r, j] * b[j, :], for kRows rows
/// and kVectors vectors of columns. Terms are added in the order of j.
template <typename V, int kRows, int kVectors>
[[gnu::always_inline]] inline void multiply_tile(const Factor& a, const float* b, int64_t b_stride, int64_t depth,
                                                 const float* keep, float* out, int64_t out_stride) {
  using F = typename V::F;
  F acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) {
      acc[r][c] = V::set(0.0f);
      if (keep != nullptr) acc[r][c] = V::mul(V::load(out + r * out_stride + c * V::kLanes), V::set(keep[r]));
    }
  }
  const float* factor = a.data;
  for (int64_t j = 0; j < depth; ++j, factor += a.depth_stride, b += b_stride) {
    F column[kVectors];
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) column[c] = V::load(b + c * V::kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F w = V::broadcast(factor + r * a.row_stride);
#pragma GCC unroll 8
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::fma(w, column[c], acc[r][c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) V::store(out + r * out_stride + c * V::kLanes, acc[r][c]);
  }
}

template <typename V, int kRows>
inline void multiply_rows(const Factor& a, const float* b, int64_t b_stride, int64_t depth, int64_t cols,
                          const float* keep, float* out, int64_t out_stride) {
  int64_t c = 0;
  for (; c + 2 * V::kLanes <= cols; c += 2 * V::kLanes) {
    multiply_tile<V, kRows, 2>(a, b + c, b_stride, depth, keep, out + c, out_stride);
  }
  for (; c < cols; c += V::kLanes) multiply_tile<V, kRows, 1>(a, b + c, b_stride, depth, keep, out + c, out_stride);
}

/// The same for any number of rows; cols is a multiple of the vector. When lower is set, row r has depth r + 1.
template <typename V>
void multiply(Factor a, const float* b, int64_t b_stride, int64_t rows, int64_t depth, int64_t cols, const float* keep,
              float* out, int64_t out_stride, bool lower = false) {
  constexpr int kTile = V::kRegisters == 32 ? 8 : 4;
  int64_t row = 0;
  const auto part = [&](int64_t count) {
    // Rows of a tile share their depth: what lies above the diagonal must be zero.
    return lower ? std::min(depth, row + count) : depth;
  };
  for (; row + kTile <= rows; row += kTile) {
    multiply_rows<V, kTile>({a.data + row * a.row_stride, a.row_stride, a.depth_stride}, b, b_stride, part(kTile), cols,
                            keep ? keep + row : nullptr, out + row * out_stride, out_stride);
  }
  for (; row < rows; ++row) {
    multiply_rows<V, 1>({a.data + row * a.row_stride, a.row_stride, a.depth_stride}, b, b_stride, part(1), cols,
                        keep ? keep + row : nullptr, out + row * out_stride, out_stride);
  }
}

/// Sums of products of a row with four others.
template <typename V>
[[gnu::always_inline]] inline __m128 dot_quad(const float* x, const float* a, const float* b, const float* c,
                                              const float* d, int64_t n) {
  auto s0 = V::set(0.0f), s1 = s0, s2 = s0, s3 = s0;
  for (int64_t i = 0; i < n; i += V::kLanes) {
    const auto value = V::load(x + i);
    s0 = V::fma(value, V::load(a + i), s0);
    s1 = V::fma(value, V::load(b + i), s1);
    s2 = V::fma(value, V::load(c + i), s2);
    s3 = V::fma(value, V::load(d + i), s3);
  }
  return V::sums(s0, s1, s2, s3);
}

}  // namespace
}  // namespace crest::ops
