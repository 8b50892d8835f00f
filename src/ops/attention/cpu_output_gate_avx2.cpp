#include "ops/attention/cpu_attention.h"
#include "ops/checks.h"
#include "ops/partition.h"
#include "ops/simd.h"

namespace crest::ops {
namespace {

using V = VecAvx2;

bool supports(const OutputGateProblem& p) { return p.head_dim % V::kLanes == 0; }

Status launch(const OutputGateProblem& p, const OutputGateArgs& a, Launch& launch) {
  const HeadsView gate = resolve(a.gate, p.heads, p.head_dim);
  const MutableHeadsView x = resolve(a.x, p.heads, p.head_dim);
  launch.pool.parallel_for(p.tokens * p.heads, row_grain(p.head_dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row / p.heads;
      const int64_t head = row % p.heads;
      float* values = x.data + token * x.token_stride + head * x.head_stride;
      const float* gates = gate.data + token * gate.token_stride + head * gate.head_stride;
      for (int64_t i = 0; i < p.head_dim; i += V::kLanes) {
        V::store(values + i, V::mul(V::load(values + i), vector_sigmoid<V>(V::load(gates + i))));
      }
    }
  });
  return {};
}

}  // namespace

constinit const Kernel<OutputGateProblem, OutputGateArgs> kOutputGateAvx2 = {
    .name = "avx2", .arch = "avx2", .priority = 10, .supports = supports, .launch = launch};

}  // namespace crest::ops
