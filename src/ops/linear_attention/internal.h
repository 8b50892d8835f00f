#pragma once

#include "ops/linear_attention/causal_conv1d.h"
#include "ops/linear_attention/gated_delta.h"

namespace crest::ops {

Kernel<CausalConv1dProblem, CausalConv1dArgs> causal_conv1d_reference();
Kernel<DeltaGatesProblem, DeltaGatesArgs> delta_gates_reference();
Kernel<GatedDeltaProblem, GatedDeltaArgs> gated_delta_reference();  // recurrence, token by token
Kernel<GatedDeltaProblem, GatedDeltaArgs> gated_delta_chunked();

/// What one value head of one sequence works on. Vectors of token t (of the sequence) are stride elements apart.
struct DeltaHead {
  const float *q, *k, *v, *g, *beta;
  int64_t q_stride, k_stride, v_stride, gate_stride;
  float* state;  // [k_dim, v_dim], zeroed if the sequence is new
  float* out;
  int64_t out_stride;
  int64_t length;  // tokens
};
DeltaHead delta_head(const GatedDeltaProblem& problem, const GatedDeltaArgs& args, int64_t sequence, int64_t v_head);

/// The recurrence for tokens [begin, end); scratch holds 2*k_dim + v_dim floats.
void delta_recurrence(const GatedDeltaProblem& problem, const DeltaHead& head, int64_t begin, int64_t end,
                      float* scratch);
/// target = x / |x| (if asked for) * scale.
void delta_normalize(const GatedDeltaProblem& problem, const float* x, float scale, float* target);
float delta_scale(const GatedDeltaProblem& problem);

}  // namespace crest::ops
