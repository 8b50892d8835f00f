#include "ops/activation/activation.h"

#include "ops/activation/internal.h"
#include "ops/checks.h"

namespace crest::ops {

Status check(const GatedActivationProblem& p, const GatedActivationArgs& a) {
  constexpr auto kOp = "gated_activation";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "dim", p.dim, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_view(kOp, "gate", HeadsView{a.gate, a.gate_stride, 0}, p.tokens, 1, p.dim));
  CREST_RETURN_IF_ERROR(check_view(kOp, "up", HeadsView{a.up, a.up_stride, 0}, p.tokens, 1, p.dim));
  return check_pointers(kOp, p.tokens, {{"out", a.out}});
}

const Operator<GatedActivationProblem, GatedActivationArgs>& gated_activation_operator() {
  static const Operator<GatedActivationProblem, GatedActivationArgs> op(
      "gated_activation", {gated_activation_reference(), kGatedActivationAvx2});
  return op;
}

Status gated_activation(const GatedActivationProblem& problem, const GatedActivationArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return gated_activation_operator().run(problem, args, context);
}

Status check(const AddProblem& p, const AddArgs& a) {
  CREST_RETURN_IF_ERROR(check_range("add", "count", p.count, 0, int64_t{1} << 60));
  return check_pointers("add", p.count, {{"a", a.a}, {"b", a.b}, {"out", a.out}});
}

const Operator<AddProblem, AddArgs>& add_operator() {
  static const Operator<AddProblem, AddArgs> op("add", {add_reference()});
  return op;
}

Status add(const AddProblem& problem, const AddArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return add_operator().run(problem, args, context);
}

}  // namespace crest::ops
