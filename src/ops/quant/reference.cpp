#include "ops/partition.h"
#include "ops/quant/internal.h"

namespace crest::ops {
namespace {

void rotate_row(const Rotation& r, const float* x, float* out) {
  for (int64_t i = 0; i < r.cols; ++i) out[i] = x[i] * r.channel_scales[static_cast<size_t>(i)];
  for (int64_t round = 0; round < r.rounds; ++round) {
    const uint8_t* pairs = r.pairs.data() + round * r.cols;
    const float* cosines = r.cosines.data() + round * r.cols / 2;
    const float* sines = r.sines.data() + round * r.cols / 2;
    for (int64_t pair = 0; pair < r.cols / 2; ++pair) {
      float* group = out + pair / (kParoGroup / 2) * kParoGroup;
      float& first = group[pairs[2 * pair]];
      float& second = group[pairs[2 * pair + 1]];
      const float a = first;
      const float b = second;
      first = a * cosines[pair] + b * sines[pair];
      second = b * cosines[pair] - a * sines[pair];
    }
  }
}

Status launch(const RotationProblem& p, const RotationArgs& a, Launch& launch) {
  const int64_t stride = a.x_stride ? a.x_stride : p.cols;
  launch.pool.parallel_for(p.tokens, row_grain(4 * p.cols * p.rounds), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) rotate_row(*a.rotation, a.x + t * stride, a.out + t * p.cols);
  });
  return {};
}

}  // namespace

Kernel<RotationProblem, RotationArgs> rotate_reference() { return {.name = "reference", .launch = launch}; }

}  // namespace crest::ops
