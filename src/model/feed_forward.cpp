#include "model/feed_forward.h"

#include <numeric>

#include "ops/gemm/linear.h"
#include "ops/moe/moe.h"

namespace crest::model {

Result<FeedForward> FeedForward::load(WeightLoader& loader, std::string_view prefix, std::string_view suffix,
                                      int64_t hidden, int64_t intermediate) {
  FeedForward result;
  CREST_TRY(result.gate, loader.linear(fmt::format("{}_gate{}", prefix, suffix), hidden, intermediate));
  CREST_TRY(result.up, loader.linear(fmt::format("{}_up{}", prefix, suffix), hidden, intermediate));
  CREST_TRY(result.down, loader.linear(fmt::format("{}_down{}", prefix, suffix), intermediate, hidden));
  return result;
}

Status FeedForward::run(Pass& pass, const float* x, float* out, bool accumulate) const {
  ops::Workspace::Scope scope(pass.ops().workspace);
  const int64_t intermediate = gate.weight.rows;
  CREST_TRY(float* const gated, pass.floats(pass.tokens * intermediate));
  CREST_TRY(float* const upper, pass.floats(pass.tokens * intermediate));
  CREST_RETURN_IF_ERROR(apply(pass, x, {{gate, gated}, {up, upper}}));
  CREST_RETURN_IF_ERROR(ops::gated_activation({.tokens = pass.tokens, .dim = intermediate, .kind = activation},
                                              {.gate = gated, .up = upper, .out = gated}, pass.ops()));
  return apply(pass, gated, {{down, out, accumulate}});
}

Result<MixtureOfExperts> MixtureOfExperts::load(WeightLoader& loader, const ModelConfig& config, size_t block) {
  const MoeConfig& moe = config.moe;
  const auto name = [&](std::string_view part) { return fmt::format("blk.{}.ffn_{}", block, part); };
  MixtureOfExperts result;
  CREST_TRY(result.router, loader.linear(name("gate_inp"), config.hidden, moe.experts));
  if (loader.has(name("gate_up_exps.weight"))) {
    CREST_TRY(result.gate_up, loader.experts(name("gate_up_exps"), config.hidden, 2 * moe.ffn, moe.experts));
  } else {
    CREST_TRY(result.gate, loader.experts(name("gate_exps"), config.hidden, moe.ffn, moe.experts));
    CREST_TRY(result.up, loader.experts(name("up_exps"), config.hidden, moe.ffn, moe.experts));
  }
  CREST_TRY(result.down, loader.experts(name("down_exps"), moe.ffn, config.hidden, moe.experts));
  if (moe.shared_ffn > 0) {
    CREST_TRY(result.shared_gate, loader.linear(name("gate_inp_shexp"), config.hidden, 1));
    CREST_TRY(result.shared,
              FeedForward::load(loader, fmt::format("blk.{}.ffn", block), "_shexp", config.hidden, moe.shared_ffn));
  }
  return result;
}

Status MixtureOfExperts::run(Pass& pass, const float* x, float* out) const {
  const MoeConfig& moe = pass.config.moe;
  ops::Workspace::Scope scope(pass.ops().workspace);
  CREST_TRY(float* const logits, pass.floats(pass.tokens * moe.experts));
  CREST_TRY(int32_t* const ids, pass.ops().workspace.allocate<int32_t>(pass.tokens * moe.used));
  CREST_TRY(float* const weights, pass.floats(pass.tokens * moe.used));
  CREST_TRY(float* const mixed, pass.floats(pass.tokens * pass.config.hidden));
  CREST_RETURN_IF_ERROR(apply(pass, x, {{router, logits}}));
  CREST_RETURN_IF_ERROR(
      ops::moe_router({.tokens = pass.tokens, .experts = moe.experts, .top_k = moe.used, .renormalize = moe.normalise},
                      {.logits = logits, .expert_ids = ids, .weights = weights}, pass.ops()));
  if (pass.context.observer != nullptr) CREST_RETURN_IF_ERROR(observe(pass, x, ids));
  CREST_RETURN_IF_ERROR(run_experts(pass, x, ids, weights, mixed));
  if (!shared.gate.empty()) {
    CREST_TRY(float* const shared_out, pass.floats(pass.tokens * pass.config.hidden));
    CREST_TRY(float* const shared_logit, pass.floats(pass.tokens));
    CREST_RETURN_IF_ERROR(shared.run(pass, x, shared_out, false));
    CREST_RETURN_IF_ERROR(apply(pass, x, {{shared_gate, shared_logit}}));
    CREST_RETURN_IF_ERROR(ops::shared_expert_add({.tokens = pass.tokens, .hidden = pass.config.hidden},
                                                 {.gate = shared_logit, .shared = shared_out, .out = mixed},
                                                 pass.ops()));
  }
  return add(pass, mixed, out);
}

Status MixtureOfExperts::run_experts(Pass& pass, const float* x, const int32_t* ids, const float* weights,
                                     float* out) const {
  const MoeConfig& moe = pass.config.moe;
  const bool fused = !gate_up.empty();
  return ops::moe_experts({.tokens = pass.tokens,
                           .top_k = moe.used,
                           .experts = moe.experts,
                           .hidden = pass.config.hidden,
                           .intermediate = moe.ffn},
                          {.x = x,
                           .expert_ids = ids,
                           .weights = weights,
                           .gate = fused ? nullptr : &gate.weight,
                           .up = fused ? nullptr : &up.weight,
                           .gate_up = fused ? &gate_up.weight : nullptr,
                           .down = &down.weight,
                           .out = out},
                          pass.ops());
}

/// What each chosen expert reads. The fused operator does not show it, so gate and up are computed once more.
Status MixtureOfExperts::observe(Pass& pass, const float* x, const int32_t* ids) const {
  const MoeConfig& moe = pass.config.moe;
  const int64_t hidden = pass.config.hidden;
  const int64_t pairs = pass.tokens * moe.used;
  std::vector<int32_t> offsets(static_cast<size_t>(moe.experts) + 1);
  for (int64_t i = 0; i < pairs; ++i) ++offsets[static_cast<size_t>(ids[i]) + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<int32_t> next(offsets.begin(), offsets.end() - 1);
  std::vector<float> inputs(static_cast<size_t>(pairs * hidden));
  for (int64_t i = 0; i < pairs; ++i) {
    const int64_t at = next[static_cast<size_t>(ids[i])]++;
    std::copy_n(x + i / moe.used * hidden, hidden, inputs.begin() + at * hidden);
  }
  const ops::ExpertGroups groups{moe.experts, offsets.data()};
  const int64_t width = gate_up.empty() ? moe.ffn : 2 * moe.ffn;
  std::vector<float> gates(static_cast<size_t>(pairs * width)), uppers(gate_up.empty() ? gates.size() : 0);
  std::vector<ops::LinearTarget> targets;
  if (gate_up.empty()) {
    targets = {{.weight = &gate.weight, .out = gates.data()}, {.weight = &up.weight, .out = uppers.data()}};
  } else {
    targets = {{.weight = &gate_up.weight, .out = gates.data()}};
  }
  CREST_RETURN_IF_ERROR(
      ops::grouped_linear({.x = inputs.data(), .tokens = pairs, .in_features = hidden}, groups, targets, pass.ops()));
  std::vector<float> middle(static_cast<size_t>(pairs * moe.ffn));
  CREST_RETURN_IF_ERROR(ops::gated_activation({.tokens = pairs, .dim = moe.ffn},
                                              {.gate = gates.data(),
                                               .up = gate_up.empty() ? uppers.data() : gates.data() + moe.ffn,
                                               .gate_stride = width,
                                               .up_stride = width,
                                               .out = middle.data()},
                                              pass.ops()));
  for (int64_t e = 0; e < moe.experts; ++e) {
    const int64_t begin = offsets[static_cast<size_t>(e)];
    const int64_t rows = offsets[static_cast<size_t>(e) + 1] - begin;
    if (rows == 0) continue;
    for (const Linear* linear : {&gate_up, &gate, &up}) {
      if (!linear->empty())
        pass.context.observer->linear_input(linear->name, moe.experts, e, inputs.data() + begin * hidden, rows, hidden);
    }
    pass.context.observer->linear_input(down.name, moe.experts, e, middle.data() + begin * moe.ffn, rows, moe.ffn);
  }
  return {};
}

}  // namespace crest::model
