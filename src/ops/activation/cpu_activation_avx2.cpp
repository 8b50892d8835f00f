#include "ops/activation/internal.h"
#include "ops/partition.h"
#include "ops/simd.h"

namespace crest::ops {
namespace {

using V = VecAvx2;
using F = V::F;

F swiglu(F gate, F up) { return V::mul(V::mul(gate, vector_sigmoid<V>(gate)), up); }

/// gelu(x) = x/2 (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
F geglu(F gate, F up) {
  const F cube = V::mul(V::mul(gate, gate), gate);
  const F twice = V::mul(V::set(1.59576912160573071176f), V::fma(V::set(0.044715f), cube, gate));
  return V::mul(V::mul(gate, vector_sigmoid<V>(twice)), up);
}

template <F (*Function)(F, F)>
void apply(const float* gate, const float* up, float* out, int64_t n) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(out + i, Function(V::load(gate + i), V::load(up + i)));
  if (i == n) return;
  alignas(32) float lanes[2][V::kLanes] = {};
  for (int64_t k = i; k < n; ++k) {
    lanes[0][k - i] = gate[k];
    lanes[1][k - i] = up[k];
  }
  V::store(lanes[0], Function(V::load(lanes[0]), V::load(lanes[1])));
  for (int64_t k = i; k < n; ++k) out[k] = lanes[0][k - i];
}

Status launch_gated(const GatedActivationProblem& p, const GatedActivationArgs& a, Launch& launch) {
  const int64_t gate_stride = a.gate_stride ? a.gate_stride : p.dim;
  const int64_t up_stride = a.up_stride ? a.up_stride : p.dim;
  const auto row = p.kind == GatedActivation::kSwiGlu ? apply<swiglu> : apply<geglu>;
  // A single token is cut too: pieces of 1024 columns.
  constexpr int64_t kPiece = 1024;
  const int64_t pieces = (p.dim + kPiece - 1) / kPiece;
  launch.pool.parallel_for(p.tokens * pieces, 4, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t t = item / pieces;
      const int64_t c = item % pieces * kPiece;
      const int64_t count = p.dim - c < kPiece ? p.dim - c : kPiece;
      row(a.gate + t * gate_stride + c, a.up + t * up_stride + c, a.out + t * p.dim + c, count);
    }
  });
  return {};
}

}  // namespace

constinit const Kernel<GatedActivationProblem, GatedActivationArgs> kGatedActivationAvx2 = {
    .name = "avx2", .arch = "avx2", .priority = 10, .launch = launch_gated};

}  // namespace crest::ops
