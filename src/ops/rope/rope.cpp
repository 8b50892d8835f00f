#include "ops/rope/rope.h"

#include "ops/checks.h"
#include "ops/rope/internal.h"

namespace crest::ops {

Status check(const RopeTableProblem& p, const RopeTableArgs& a) {
  constexpr auto kOp = "rope_table";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, 1, {{"frequencies", a.frequencies}}));
  const auto& f = *a.frequencies;
  const auto dim = static_cast<int64_t>(2 * f.inverse.size());
  CREST_RETURN_IF_ERROR(check_range(kOp, "rotary_dim", p.rotary_dim, dim, dim));
  if (p.streams != 1 && p.streams != 3) {
    return make_error(ErrorCode::kInvalidArgument, "{}: streams is {}, allowed: 1 or 3", kOp, p.streams);
  }
  CREST_RETURN_IF_ERROR(
      check_pointers(kOp, p.tokens, {{"positions", a.positions}, {"cosines", a.cosines}, {"sines", a.sines}}));
  for (int64_t i = 0; i < p.streams * p.tokens; ++i) {
    if (a.positions[i] < 0) {
      return make_error(ErrorCode::kInvalidArgument, "{}: positions[{}] is {}, allowed: 0 and more", kOp, i,
                        a.positions[i]);
    }
  }
  return {};
}

const Operator<RopeTableProblem, RopeTableArgs>& rope_table_operator() {
  static const Operator<RopeTableProblem, RopeTableArgs> op("rope_table", {rope_table_reference()});
  return op;
}

Status rope_table(const RopeTableProblem& problem, const RopeTableArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return rope_table_operator().run(problem, args, context);
}

Status check(const RopeProblem& p, const RopeArgs& a) {
  constexpr auto kOp = "rope";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "heads", p.heads, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "head_dim", p.head_dim, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "rotary_dim", p.rotary_dim, 0, p.head_dim));
  if (p.rotary_dim % 2 != 0) {
    return make_error(ErrorCode::kInvalidArgument, "{}: rotary_dim is {}, allowed: even numbers", kOp, p.rotary_dim);
  }
  CREST_RETURN_IF_ERROR(check_view(kOp, "x", a.x, p.tokens, p.heads, p.head_dim));
  return check_pointers(kOp, p.tokens, {{"cosines", a.cosines}, {"sines", a.sines}});
}

const Operator<RopeProblem, RopeArgs>& rope_operator() {
  static const Operator<RopeProblem, RopeArgs> op("rope", {rope_reference(), kRopeAvx2});
  return op;
}

Status rope(const RopeProblem& problem, const RopeArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return rope_operator().run(problem, args, context);
}

}  // namespace crest::ops
