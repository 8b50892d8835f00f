#pragma once

#include <atomic>
#include <span>

#include "ops/attention/attention.h"
#include "ops/attention/output_gate.h"

namespace crest::ops {

// NOTE: constants, because code of their files must not run before the processor was looked at.
extern const Kernel<AttentionProblem, AttentionArgs> kAttentionAvx2;
extern const Kernel<AttentionProblem, AttentionArgs> kAttentionAvx512;
extern const Kernel<OutputGateProblem, OutputGateArgs> kOutputGateAvx2;

/// How the blocked kernels cut a call. Nothing here depends on the number of threads or on the other sequences of the
/// batch, so neither do results.
struct AttentionPlan {
  static constexpr int64_t kRows = 64;          // query heads that share one pass over the keys
  static constexpr int64_t kBlock = 64;         // most keys of one step
  static constexpr int64_t kSplitQueries = 16;  // sequences with up to so many queries are also cut along the keys
  static constexpr int64_t kSplitKeys = 512;    // keys of such a piece, more when there would be
  static constexpr int64_t kMaxSplits = 64;     // more than this many pieces

  /// One sequence's share of the tasks.
  struct Sequence {
    int64_t first_task = 0;
    int64_t first_group = 0;    // index of the first counter of finished pieces
    int64_t first_partial = 0;  // in floats
    int32_t q_blocks = 0;
    int32_t splits = 0;  // pieces along the keys
    int32_t split_keys = 0;
  };
  struct Task {
    int64_t sequence, q_begin, q_count, kv_head, split, key_begin, key_end, group, partial;
    int64_t splits;
  };

  static int64_t group_heads(const AttentionProblem& problem) { return problem.q_heads / problem.kv_heads; }
  static int64_t queries_per_block(const AttentionProblem& problem);
  static int64_t block_keys(const AttentionProblem& problem);
  /// Floats of one query head's unfinished result: maximum, sum, values.
  static int64_t partial_floats(const AttentionProblem& problem) { return problem.value_dim + 2; }

  AttentionPlan(const AttentionProblem& problem, const AttentionArgs& args, std::span<std::byte> workspace);
  Task task(int64_t index) const;

  const AttentionProblem& problem;
  const AttentionArgs& args;
  Sequence* sequences;         // [problem.sequences]
  std::atomic<int32_t>* done;  // finished pieces of a (query block, kv head)
  float* partials;
  std::byte* scratch;  // of the threads
  int64_t tasks = 0;

  struct Sizes {
    int64_t sequences, done, partials, scratch;
  };
  static Sizes sizes(const AttentionProblem& problem);
  static int64_t thread_bytes(const AttentionProblem& problem);
  static int64_t workspace(const AttentionProblem& problem, int threads);
};

}  // namespace crest::ops
