#include <cmath>

#include "ops/activation/internal.h"
#include "ops/partition.h"
#include "ops/reference_math.h"

namespace crest::ops {
namespace {

/// x/2 (1 + tanh(u)) as x sigmoid(2u): for negative x the sum would cancel.
float gelu_tanh(float x) {
  constexpr double kSqrt2OverPi = 0.79788456080286535588;
  const double u = kSqrt2OverPi * (x + 0.044715 * double{x} * x * x);
  return static_cast<float>(x / (1.0 + std::exp(-2.0 * u)));
}

template <float (*Activation)(float)>
void apply(const float* gate, const float* up, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = Activation(gate[i]) * up[i];
}

Status launch_gated(const GatedActivationProblem& p, const GatedActivationArgs& a, Launch& launch) {
  const int64_t gate_stride = a.gate_stride ? a.gate_stride : p.dim;
  const int64_t up_stride = a.up_stride ? a.up_stride : p.dim;
  const auto row = p.kind == GatedActivation::kSwiGlu ? apply<silu> : apply<gelu_tanh>;
  launch.pool.parallel_for(p.tokens, row_grain(8 * p.dim), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      row(a.gate + t * gate_stride, a.up + t * up_stride, a.out + t * p.dim, p.dim);
    }
  });
  return {};
}

Status launch_add(const AddProblem& p, const AddArgs& a, Launch& launch) {
  launch.pool.parallel_for(p.count, row_grain(1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) a.out[i] = a.a[i] + a.b[i];
  });
  return {};
}

}  // namespace

Kernel<GatedActivationProblem, GatedActivationArgs> gated_activation_reference() {
  return {.name = "reference", .launch = launch_gated};
}
Kernel<AddProblem, AddArgs> add_reference() { return {.name = "reference", .launch = launch_add}; }

}  // namespace crest::ops
