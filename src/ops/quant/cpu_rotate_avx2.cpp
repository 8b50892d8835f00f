#include "ops/partition.h"
#include "ops/quant/internal.h"
#include "ops/simd.h"

namespace crest::ops {
namespace {

using V = VecAvx2;
using F = V::F;
constexpr int64_t kHalf = kParoGroup / 2;
constexpr int64_t kBatch = V::kLanes;  // tokens rotated together

/// Eight values of a group at the positions in `places`.
F gather(const float* group, const uint8_t* places) {
  const __m256i index = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(places)));
  return _mm256_i32gather_ps(group, index, 4);
}

/// One group of one token. A round's results lie in the order of its pairs, first members before second ones;
/// rotation.places says where the next round finds what it needs.
void rotate_group(const Rotation& r, int64_t group, const float* x, float* out) {
  alignas(32) float buffers[2][kParoGroup];
  const int64_t column = group * kParoGroup;
  for (int64_t i = 0; i < kParoGroup; i += V::kLanes) {
    V::store(buffers[0] + i, V::mul(V::load(x + i), V::load(r.channel_scales.data() + column + i)));
  }
  for (int64_t round = 0; round < r.rounds; ++round) {
    const float* from = buffers[round % 2];
    float* to = buffers[(round + 1) % 2];
    const uint8_t* places = r.places.data() + round * r.cols + column;
    const float* cosines = r.cosines.data() + round * r.cols / 2 + group * kHalf;
    const float* sines = r.sines.data() + round * r.cols / 2 + group * kHalf;
    for (int64_t t = 0; t < kHalf; t += V::kLanes) {
      const F a = gather(from, places + t), b = gather(from, places + kHalf + t);
      const F c = V::load(cosines + t), s = V::load(sines + t);
      V::store(to + t, V::fma(a, c, V::mul(b, s)));
      V::store(to + kHalf + t, V::sub(V::mul(b, c), V::mul(a, s)));
    }
  }
  const uint8_t* places = r.places.data() + r.rounds * r.cols + column;
  for (int64_t i = 0; i < kParoGroup; i += V::kLanes) V::store(out + i, gather(buffers[r.rounds % 2], places + i));
}

/// One group of eight tokens, transposed so that a lane is a token. The same operations as for one token.
void rotate_batch(const Rotation& r, int64_t group, const float* x, int64_t x_stride, float* out, int64_t out_stride) {
  alignas(32) float lanes[kParoGroup][kBatch];
  const int64_t column = group * kParoGroup;
  for (int64_t i = 0; i < kParoGroup; ++i) {
    const float scale = r.channel_scales[static_cast<size_t>(column + i)];
    for (int64_t t = 0; t < kBatch; ++t) lanes[i][t] = x[t * x_stride + i] * scale;
  }
  for (int64_t round = 0; round < r.rounds; ++round) {
    const uint8_t* pairs = r.pairs.data() + round * r.cols + column;
    const float* cosines = r.cosines.data() + round * r.cols / 2 + group * kHalf;
    const float* sines = r.sines.data() + round * r.cols / 2 + group * kHalf;
    for (int64_t t = 0; t < kHalf; ++t) {
      float* first = lanes[pairs[2 * t]];
      float* second = lanes[pairs[2 * t + 1]];
      const F a = V::load(first), b = V::load(second);
      const F c = V::broadcast(cosines + t), s = V::broadcast(sines + t);
      V::store(first, V::fma(a, c, V::mul(b, s)));
      V::store(second, V::sub(V::mul(b, c), V::mul(a, s)));
    }
  }
  for (int64_t t = 0; t < kBatch; ++t) {
    for (int64_t i = 0; i < kParoGroup; ++i) out[t * out_stride + i] = lanes[i][t];
  }
}

Status launch(const RotationProblem& p, const RotationArgs& a, Launch& launch) {
  const Rotation& r = *a.rotation;
  const int64_t stride = a.x_stride ? a.x_stride : p.cols;
  const int64_t groups = p.cols / kParoGroup;
  const int64_t batches = (p.tokens + kBatch - 1) / kBatch;
  launch.pool.parallel_for(batches * groups, 4, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item / groups * kBatch;
      const int64_t group = item % groups;
      const float* x = a.x + first * stride + group * kParoGroup;
      float* out = a.out + first * p.cols + group * kParoGroup;
      const int64_t count = p.tokens - first;
      if (count >= kBatch) {
        rotate_batch(r, group, x, stride, out, p.cols);
        continue;
      }
      for (int64_t t = 0; t < count; ++t) rotate_group(r, group, x + t * stride, out + t * p.cols);
    }
  });
  return {};
}

}  // namespace

constinit const Kernel<RotationProblem, RotationArgs> kRotateAvx2 = {
    .name = "avx2", .arch = "avx2", .priority = 10, .launch = launch};

}  // namespace crest::ops
