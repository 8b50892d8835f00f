#include "ops/checks.h"
#include "ops/partition.h"
#include "ops/rope/internal.h"
#include "ops/simd.h"

namespace crest::ops {
namespace {

using V = VecAvx2;

void rotate_halves(const float* cosines, const float* sines, int64_t half, float* x) {
  for (int64_t j = 0; j < half; j += V::kLanes) {
    const auto a = V::load(x + j), b = V::load(x + half + j);
    const auto c = V::load(cosines + j), s = V::load(sines + j);
    V::store(x + j, V::sub(V::mul(a, c), V::mul(b, s)));
    V::store(x + half + j, V::fma(b, c, V::mul(a, s)));
  }
}

/// Pairs lie side by side: (a, b) c + (-b, a) s, with c and s doubled.
void rotate_neighbours(const float* cosines, const float* sines, int64_t half, float* x) {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  for (int64_t j = 0; j < half; j += 4) {
    const auto doubled = [&](const float* p) {
      return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + j)), twice);
    };
    const auto pair = V::load(x + 2 * j);
    const auto swapped = _mm256_permute_ps(pair, 0xb1);
    V::store(x + 2 * j, _mm256_addsub_ps(V::mul(pair, doubled(cosines)), V::mul(swapped, doubled(sines))));
  }
}

bool supports(const RopeProblem& p) { return p.rotary_dim % 16 == 0; }

Status launch(const RopeProblem& p, const RopeArgs& a, Launch& launch) {
  const MutableHeadsView x = resolve(a.x, p.heads, p.head_dim);
  const int64_t half = p.rotary_dim / 2;
  const auto rotate = p.style == RopeStyle::kNeox ? rotate_halves : rotate_neighbours;
  launch.pool.parallel_for(p.tokens * p.heads, row_grain(half), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row / p.heads;
      rotate(a.cosines + token * half, a.sines + token * half, half,
             x.data + token * x.token_stride + row % p.heads * x.head_stride);
    }
  });
  return {};
}

}  // namespace

constinit const Kernel<RopeProblem, RopeArgs> kRopeAvx2 = {
    .name = "avx2", .arch = "avx2", .priority = 10, .supports = supports, .launch = launch};

}  // namespace crest::ops
