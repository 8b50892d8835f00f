#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "ops/attention/internal.h"
#include "ops/partition.h"
#include "ops/reference_math.h"

namespace crest::ops {
namespace {

/// Memory of one thread: scores of the query heads that share a kv head, their sums, one converted vector.
struct Scratch {
  float* scores;  // [group, max_kv_len]
  double* sums;   // [group, value_dim]
  float* vector;  // [max(head_dim, value_dim)]
};

int64_t align(int64_t bytes) { return (bytes + 63) / 64 * 64; }

struct ScratchSizes {
  int64_t scores, sums, vector;
  explicit ScratchSizes(const AttentionProblem& p) {
    const int64_t group = p.q_heads / p.kv_heads;
    scores = align(group * p.max_kv_len * static_cast<int64_t>(sizeof(float)));
    sums = align(group * p.value_dim * static_cast<int64_t>(sizeof(double)));
    vector = align(std::max(p.head_dim, p.value_dim) * static_cast<int64_t>(sizeof(float)));
  }
  int64_t total() const { return scores + sums + vector; }
};

int64_t workspace(const AttentionProblem& p, int threads) { return ScratchSizes(p).total() * threads; }

/// Scores become probabilities that still lack the division by their sum; returns the sum, sets the maximum.
double exponentials(float* scores, int64_t n, float& maximum) {
  maximum = *std::max_element(scores, scores + n);
  if (maximum == -std::numeric_limits<float>::infinity()) {
    std::fill(scores, scores + n, 0.0f);
    return 0;
  }
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    scores[j] = std::exp(scores[j] - maximum);
    sum += double{scores[j]};
  }
  return sum;
}

/// All query heads of one kv head for one token.
void attend(const AttentionProblem& p, const AttentionArgs& a, int64_t token, int64_t kv_head, const Scratch& scratch) {
  const int64_t s = sequence_of(a.cu_seqlens, p.sequences, token);
  const int64_t kv_len = a.kv_lens[s];
  const int64_t q_len = a.cu_seqlens[s + 1] - a.cu_seqlens[s];
  const KeyRange keys = visible_keys(p, kv_len, kv_len - q_len + (token - a.cu_seqlens[s]));
  const int64_t count = keys.end - keys.begin;
  const int64_t group = p.q_heads / p.kv_heads;
  const HeadsView q = resolve(a.q, p.q_heads, p.head_dim);
  const MutableHeadsView out = resolve(a.out, p.q_heads, p.value_dim);

  const KvReader k(p, a, a.k_pool, a.k, p.head_dim, s, kv_head);
  for (int64_t j = 0; j < count; ++j) {
    const float* key = k.row(keys.begin + j, scratch.vector);
    for (int64_t h = 0; h < group; ++h) {
      const float* query = q.data + token * q.token_stride + (kv_head * group + h) * q.head_stride;
      float score = dot(query, key, p.head_dim) * p.scale;
      if (p.soft_cap > 0) score = p.soft_cap * std::tanh(score / p.soft_cap);
      scratch.scores[h * p.max_kv_len + j] = score;
    }
  }
  std::fill(scratch.sums, scratch.sums + group * p.value_dim, 0.0);
  const KvReader v(p, a, a.v_pool, a.v, p.value_dim, s, kv_head);
  float maximum = 0;
  for (int64_t h = 0; h < group; ++h) {
    float* scores = scratch.scores + h * p.max_kv_len;
    const double sum = count > 0 ? exponentials(scores, count, maximum) : 0;
    const double inverse = sum == 0 ? 0 : 1 / sum;
    for (int64_t j = 0; j < count; ++j) scores[j] = static_cast<float>(scores[j] * inverse);
    if (a.lse != nullptr) {
      a.lse[token * p.q_heads + kv_head * group + h] =
          sum == 0 ? -std::numeric_limits<float>::infinity() : static_cast<float>(maximum + std::log(sum));
    }
  }
  for (int64_t j = 0; j < count; ++j) {
    const float* value = v.row(keys.begin + j, scratch.vector);
    for (int64_t h = 0; h < group; ++h) {
      const double weight = scratch.scores[h * p.max_kv_len + j];
      double* sums = scratch.sums + h * p.value_dim;
      for (int64_t i = 0; i < p.value_dim; ++i) sums[i] += weight * double{value[i]};
    }
  }
  for (int64_t h = 0; h < group; ++h) {
    float* target = out.data + token * out.token_stride + (kv_head * group + h) * out.head_stride;
    for (int64_t i = 0; i < p.value_dim; ++i) target[i] = static_cast<float>(scratch.sums[h * p.value_dim + i]);
  }
}

Status launch(const AttentionProblem& p, const AttentionArgs& a, Launch& launch) {
  const ScratchSizes sizes(p);
  const int64_t items = p.tokens * p.kv_heads;
  std::atomic<int64_t> next{0};
  launch.pool.run([&](int thread, int) {
    std::byte* memory = launch.workspace.data() + thread * sizes.total();
    const Scratch scratch{reinterpret_cast<float*>(memory), reinterpret_cast<double*>(memory + sizes.scores),
                          reinterpret_cast<float*>(memory + sizes.scores + sizes.sums)};
    for (int64_t item = next++; item < items; item = next++)
      attend(p, a, item / p.kv_heads, item % p.kv_heads, scratch);
  });
  return {};
}

Status launch_gate(const OutputGateProblem& p, const OutputGateArgs& a, Launch& launch) {
  const HeadsView gate = resolve(a.gate, p.heads, p.head_dim);
  const MutableHeadsView x = resolve(a.x, p.heads, p.head_dim);
  launch.pool.parallel_for(p.tokens * p.heads, row_grain(8 * p.head_dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row / p.heads;
      const int64_t head = row % p.heads;
      float* values = x.data + token * x.token_stride + head * x.head_stride;
      const float* gates = gate.data + token * gate.token_stride + head * gate.head_stride;
      for (int64_t i = 0; i < p.head_dim; ++i) values[i] *= sigmoid(gates[i]);
    }
  });
  return {};
}

}  // namespace

Kernel<AttentionProblem, AttentionArgs> attention_reference() {
  return {.name = "reference", .workspace = workspace, .launch = launch};
}
Kernel<OutputGateProblem, OutputGateArgs> output_gate_reference() {
  return {.name = "reference", .launch = launch_gate};
}

}  // namespace crest::ops
