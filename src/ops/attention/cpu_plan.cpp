#include <algorithm>
#include <new>

#include "ops/attention/cpu_attention.h"

namespace crest::ops {
namespace {

int64_t align(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t kFloatBytes = sizeof(float);

int64_t keys_per_split(int64_t kv_len) {
  const int64_t keys = std::max(AttentionPlan::kSplitKeys, ceil_div(kv_len, AttentionPlan::kMaxSplits));
  return ceil_div(keys, AttentionPlan::kBlock) * AttentionPlan::kBlock;
}

}  // namespace

int64_t AttentionPlan::queries_per_block(const AttentionProblem& p) {
  return std::max<int64_t>(1, kRows / group_heads(p));
}

/// A power of two: keys and values of a block, as fp32, stay in the first-level cache.
int64_t AttentionPlan::block_keys(const AttentionProblem& p) {
  int64_t keys = kBlock;
  while (keys > 16 && keys * std::max(p.head_dim, p.value_dim) > 8192) keys /= 2;
  return keys;
}

AttentionPlan::Sizes AttentionPlan::sizes(const AttentionProblem& p) {
  const int64_t q_blocks = ceil_div(p.tokens, queries_per_block(p)) + p.sequences;
  const int64_t split_tokens = std::min(p.tokens, kSplitQueries * p.sequences);
  const int64_t splits = std::min(kMaxSplits, ceil_div(p.max_kv_len, kSplitKeys));
  return {.sequences = align(p.sequences * static_cast<int64_t>(sizeof(Sequence))),
          .done = align(q_blocks * p.kv_heads * static_cast<int64_t>(sizeof(std::atomic<int32_t>))),
          .partials = align(split_tokens * p.q_heads * splits * partial_floats(p) * kFloatBytes),
          .scratch = thread_bytes(p)};
}

int64_t AttentionPlan::thread_bytes(const AttentionProblem& p) {
  const int64_t rows = queries_per_block(p) * group_heads(p);
  const int64_t keys = block_keys(p);
  // Queries, sums of values, scores, maximum and sum of each row; keys and values of a block.
  return align((rows * (p.head_dim + p.value_dim + kBlock + 2) + keys * (p.head_dim + p.value_dim)) * kFloatBytes + 64);
}

int64_t AttentionPlan::workspace(const AttentionProblem& p, int threads) {
  const Sizes s = sizes(p);
  return s.sequences + s.done + s.partials + s.scratch * threads;
}

AttentionPlan::AttentionPlan(const AttentionProblem& p, const AttentionArgs& a, std::span<std::byte> workspace)
    : problem(p), args(a) {
  const Sizes s = sizes(p);
  sequences = reinterpret_cast<Sequence*>(workspace.data());
  done = reinterpret_cast<std::atomic<int32_t>*>(workspace.data() + s.sequences);
  partials = reinterpret_cast<float*>(workspace.data() + s.sequences + s.done);
  scratch = workspace.data() + s.sequences + s.done + s.partials;
  int64_t groups = 0, floats = 0;
  for (int64_t i = 0; i < p.sequences; ++i) {
    const int64_t q_len = a.cu_seqlens[i + 1] - a.cu_seqlens[i];
    const int64_t keys = q_len <= kSplitQueries ? keys_per_split(a.kv_lens[i]) : std::max<int64_t>(1, a.kv_lens[i]);
    Sequence& sequence =
        *new (sequences + i) Sequence{.first_task = tasks, .first_group = groups, .first_partial = floats};
    sequence.q_blocks = static_cast<int32_t>(ceil_div(q_len, queries_per_block(p)));
    sequence.split_keys = static_cast<int32_t>(keys);
    sequence.splits = static_cast<int32_t>(std::max<int64_t>(1, ceil_div(a.kv_lens[i], keys)));
    tasks += sequence.q_blocks * p.kv_heads * sequence.splits;
    groups += sequence.q_blocks * p.kv_heads;
    if (sequence.splits > 1) floats += q_len * p.q_heads * sequence.splits * partial_floats(p);
  }
  for (int64_t i = 0; i < groups; ++i) new (done + i) std::atomic<int32_t>(0);
}

AttentionPlan::Task AttentionPlan::task(int64_t index) const {
  const Sequence* found = std::upper_bound(sequences, sequences + problem.sequences, index,
                                           [](int64_t i, const Sequence& s) { return i < s.first_task; }) -
                          1;
  const Sequence& s = *found;
  const int64_t sequence = found - sequences;
  const int64_t q_len = args.cu_seqlens[sequence + 1] - args.cu_seqlens[sequence];
  const int64_t inside = index - s.first_task;
  const int64_t group = inside / s.splits;
  // Late queries see the most keys: they come first, so that no thread is left with a long task at the end.
  const int64_t q_block = s.q_blocks - 1 - group / problem.kv_heads;
  const int64_t per_block = queries_per_block(problem);
  Task task{};
  task.sequence = sequence;
  task.q_begin = q_block * per_block;
  task.q_count = std::min(per_block, q_len - task.q_begin);
  task.kv_head = group % problem.kv_heads;
  task.split = inside % s.splits;
  task.splits = s.splits;
  task.key_begin = task.split * s.split_keys;
  task.key_end = std::min<int64_t>(task.key_begin + s.split_keys, args.kv_lens[sequence]);
  task.group = s.first_group + group;
  const int64_t rows = task.q_count * group_heads(problem);
  const int64_t rows_before = task.q_begin * problem.q_heads + task.kv_head * rows;
  task.partial = s.first_partial + (rows_before * s.splits + task.split * rows) * partial_floats(problem);
  return task;
}

}  // namespace crest::ops
