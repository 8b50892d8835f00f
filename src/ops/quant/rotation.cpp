#include "ops/quant/rotation.h"

#include "ops/checks.h"
#include "ops/quant/internal.h"

namespace crest::ops {

Status check(const RotationProblem& p, const RotationArgs& a) {
  constexpr auto kOp = "rotate";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, 1, {{"rotation", a.rotation}}));
  CREST_RETURN_IF_ERROR(check_range(kOp, "cols", p.cols, a.rotation->cols, a.rotation->cols));
  CREST_RETURN_IF_ERROR(check_range(kOp, "rounds", p.rounds, a.rotation->rounds, a.rotation->rounds));
  CREST_RETURN_IF_ERROR(check_view(kOp, "x", HeadsView{a.x, a.x_stride, 0}, p.tokens, 1, p.cols));
  return check_pointers(kOp, p.tokens, {{"out", a.out}});
}

const Operator<RotationProblem, RotationArgs>& rotate_operator() {
  static const Operator<RotationProblem, RotationArgs> op("rotate", {rotate_reference(), kRotateAvx2});
  return op;
}

Status rotate(const RotationProblem& problem, const RotationArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return rotate_operator().run(problem, args, context);
}

}  // namespace crest::ops
