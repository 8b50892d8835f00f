#include <cmath>

#include "ops/checks.h"
#include "ops/norm/internal.h"
#include "ops/partition.h"
#include "ops/reference_math.h"

namespace crest::ops {
namespace {

void norm_vector(const RmsNormProblem& p, const float* x, const float* weight, const float* gate, float* out) {
  const double mean = sum_of_squares(x, p.dim) / static_cast<double>(p.dim);
  const auto inverse = static_cast<float>(1.0 / std::sqrt(mean + p.eps));
  const float shift = p.weight == NormWeight::kZeroCentred ? 1.0f : 0.0f;
  for (int64_t i = 0; i < p.dim; ++i) {
    float y = x[i] * inverse;
    if (weight != nullptr) y *= shift + weight[i];
    out[i] = gate != nullptr ? y * silu(gate[i]) : y;
  }
}

Status launch(const RmsNormProblem& p, const RmsNormArgs& a, Launch& launch) {
  const HeadsView x = resolve(a.x, p.heads, p.dim);
  const HeadsView gate = resolve(a.gate, p.heads, p.dim);
  const MutableHeadsView out = resolve(a.out, p.heads, p.dim);
  launch.pool.parallel_for(p.tokens * p.heads, row_grain(p.dim), [&](int64_t begin, int64_t end) {
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

Kernel<RmsNormProblem, RmsNormArgs> rms_norm_reference() { return {.name = "reference", .launch = launch}; }

}  // namespace crest::ops
