#include "ops/embedding/embedding.h"

#include "ops/checks.h"
#include "ops/embedding/internal.h"

namespace crest::ops {

Status check(const EmbeddingProblem& p, const EmbeddingArgs& a) {
  constexpr auto kOp = "embedding";
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", p.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "vocab", p.vocab, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "dim", p.dim, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, 1, {{"table", a.table}}));
  CREST_RETURN_IF_ERROR(check_pointers(kOp, p.tokens, {{"table", a.table->data}, {"ids", a.ids}, {"out", a.out}}));
  CREST_RETURN_IF_ERROR(check_range(kOp, "rows of the table", a.table->rows, p.vocab, p.vocab));
  CREST_RETURN_IF_ERROR(check_range(kOp, "columns of the table", a.table->cols, p.dim, p.dim));
  if (a.table->rotation) return make_error(ErrorCode::kUnsupported, "{}: a ParoQuant matrix cannot be a table", kOp);
  for (int64_t t = 0; t < p.tokens; ++t) {
    if (a.ids[t] < 0 || a.ids[t] >= p.vocab) {
      return make_error(ErrorCode::kInvalidArgument, "{}: token {} of the batch is id {}, allowed: 0 to {}", kOp, t,
                        a.ids[t], p.vocab - 1);
    }
  }
  return {};
}

const Operator<EmbeddingProblem, EmbeddingArgs>& embedding_operator() {
  static const Operator<EmbeddingProblem, EmbeddingArgs> op("embedding", {embedding_reference()});
  return op;
}

Status embedding(const EmbeddingProblem& problem, const EmbeddingArgs& args, Context& context) {
  CREST_RETURN_IF_ERROR(check(problem, args));
  return embedding_operator().run(problem, args, context, tensor::name(problem.dtype));
}

Status embedding(const Weight& table, std::span<const int32_t> ids, float scale, float* out, Context& context) {
  return embedding({.tokens = static_cast<int64_t>(ids.size()),
                    .vocab = table.rows,
                    .dim = table.cols,
                    .dtype = table.dtype,
                    .layout = table.layout,
                    .scale = scale},
                   {.ids = ids.data(), .table = &table, .out = out}, context);
}

}  // namespace crest::ops
