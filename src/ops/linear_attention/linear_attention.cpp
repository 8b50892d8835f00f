#include <algorithm>
#include <limits>

#include "ops/checks.h"
#include "ops/linear_attention/cpu_linear_attention.h"
#include "ops/linear_attention/internal.h"

namespace crest::ops {

Status check(const CausalConv1dProblem& p, const CausalConv1dArgs& a) {
  constexpr auto kOp = "causal_conv1d";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "sequences", p.sequences, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "channels", p.channels, 1, 1 << 28));
  CREST_RETURN_IF_ERROR(check_range(kOp, "width", p.width, 1, 64));
  CREST_RETURN_IF_ERROR(check_cu_seqlens(kOp, "cu_seqlens", a.cu_seqlens, p.sequences, p.tokens));
  CREST_RETURN_IF_ERROR(check_state_slots(kOp, a.state_slots, p.sequences, p.slots));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, p.sequences, {{"weight", a.weight}}));
  if (p.width > 1) CREST_RETURN_IF_ERROR(check_pointers(kOp, p.sequences, {{"state", a.state}}));
  CREST_RETURN_IF_ERROR(check_view(kOp, "x", HeadsView{a.x, a.x_stride, 0}, p.tokens, 1, p.channels));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, p.tokens, {{"out", a.out}}));
  if (p.tokens > 0 && a.out == a.x) {
    return make_error(ErrorCode::kInvalidArgument, "{}: out is x, allowed: other memory", kOp);
  }
  return {};
}

const Operator<CausalConv1dProblem, CausalConv1dArgs>& causal_conv1d_operator() {
  static const Operator<CausalConv1dProblem, CausalConv1dArgs> op("causal_conv1d",
                                                                  {causal_conv1d_reference(), kCausalConv1dAvx2});
  return op;
}

Status causal_conv1d(const CausalConv1dProblem& problem, const CausalConv1dArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return causal_conv1d_operator().run(problem, args, context);
}

Status check(const DeltaGatesProblem& p, const DeltaGatesArgs& a) {
  constexpr auto kOp = "delta_gates";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "v_heads", p.v_heads, 1, 1 << 20));
  CREST_RETURN_IF_ERROR(check_view(kOp, "a", HeadsView{a.a, a.a_stride, 0}, p.tokens, 1, p.v_heads));
  CREST_RETURN_IF_ERROR(check_view(kOp, "b", HeadsView{a.b, a.b_stride, 0}, p.tokens, 1, p.v_heads));
  return check_pointers(kOp, p.tokens, {{"a_scale", a.a_scale}, {"dt_bias", a.dt_bias}, {"g", a.g}, {"beta", a.beta}});
}

const Operator<DeltaGatesProblem, DeltaGatesArgs>& delta_gates_operator() {
  static const Operator<DeltaGatesProblem, DeltaGatesArgs> op("delta_gates", {delta_gates_reference()});
  return op;
}

Status delta_gates(const DeltaGatesProblem& problem, const DeltaGatesArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return delta_gates_operator().run(problem, args, context);
}

Status check(const GatedDeltaProblem& p, const GatedDeltaArgs& a) {
  constexpr auto kOp = "gated_delta";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "sequences", p.sequences, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "k_heads", p.k_heads, 1, 1 << 20));
  CREST_RETURN_IF_ERROR(check_range(kOp, "v_heads", p.v_heads, 1, 1 << 20));
  if (p.v_heads % p.k_heads != 0) {
    return make_error(ErrorCode::kInvalidArgument, "{}: v_heads is {}, allowed: multiples of the {} k_heads", kOp,
                      p.v_heads, p.k_heads);
  }
  CREST_RETURN_IF_ERROR(check_range(kOp, "k_dim", p.k_dim, 1, 1 << 16));
  CREST_RETURN_IF_ERROR(check_range(kOp, "v_dim", p.v_dim, 1, 1 << 16));
  CREST_RETURN_IF_ERROR(check_finite(kOp, "l2_eps", p.l2_eps, 0, 1));
  constexpr double kLargest = std::numeric_limits<float>::max();
  CREST_RETURN_IF_ERROR(check_finite(kOp, "scale", p.scale, -kLargest, kLargest));
  CREST_RETURN_IF_ERROR(check_cu_seqlens(kOp, "cu_seqlens", a.cu_seqlens, p.sequences, p.tokens));
  for (int64_t s = 0; s < p.sequences; ++s) {
    CREST_RETURN_IF_ERROR(check_range(kOp, "sequence length", a.cu_seqlens[s + 1] - a.cu_seqlens[s], 0, p.max_q_len));
  }
  CREST_RETURN_IF_ERROR(check_state_slots(kOp, a.state_slots, p.sequences, p.slots));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, p.sequences, {{"state", a.state}}));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, p.tokens, {{"g", a.g}, {"beta", a.beta}}));
  CREST_RETURN_IF_ERROR(check_view(kOp, "q", a.q, p.tokens, p.k_heads, p.k_dim));
  CREST_RETURN_IF_ERROR(check_view(kOp, "k", a.k, p.tokens, p.k_heads, p.k_dim));
  CREST_RETURN_IF_ERROR(check_view(kOp, "v", a.v, p.tokens, p.v_heads, p.v_dim));
  return check_view(kOp, "out", a.out, p.tokens, p.v_heads, p.v_dim);
}

DeltaHead delta_head(const GatedDeltaProblem& p, const GatedDeltaArgs& a, int64_t sequence, int64_t v_head) {
  const int64_t k_head = p.order == HeadOrder::kGrouped ? v_head / (p.v_heads / p.k_heads) : v_head % p.k_heads;
  const int64_t first = a.cu_seqlens[sequence];
  const HeadsView q = resolve(a.q, p.k_heads, p.k_dim);
  const HeadsView k = resolve(a.k, p.k_heads, p.k_dim);
  const HeadsView v = resolve(a.v, p.v_heads, p.v_dim);
  const MutableHeadsView out = resolve(a.out, p.v_heads, p.v_dim);
  const int64_t size = p.k_dim * p.v_dim;
  float* state = a.state + (a.state_slots[sequence] * p.v_heads + v_head) * size;
  if (a.has_state != nullptr && !a.has_state[sequence]) std::fill(state, state + size, 0.0f);
  return {.q = q.data + first * q.token_stride + k_head * q.head_stride,
          .k = k.data + first * k.token_stride + k_head * k.head_stride,
          .v = v.data + first * v.token_stride + v_head * v.head_stride,
          .g = a.g + first * p.v_heads + v_head,
          .beta = a.beta + first * p.v_heads + v_head,
          .q_stride = q.token_stride,
          .k_stride = k.token_stride,
          .v_stride = v.token_stride,
          .gate_stride = p.v_heads,
          .state = state,
          .out = out.data + first * out.token_stride + v_head * out.head_stride,
          .out_stride = out.token_stride,
          .length = a.cu_seqlens[sequence + 1] - first};
}

const Operator<GatedDeltaProblem, GatedDeltaArgs>& gated_delta_operator() {
  static const Operator<GatedDeltaProblem, GatedDeltaArgs> op(
      "gated_delta", {gated_delta_reference(), gated_delta_chunked(), kGatedDeltaAvx2, kGatedDeltaAvx512});
  return op;
}

Status gated_delta(const GatedDeltaProblem& problem, const GatedDeltaArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return gated_delta_operator().run(problem, args, context);
}

}  // namespace crest::ops
