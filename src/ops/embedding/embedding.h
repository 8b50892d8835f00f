#pragma once

#include "ops/registry.h"
#include "ops/weight.h"

namespace crest::ops {

/// out[t] = table[ids[t]] * scale, in fp32. The product is one rounding of the dequantised value times scale.
struct EmbeddingProblem {
  int64_t tokens = 0;
  int64_t vocab = 0;  // rows of the table
  int64_t dim = 0;
  tensor::DType dtype = tensor::DType::kF32;
  WeightLayout layout = WeightLayout::kRows;
  float scale = 1.0f;  // Gemma: sqrt(dim)
};
struct EmbeddingArgs {
  const int32_t* ids = nullptr;   // [tokens]; each in [0, vocab), else an error that names the token
  const Weight* table = nullptr;  // [vocab, dim]
  float* out = nullptr;           // [tokens, dim]
};
Status check(const EmbeddingProblem& problem, const EmbeddingArgs& args);
Status embedding(const EmbeddingProblem& problem, const EmbeddingArgs& args, Context& context);
/// Problem from the table: for callers that have nothing to add.
Status embedding(const Weight& table, std::span<const int32_t> ids, float scale, float* out, Context& context);
const Operator<EmbeddingProblem, EmbeddingArgs>& embedding_operator();

}  // namespace crest::ops
