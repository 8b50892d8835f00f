#pragma once

#include "ops/activation/activation.h"
#include "ops/registry.h"
#include "ops/weight.h"

namespace crest::ops {

/// Softmax over all experts, the top_k best (ties: lowest index), optionally divided by their sum, times scale.
/// A row with NaN is an error that names it.
struct RouterProblem {
  int64_t tokens = 0;
  int64_t experts = 0;
  int64_t top_k = 0;  // 1..experts
  bool renormalize = true;
  float scale = 1.0f;
};
struct RouterArgs {
  const float* logits = nullptr;  // [tokens, experts]
  int32_t* expert_ids = nullptr;  // [tokens, top_k], best first
  float* weights = nullptr;       // [tokens, top_k]
};
Status check(const RouterProblem& problem, const RouterArgs& args);
Status moe_router(const RouterProblem& problem, const RouterArgs& args, Context& context);
const Operator<RouterProblem, RouterArgs>& moe_router_operator();

/// Routed experts: out[t] = sum_k weights[t,k] * down_e( act(gate_e x) * (up_e x) ), e = expert_ids[t,k], summed in the
/// order of k. Tokens are grouped by expert, so that each expert's weights are read once.
struct MoeExpertsProblem {
  int64_t tokens = 0;
  int64_t top_k = 0;
  int64_t experts = 0;
  int64_t hidden = 0;
  int64_t intermediate = 0;
  GatedActivation activation = GatedActivation::kSwiGlu;
};
struct MoeExpertsArgs {
  const float* x = nullptr;             // [tokens, hidden]
  const int32_t* expert_ids = nullptr;  // [tokens, top_k], each in [0, experts)
  const float* weights = nullptr;       // [tokens, top_k]
  const Weight* gate = nullptr;         // [experts, intermediate, hidden]; null when gate_up is set
  const Weight* up = nullptr;           // [experts, intermediate, hidden]
  const Weight* gate_up = nullptr;      // [experts, 2*intermediate, hidden], gate rows first
  const Weight* down = nullptr;         // [experts, hidden, intermediate]
  float* out = nullptr;                 // [tokens, hidden]; not x
};
Status check(const MoeExpertsProblem& problem, const MoeExpertsArgs& args);
Status moe_experts(const MoeExpertsProblem& problem, const MoeExpertsArgs& args, Context& context);

/// out[t] += sigmoid(gate[t]) * shared[t]: the shared expert of Qwen's MoE layers (gate = x . shared_expert_gate).
struct SharedExpertProblem {
  int64_t tokens = 0;
  int64_t hidden = 0;
};
struct SharedExpertArgs {
  const float* gate = nullptr;    // [tokens]
  const float* shared = nullptr;  // [tokens, hidden]
  float* out = nullptr;           // [tokens, hidden], added to
};
Status check(const SharedExpertProblem& problem, const SharedExpertArgs& args);
Status shared_expert_add(const SharedExpertProblem& problem, const SharedExpertArgs& args, Context& context);
const Operator<SharedExpertProblem, SharedExpertArgs>& shared_expert_add_operator();

}  // namespace crest::ops
