#pragma once

#include "ops/kv_cache/kv_cache.h"
#include "ops/registry.h"
#include "ops/views.h"

namespace crest::ops {

/// Scaled dot-product attention over packed sequences of different lengths (arXiv 1706.03762; paged as arXiv
/// 2309.06180). score = q.k * scale, then soft_cap * tanh(score / soft_cap) if set, softmax in fp32 or better, times v.
/// Query head h reads kv head h / (q_heads / kv_heads). The queries of a sequence are its last tokens (bottom-right
/// aligned): query i of q_len has position kv_len - q_len + i and, when causal, sees keys 0..position; with a window
/// only those with position - key < window (not causal: |position - key| < window). A query that sees no key (q_len >
/// kv_len) gives zeros and LSE -infinity.
struct AttentionProblem {
  int64_t tokens = 0;  // queries of all sequences
  int64_t sequences = 0;
  int64_t q_heads = 0;
  int64_t kv_heads = 0;   // divides q_heads
  int64_t head_dim = 0;   // of q and k
  int64_t value_dim = 0;  // of v and out
  int64_t max_q_len = 0;  // largest number of queries and keys of one sequence
  int64_t max_kv_len = 0;
  float scale = 0;  // usually 1/sqrt(head_dim)
  bool causal = true;
  int64_t window = 0;  // keys visible to a query, itself included; 0: all
  float soft_cap = 0;  // 0: none
  tensor::DType kv_dtype = tensor::DType::kF32;
  bool paged = true;
};
struct AttentionArgs {
  HeadsView q{};  // [tokens, q_heads, head_dim]
  const int32_t* cu_seqlens =
      nullptr;  // [sequences + 1]: queries of sequence s are tokens cu_seqlens[s] .. cu_seqlens[s+1]-1
  const int32_t* kv_lens = nullptr;  // [sequences]: keys of the sequence, its new tokens included

  // Paged (keys were stored by kv_write): page p of sequence s is page_table[s * page_table_stride + p].
  const KvPool* k_pool = nullptr;
  const KvPool* v_pool = nullptr;
  const int32_t* page_table = nullptr;
  int64_t page_table_stride = 0;

  // Not paged: fp32 [keys of all sequences, kv_heads, dim]; those of sequence s begin at cu_seqlens_k[s].
  HeadsView k{}, v{};
  const int32_t* cu_seqlens_k = nullptr;  // [sequences + 1]

  MutableHeadsView out{};  // [tokens, q_heads, value_dim]
  float* lse = nullptr;    // [tokens, q_heads] or null: log(sum(exp(score)))
};
Status check(const AttentionProblem& problem, const AttentionArgs& args);
Status attention(const AttentionProblem& problem, const AttentionArgs& args, Context& context);
const Operator<AttentionProblem, AttentionArgs>& attention_operator();

}  // namespace crest::ops
