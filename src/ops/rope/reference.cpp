#include <cmath>

#include "ops/checks.h"
#include "ops/partition.h"
#include "ops/rope/internal.h"

namespace crest::ops {
namespace {

Status launch_table(const RopeTableProblem& p, const RopeTableArgs& a, Launch& launch) {
  const RopeFrequencies& f = *a.frequencies;
  const int64_t half = p.rotary_dim / 2;
  launch.pool.parallel_for(p.tokens, row_grain(64 * half), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t j = 0; j < half; ++j) {
        const auto index = static_cast<size_t>(j);
        const int64_t stream = p.streams == 1 ? 0 : f.stream[index];
        const double angle = a.positions[stream * p.tokens + t] * f.inverse[index];
        a.cosines[t * half + j] = static_cast<float>(std::cos(angle) * f.attention_factor);
        a.sines[t * half + j] = static_cast<float>(std::sin(angle) * f.attention_factor);
      }
    }
  });
  return {};
}

void rotate_head(const RopeProblem& p, const float* cosines, const float* sines, float* x) {
  const int64_t half = p.rotary_dim / 2;
  const int64_t step = p.style == RopeStyle::kNeox ? 1 : 2;
  const int64_t partner = p.style == RopeStyle::kNeox ? half : 1;
  for (int64_t j = 0; j < half; ++j) {
    float& first = x[j * step];
    float& second = x[j * step + partner];
    const float a = first;
    const float b = second;
    first = a * cosines[j] - b * sines[j];
    second = b * cosines[j] + a * sines[j];
  }
}

Status launch_rope(const RopeProblem& p, const RopeArgs& a, Launch& launch) {
  const MutableHeadsView x = resolve(a.x, p.heads, p.head_dim);
  const int64_t half = p.rotary_dim / 2;
  launch.pool.parallel_for(p.tokens * p.heads, row_grain(4 * half), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row / p.heads;
      const int64_t head = row % p.heads;
      rotate_head(p, a.cosines + token * half, a.sines + token * half,
                  x.data + token * x.token_stride + head * x.head_stride);
    }
  });
  return {};
}

}  // namespace

Kernel<RopeTableProblem, RopeTableArgs> rope_table_reference() { return {.name = "reference", .launch = launch_table}; }
Kernel<RopeProblem, RopeArgs> rope_reference() { return {.name = "reference", .launch = launch_rope}; }

}  // namespace crest::ops
