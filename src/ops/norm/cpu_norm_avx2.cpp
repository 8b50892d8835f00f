#include <cmath>

#include "ops/checks.h"
#include "ops/norm/internal.h"
#include "ops/partition.h"
#include "ops/simd.h"

namespace crest::ops {
namespace {

using V = VecAvx2;

/// Sum of squares in double: four partial sums of four lanes.
double squares_of(const float* x, int64_t n) {
  __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int k = 0; k < 4; ++k) {
      const __m256d value = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * k));
      sums[k] = _mm256_fmadd_pd(value, value, sums[k]);
    }
  }
  alignas(32) double lanes[4];
  _mm256_store_pd(lanes, _mm256_add_pd(_mm256_add_pd(sums[0], sums[1]), _mm256_add_pd(sums[2], sums[3])));
  for (; i < n; ++i) lanes[0] += double{x[i]} * double{x[i]};
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/// Eight values from i on; those behind n read as zero.
V::F part(const float* x, int64_t i, int64_t n) {
  if (i + V::kLanes <= n) return V::load(x + i);
  alignas(32) float lanes[V::kLanes] = {};
  for (int64_t k = i; k < n; ++k) lanes[k - i] = x[k];
  return V::load(lanes);
}
void store_part(float* x, int64_t i, int64_t n, V::F value) {
  if (i + V::kLanes <= n) return V::store(x + i, value);
  alignas(32) float lanes[V::kLanes];
  V::store(lanes, value);
  for (int64_t k = i; k < n; ++k) x[k] = lanes[k - i];
}

void norm_vector(const RmsNormProblem& p, const float* x, const float* weight, const float* gate, float* out) {
  const double mean = squares_of(x, p.dim) / static_cast<double>(p.dim);
  const auto inverse = V::set(static_cast<float>(1.0 / std::sqrt(mean + p.eps)));
  const auto shift = V::set(p.weight == NormWeight::kZeroCentred ? 1.0f : 0.0f);
  for (int64_t i = 0; i < p.dim; i += V::kLanes) {
    auto y = V::mul(part(x, i, p.dim), inverse);
    if (weight != nullptr) y = V::mul(y, V::add(shift, part(weight, i, p.dim)));
    if (gate != nullptr) {
      const auto g = part(gate, i, p.dim);
      y = V::mul(y, V::mul(g, vector_sigmoid<V>(g)));
    }
    store_part(out, i, p.dim, y);
  }
}

Status launch(const RmsNormProblem& p, const RmsNormArgs& a, Launch& launch) {
  const HeadsView x = resolve(a.x, p.heads, p.dim);
  const HeadsView gate = resolve(a.gate, p.heads, p.dim);
  const MutableHeadsView out = resolve(a.out, p.heads, p.dim);
  launch.pool.parallel_for(p.tokens * p.heads, row_grain(p.dim / 4), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row / p.heads;
      const int64_t head = row % p.heads;
      norm_vector(p, x.data + token * x.token_stride + head * x.head_stride, a.weight,
                  p.gated ? gate.data + token * gate.token_stride + head * gate.head_stride : nullptr,
                  out.data + token * out.token_stride + head * out.head_stride);
    }
  });
  return {};
}

}  // namespace

constinit const Kernel<RmsNormProblem, RmsNormArgs> kRmsNormAvx2 = {
    .name = "avx2", .arch = "avx2", .priority = 10, .launch = launch};

}  // namespace crest::ops
