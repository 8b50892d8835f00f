#include "ops/checks.h"
#include "ops/moe/internal.h"

namespace crest::ops {

Status check(const RouterProblem& p, const RouterArgs& a) {
  constexpr auto kOp = "moe_router";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "experts", p.experts, 1, 1 << 20));
  CREST_RETURN_IF_ERROR(check_range(kOp, "top_k", p.top_k, 1, p.experts));
  CREST_RETURN_IF_ERROR(check_finite(kOp, "scale", p.scale, -1e30, 1e30));
  return check_pointers(kOp, p.tokens, {{"logits", a.logits}, {"expert_ids", a.expert_ids}, {"weights", a.weights}});
}

const Operator<RouterProblem, RouterArgs>& moe_router_operator() {
  static const Operator<RouterProblem, RouterArgs> op("moe_router", {moe_router_reference()});
  return op;
}

Status moe_router(const RouterProblem& problem, const RouterArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return moe_router_operator().run(problem, args, context);
}

Status check(const SharedExpertProblem& p, const SharedExpertArgs& a) {
  constexpr auto kOp = "shared_expert_add";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "hidden", p.hidden, 1, kMaxExtent));
  return check_pointers(kOp, p.tokens, {{"gate", a.gate}, {"shared", a.shared}, {"out", a.out}});
}

const Operator<SharedExpertProblem, SharedExpertArgs>& shared_expert_add_operator() {
  static const Operator<SharedExpertProblem, SharedExpertArgs> op("shared_expert_add", {shared_expert_add_reference()});
  return op;
}

Status shared_expert_add(const SharedExpertProblem& problem, const SharedExpertArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return shared_expert_add_operator().run(problem, args, context);
}

}  // namespace crest::ops
