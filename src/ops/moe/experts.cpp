#include <algorithm>

#include "ops/checks.h"
#include "ops/gemm/linear.h"
#include "ops/moe/moe.h"
#include "ops/partition.h"

namespace crest::ops {
namespace {

constexpr auto kOp = "moe_experts";

Status check_stack(std::string_view argument, const Weight* weight, int64_t experts, int64_t rows, int64_t cols) {
  CREST_RETURN_IF_ERROR(check_pointers(kOp, 1, {{argument, weight}}));
  if (weight->experts == experts && weight->rows == rows && weight->cols == cols) return {};
  return make_error(ErrorCode::kInvalidArgument, "{}: {} is [{}, {}, {}], allowed: [{}, {}, {}]", kOp, argument,
                    weight->experts, weight->rows, weight->cols, experts, rows, cols);
}

/// Token-expert pairs in the order of their experts, pairs of one expert in the order of tokens.
struct Grouping {
  int32_t* offsets = nullptr;  // [experts + 1]
  int32_t* tokens = nullptr;   // [pairs]: token of a grouped pair
  int32_t* places = nullptr;   // [tokens, top_k]: where a pair went
};

Result<Grouping> group_pairs(const MoeExpertsProblem& p, const int32_t* expert_ids, Workspace& workspace) {
  const int64_t pairs = p.tokens * p.top_k;
  Grouping g;
  CREST_TRY(g.offsets, workspace.allocate<int32_t>(p.experts + 2));
  CREST_TRY(g.tokens, workspace.allocate<int32_t>(pairs));
  CREST_TRY(g.places, workspace.allocate<int32_t>(pairs));
  // offsets[e + 2] counts expert e; summed up, offsets[e + 1] is where e begins and moves to its end while pairs are
  // placed.
  std::fill(g.offsets, g.offsets + p.experts + 2, 0);
  for (int64_t i = 0; i < pairs; ++i) ++g.offsets[expert_ids[i] + 2];
  for (int64_t e = 2; e < p.experts + 2; ++e) g.offsets[e] += g.offsets[e - 1];
  for (int64_t i = 0; i < pairs; ++i) {
    const int32_t place = g.offsets[expert_ids[i] + 1]++;
    g.places[i] = place;
    g.tokens[place] = static_cast<int32_t>(i / p.top_k);
  }
  return g;
}

}  // namespace

Status check(const MoeExpertsProblem& p, const MoeExpertsArgs& a) {
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "experts", p.experts, 1, 1 << 20));
  CREST_RETURN_IF_ERROR(check_range(kOp, "top_k", p.top_k, 1, p.experts));
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens x top_k", p.tokens * p.top_k, 0, kMaxExtent - 1));
  CREST_RETURN_IF_ERROR(check_range(kOp, "hidden", p.hidden, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "intermediate", p.intermediate, 1, kMaxExtent));
  if (a.gate_up != nullptr) {
    if (a.gate != nullptr || a.up != nullptr) {
      return make_error(ErrorCode::kInvalidArgument, "{}: gate_up is given beside gate or up, allowed: one form", kOp);
    }
    CREST_RETURN_IF_ERROR(check_stack("gate_up", a.gate_up, p.experts, 2 * p.intermediate, p.hidden));
  } else {
    CREST_RETURN_IF_ERROR(check_stack("gate", a.gate, p.experts, p.intermediate, p.hidden));
    CREST_RETURN_IF_ERROR(check_stack("up", a.up, p.experts, p.intermediate, p.hidden));
  }
  CREST_RETURN_IF_ERROR(check_stack("down", a.down, p.experts, p.hidden, p.intermediate));
  CREST_RETURN_IF_ERROR(check_pointers(
      kOp, p.tokens, {{"x", a.x}, {"expert_ids", a.expert_ids}, {"weights", a.weights}, {"out", a.out}}));
  for (int64_t i = 0; i < p.tokens * p.top_k; ++i) {
    CREST_RETURN_IF_ERROR(check_range(kOp, "expert id", a.expert_ids[i], 0, p.experts - 1));
  }
  return {};
}

Status moe_experts(const MoeExpertsProblem& p, const MoeExpertsArgs& a, Context& context) {
  CREST_RETURN_IF_ERROR(check(p, a));
  Workspace::Scope scope(context.workspace);
  const int64_t pairs = p.tokens * p.top_k;
  CREST_TRY(const Grouping grouping, group_pairs(p, a.expert_ids, context.workspace));
  CREST_TRY(float* gate_up, context.workspace.allocate<float>(pairs * 2 * p.intermediate));
  CREST_TRY(float* inner, context.workspace.allocate<float>(pairs * p.intermediate));
  CREST_TRY(float* outputs, context.workspace.allocate<float>(pairs * p.hidden));
  const ExpertGroups groups{p.experts, grouping.offsets};

  const LinearInput input{
      .x = a.x, .tokens = pairs, .in_features = p.hidden, .x_rows = p.tokens, .rows = grouping.tokens};
  const int64_t stride = 2 * p.intermediate;
  if (a.gate_up != nullptr) {
    const LinearTarget both{.weight = a.gate_up, .out = gate_up, .out_stride = stride};
    CREST_RETURN_IF_ERROR(grouped_linear(input, groups, {&both, 1}, context));
  } else {
    const LinearTarget halves[] = {{.weight = a.gate, .out = gate_up, .out_stride = stride},
                                   {.weight = a.up, .out = gate_up + p.intermediate, .out_stride = stride}};
    CREST_RETURN_IF_ERROR(grouped_linear(input, groups, halves, context));
  }
  CREST_RETURN_IF_ERROR(gated_activation(
      {.tokens = pairs, .dim = p.intermediate, .kind = p.activation},
      {.gate = gate_up, .up = gate_up + p.intermediate, .gate_stride = stride, .up_stride = stride, .out = inner},
      context));
  const LinearTarget down{.weight = a.down, .out = outputs};
  CREST_RETURN_IF_ERROR(
      grouped_linear({.x = inner, .tokens = pairs, .in_features = p.intermediate}, groups, {&down, 1}, context));

  context.pool.parallel_for(p.tokens, row_grain(p.top_k * p.hidden), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* out = a.out + t * p.hidden;
      std::fill(out, out + p.hidden, 0.0f);
      for (int64_t k = 0; k < p.top_k; ++k) {
        const float weight = a.weights[t * p.top_k + k];
        const float* source = outputs + grouping.places[t * p.top_k + k] * p.hidden;
        for (int64_t i = 0; i < p.hidden; ++i) out[i] += weight * source[i];
      }
    }
  });
  return {};
}

}  // namespace crest::ops
