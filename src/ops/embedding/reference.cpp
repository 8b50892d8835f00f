#include "ops/embedding/internal.h"
#include "ops/partition.h"

namespace crest::ops {
namespace {

Status launch(const EmbeddingProblem& p, const EmbeddingArgs& a, Launch& launch) {
  launch.pool.parallel_for(p.tokens, row_grain(4 * p.dim), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      float* out = a.out + t * p.dim;
      dequantize_weight_row(*a.table, 0, a.ids[t], out);
      if (p.scale == 1.0f) continue;
      for (int64_t i = 0; i < p.dim; ++i) out[i] *= p.scale;
    }
  });
  return {};
}

}  // namespace

Kernel<EmbeddingProblem, EmbeddingArgs> embedding_reference() { return {.name = "reference", .launch = launch}; }

}  // namespace crest::ops
