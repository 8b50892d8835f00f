#pragma once

#include "ops/attention/attention.h"
#include "ops/attention/output_gate.h"
#include "ops/checks.h"
#include "ops/kv_cache/internal.h"

namespace crest::ops {

Kernel<AttentionProblem, AttentionArgs> attention_reference();
Kernel<OutputGateProblem, OutputGateArgs> output_gate_reference();

/// Keys that a query sees: [begin, end). position may be negative (more queries than keys).
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;
};
KeyRange visible_keys(const AttentionProblem& problem, int64_t kv_len, int64_t position);

/// Sequence of a token: the last s with cu_seqlens[s] <= token.
int64_t sequence_of(const int32_t* cu_seqlens, int64_t sequences, int64_t token);

/// K or V of one sequence and kv head as fp32 vectors.
class KvReader {
 public:
  KvReader(const AttentionProblem& problem, const AttentionArgs& args, const KvPool* pool, const HeadsView& packed,
           int64_t dim, int64_t sequence, int64_t head);
  /// Vector of key j: the stored memory when it is fp32, else converted into buffer (dim floats).
  const float* row(int64_t j, float* buffer) const;

 private:
  const KvPool* pool_ = nullptr;
  const int32_t* pages_ = nullptr;
  int64_t head_ = 0;
  const float* packed_ = nullptr;
  int64_t stride_ = 0;
};

}  // namespace crest::ops
