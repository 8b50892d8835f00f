#include "ops/norm/norm.h"

#include "ops/checks.h"
#include "ops/norm/internal.h"

namespace crest::ops {

Status check(const RmsNormProblem& p, const RmsNormArgs& a) {
  constexpr auto kOp = "rms_norm";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "heads", p.heads, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "dim", p.dim, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_finite(kOp, "eps", p.eps, 0, 1));
  CREST_RETURN_IF_ERROR(check_view(kOp, "x", a.x, p.tokens, p.heads, p.dim));
  CREST_RETURN_IF_ERROR(check_view(kOp, "out", a.out, p.tokens, p.heads, p.dim));
  if (p.gated) CREST_RETURN_IF_ERROR(check_view(kOp, "gate", a.gate, p.tokens, p.heads, p.dim));
  return {};
}

const Operator<RmsNormProblem, RmsNormArgs>& rms_norm_operator() {
  static const Operator<RmsNormProblem, RmsNormArgs> op("rms_norm", {rms_norm_reference(), kRmsNormAvx2});
  return op;
}

Status rms_norm(const RmsNormProblem& problem, const RmsNormArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return rms_norm_operator().run(problem, args, context);
}

}  // namespace crest::ops
