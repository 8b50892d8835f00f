#pragma once

// Blocked attention with an online softmax (arXiv 2205.14135), one template for all instruction sets. A file that
// includes this picks a vector type of simd.h and is compiled with that instruction set's flags.
//
// A task takes the query heads of one kv head for some queries ("rows") through a range of keys, a block at a time:
//   scores    rows x keys, dot products of four keys with up to V::kRegisters / 8 rows at once
//   soften    scale, soft cap, mask, exponentials against the running maximum
//   gather    sums of values, whose rows are rescaled when their maximum grows
// Few rows read K and V as they are stored; many rows have a block converted to fp32 once. An element's sums are formed
// in the same order in every case.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "ops/attention/cpu_attention.h"
#include "ops/attention/internal.h"
#include "ops/simd.h"

namespace crest::ops {
namespace {

using tensor::DType;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// Keys and values of a block: rows `stride` bytes apart.
struct KvBlock {
  const std::byte* k;
  const std::byte* v;
  int64_t k_stride, v_stride;
  const float* k_scales;  // int8 only
  const float* v_scales;
  int64_t count;
};

/// Memory of one thread.
struct FlashScratch {
  float* q;       // [rows, head_dim]
  float* sums;    // [rows, value_dim]
  float* scores;  // [rows, AttentionPlan::kBlock]
  float* maxima;  // [rows]
  float* totals;  // [rows]
  float* k;       // [block keys, head_dim]
  float* v;       // [block keys, value_dim]
  FlashScratch(const AttentionProblem& p, std::byte* memory) {
    const int64_t rows = AttentionPlan::queries_per_block(p) * AttentionPlan::group_heads(p);
    const int64_t keys = AttentionPlan::block_keys(p);
    q = reinterpret_cast<float*>(memory);
    sums = q + rows * p.head_dim;
    k = sums + rows * p.value_dim;
    v = k + keys * p.head_dim;
    scores = v + keys * p.value_dim;
    maxima = scores + rows * AttentionPlan::kBlock;
    totals = maxima + rows;
  }
};

template <typename V, DType kType, int kRows>
[[gnu::always_inline]] inline void score_quad(const float* q, int64_t dim, const std::byte* const* keys,
                                              float* scores) {
  using F = typename V::F;
  F acc[kRows][4];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) acc[r][j] = V::set(0.0f);
  }
  for (int64_t d = 0; d < dim; d += V::kLanes) {
    F k[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) k[j] = load_as<V, kType>(keys[j], d);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const F x = V::load(q + r * dim + d);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) acc[r][j] = V::fma(x, k[j], acc[r][j]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    _mm_storeu_ps(scores + r * AttentionPlan::kBlock, V::sums(acc[r][0], acc[r][1], acc[r][2], acc[r][3]));
  }
}

/// scores[row, j] = q[row] . k[j] for the keys of a block; up to three further columns hold copies of the last one.
template <typename V, DType kType>
void score_block(const FlashScratch& s, int64_t rows, int64_t dim, const KvBlock& block) {
  constexpr int kTile = V::kRegisters / 8;
  for (int64_t j = 0; j < block.count; j += 4) {
    const std::byte* keys[4];
    for (int64_t i = 0; i < 4; ++i) keys[i] = block.k + std::min(j + i, block.count - 1) * block.k_stride;
    float* scores = s.scores + j;
    int64_t row = 0;
    for (; row + kTile <= rows; row += kTile) {
      score_quad<V, kType, kTile>(s.q + row * dim, dim, keys, scores + row * AttentionPlan::kBlock);
    }
    for (; row < rows; ++row) score_quad<V, kType, 1>(s.q + row * dim, dim, keys, scores + row * AttentionPlan::kBlock);
  }
}

/// Scores of a row become exponentials against the running maximum; returns what its former sums are multiplied by.
/// Keys outside [begin, end) of the block are masked.
template <typename V>
float soften_row(const AttentionProblem& p, const KvBlock& block, int64_t begin, int64_t end, float* scores,
                 float& maximum, float& total) {
  using F = typename V::F;
  for (int64_t j = 0; j < block.count; ++j) scores[j] *= p.scale;
  for (int64_t j = 0; block.k_scales != nullptr && j < block.count; ++j) scores[j] *= block.k_scales[j];
  for (int64_t j = 0; p.soft_cap > 0 && j < block.count; ++j)
    scores[j] = p.soft_cap * std::tanh(scores[j] / p.soft_cap);
  std::fill(scores, scores + std::max<int64_t>(0, begin), kMinusInfinity);
  std::fill(scores + std::max<int64_t>(0, end), scores + AttentionPlan::kBlock, kMinusInfinity);

  F high = V::load(scores);
  for (int64_t j = V::kLanes; j < AttentionPlan::kBlock; j += V::kLanes) high = V::max(high, V::load(scores + j));
  const float largest = std::max(maximum, max_lanes<V>(high));
  if (largest == kMinusInfinity) {
    std::fill(scores, scores + block.count, 0.0f);
    return 1.0f;
  }
  const float factor = std::exp(maximum - largest);
  F sum = V::set(0.0f);
  for (int64_t j = 0; j < AttentionPlan::kBlock; j += V::kLanes) {
    const F e = vector_exp<V>(V::sub(V::load(scores + j), V::set(largest)));
    sum = V::add(sum, e);
    V::store(scores + j, e);
  }
  maximum = largest;
  total = total * factor + sum_lanes<V>(sum);
  return factor;
}

/// sums[row] = sums[row] * factor[row] + weights[row] V for kRows rows and kVectors vectors of columns.
template <typename V, DType kType, int kRows, int kVectors>
[[gnu::always_inline]] inline void gather_tile(const float* weights, const float* factors, const KvBlock& block,
                                               int64_t column, float* sums, int64_t dim) {
  using F = typename V::F;
  F acc[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) acc[r][c] = V::mul(V::load(sums + r * dim + c * V::kLanes), V::set(factors[r]));
  }
  const std::byte* row = block.v;
  for (int64_t j = 0; j < block.count; ++j, row += block.v_stride) {
    F v[kVectors];
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) v[c] = load_as<V, kType>(row, column + c * V::kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F w = V::broadcast(weights + r * AttentionPlan::kBlock + j);
#pragma GCC unroll 8
      for (int c = 0; c < kVectors; ++c) acc[r][c] = V::fma(w, v[c], acc[r][c]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) V::store(sums + r * dim + c * V::kLanes, acc[r][c]);
  }
}

template <typename V, DType kType, int kRows, int kVectors>
void gather_rows(const FlashScratch& s, int64_t row, const float* factors, const KvBlock& block, int64_t dim) {
  const float* weights = s.scores + row * AttentionPlan::kBlock;
  float* sums = s.sums + row * dim;
  int64_t column = 0;
  for (; column + kVectors * V::kLanes <= dim; column += kVectors * V::kLanes) {
    gather_tile<V, kType, kRows, kVectors>(weights, factors, block, column, sums + column, dim);
  }
  for (; column < dim; column += V::kLanes) {
    gather_tile<V, kType, kRows, 1>(weights, factors, block, column, sums + column, dim);
  }
}

template <typename V, DType kType>
void gather_block(const FlashScratch& s, int64_t rows, const float* factors, const KvBlock& block, int64_t dim) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) gather_rows<V, kType, 4, V::kRegisters / 8>(s, row, factors + row, block, dim);
  switch (rows - row) {
    case 1:
      return gather_rows<V, kType, 1, 8>(s, row, factors + row, block, dim);
    case 2:
      return gather_rows<V, kType, 2, 4>(s, row, factors + row, block, dim);
    case 3:
      return gather_rows<V, kType, 3, V::kRegisters / 8>(s, row, factors + row, block, dim);
    default:
      return;
  }
}

template <typename V, DType kType>
void convert_rows(const std::byte* source, int64_t stride, int64_t count, int64_t dim, float* target) {
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t d = 0; d < dim; d += V::kLanes)
      V::store(target + j * dim + d, load_as<V, kType>(source + j * stride, d));
  }
}

/// Keys from j on that lie one after the other in memory, at most `limit`.
inline KvBlock block_at(const AttentionProblem& p, const AttentionArgs& a, const AttentionPlan::Task& task, int64_t j,
                        int64_t limit) {
  KvBlock block{};
  if (!p.paged) {
    const HeadsView k = resolve(a.k, p.kv_heads, p.head_dim), v = resolve(a.v, p.kv_heads, p.value_dim);
    const int64_t row = a.cu_seqlens_k[task.sequence] + j;
    block.k = reinterpret_cast<const std::byte*>(k.data + row * k.token_stride + task.kv_head * k.head_stride);
    block.v = reinterpret_cast<const std::byte*>(v.data + row * v.token_stride + task.kv_head * v.head_stride);
    block.k_stride = k.token_stride * static_cast<int64_t>(sizeof(float));
    block.v_stride = v.token_stride * static_cast<int64_t>(sizeof(float));
    block.count = limit;
    return block;
  }
  const KvPool &k = *a.k_pool, &v = *a.v_pool;
  const int64_t page = a.page_table[task.sequence * a.page_table_stride + j / k.page_size];
  const int64_t index = k.vector_index(page, task.kv_head, j % k.page_size);
  block.k_stride = p.head_dim * k.element_bytes();
  block.v_stride = p.value_dim * v.element_bytes();
  block.k = k.data + index * block.k_stride;
  block.v = v.data + index * block.v_stride;
  if (k.dtype == DType::kI8) {
    block.k_scales = k.scales + index;
    block.v_scales = v.scales + index;
  }
  block.count = std::min(limit, k.page_size - j % k.page_size);
  return block;
}

/// One task's rows through its keys.
template <typename V, DType kType>
class FlashTask {
 public:
  FlashTask(const AttentionPlan& plan, int64_t index, const FlashScratch& scratch)
      : plan_(plan),
        p_(plan.problem),
        a_(plan.args),
        task_(plan.task(index)),
        s_(scratch),
        group_(AttentionPlan::group_heads(p_)),
        rows_(task_.q_count * group_),
        first_token_(a_.cu_seqlens[task_.sequence] + task_.q_begin) {}

  void run() {
    load_queries();
    std::fill(s_.sums, s_.sums + rows_ * p_.value_dim, 0.0f);
    std::fill(s_.maxima, s_.maxima + rows_, kMinusInfinity);
    std::fill(s_.totals, s_.totals + rows_, 0.0f);
    const KeyRange first = range_of(0), last = range_of(task_.q_count - 1);
    const int64_t end = std::min(task_.key_end, last.end);
    const int64_t size = AttentionPlan::block_keys(p_);
    for (int64_t j = std::max(task_.key_begin, first.begin / size * size); j < end;) j += step(j, end);
    finish();
  }

 private:
  /// Keys that query i of the task sees.
  KeyRange range_of(int64_t i) const {
    const int64_t kv_len = a_.kv_lens[task_.sequence];
    const int64_t q_len = a_.cu_seqlens[task_.sequence + 1] - a_.cu_seqlens[task_.sequence];
    return visible_keys(p_, kv_len, kv_len - q_len + task_.q_begin + i);
  }

  void load_queries() {
    const HeadsView q = resolve(a_.q, p_.q_heads, p_.head_dim);
    for (int64_t row = 0; row < rows_; ++row) {
      const float* source = q.data + (first_token_ + row / group_) * q.token_stride + head_of(row) * q.head_stride;
      std::copy_n(source, p_.head_dim, s_.q + row * p_.head_dim);
    }
  }
  int64_t head_of(int64_t row) const { return task_.kv_head * group_ + row % group_; }

  /// The block of keys that begins at j; returns its length. Blocks begin at multiples of their size, whatever the
  /// window, so that a query's result does not depend on the queries beside it.
  int64_t step(int64_t j, int64_t end) {
    const int64_t size = AttentionPlan::block_keys(p_);
    KvBlock block = block_at(p_, a_, task_, j, std::min(end, j / size * size + size) - j);
    const int64_t length = block.count;
    if (kType != DType::kF32 && rows_ > kDirectRows) {
      convert_rows<V, kType>(block.k, block.k_stride, length, p_.head_dim, s_.k);
      convert_rows<V, kType>(block.v, block.v_stride, length, p_.value_dim, s_.v);
      block.k = reinterpret_cast<const std::byte*>(s_.k);
      block.v = reinterpret_cast<const std::byte*>(s_.v);
      block.k_stride = p_.head_dim * static_cast<int64_t>(sizeof(float));
      block.v_stride = p_.value_dim * static_cast<int64_t>(sizeof(float));
      attend<DType::kF32>(block, j);
    } else {
      attend<kType>(block, j);
    }
    return length;
  }

  template <DType kStored>
  void attend(const KvBlock& block, int64_t j) {
    score_block<V, kStored>(s_, rows_, p_.head_dim, block);
    float factors[AttentionPlan::kRows];
    for (int64_t row = 0; row < rows_; ++row) {
      const KeyRange keys = range_of(row / group_);
      float* scores = s_.scores + row * AttentionPlan::kBlock;
      factors[row] = soften_row<V>(p_, block, std::min(keys.begin - j, block.count),
                                   std::min(keys.end - j, block.count), scores, s_.maxima[row], s_.totals[row]);
      for (int64_t i = 0; block.v_scales != nullptr && i < block.count; ++i) scores[i] *= block.v_scales[i];
    }
    gather_block<V, kStored>(s_, rows_, factors, block, p_.value_dim);
  }

  void finish() {
    if (task_.splits == 1) {
      for (int64_t row = 0; row < rows_; ++row)
        write(row, s_.sums + row * p_.value_dim, s_.maxima[row], s_.totals[row]);
      return;
    }
    const int64_t size = AttentionPlan::partial_floats(p_);
    for (int64_t row = 0; row < rows_; ++row) {
      float* partial = plan_.partials + task_.partial + row * size;
      partial[0] = s_.maxima[row];
      partial[1] = s_.totals[row];
      std::copy_n(s_.sums + row * p_.value_dim, p_.value_dim, partial + 2);
    }
    // Whoever finishes the last piece joins them, in the order of the keys.
    if (plan_.done[task_.group].fetch_add(1, std::memory_order_acq_rel) + 1 == task_.splits) join();
  }

  void join() {
    const int64_t size = AttentionPlan::partial_floats(p_);
    const float* first = plan_.partials + task_.partial - task_.split * rows_ * size;
    for (int64_t row = 0; row < rows_; ++row) {
      float maximum = kMinusInfinity;
      for (int64_t i = 0; i < task_.splits; ++i) maximum = std::max(maximum, first[(i * rows_ + row) * size]);
      float total = 0;
      std::fill(s_.sums, s_.sums + p_.value_dim, 0.0f);
      for (int64_t i = 0; i < task_.splits; ++i) {
        const float* partial = first + (i * rows_ + row) * size;
        if (partial[0] == kMinusInfinity && partial[1] == 0) continue;
        const float factor = std::exp(partial[0] - maximum);
        total += partial[1] * factor;
        for (int64_t d = 0; d < p_.value_dim; ++d) s_.sums[d] += partial[2 + d] * factor;
      }
      write(row, s_.sums, maximum, total);
    }
  }

  void write(int64_t row, const float* sums, float maximum, float total) {
    const MutableHeadsView out = resolve(a_.out, p_.q_heads, p_.value_dim);
    const int64_t token = first_token_ + row / group_;
    float* target = out.data + token * out.token_stride + head_of(row) * out.head_stride;
    const float inverse = total == 0 ? 0 : 1 / total;
    for (int64_t d = 0; d < p_.value_dim; ++d) target[d] = sums[d] * inverse;
    if (a_.lse != nullptr) {
      a_.lse[token * p_.q_heads + head_of(row)] = total == 0 ? kMinusInfinity : maximum + std::log(total);
    }
  }

  static constexpr int64_t kDirectRows = 4;

  const AttentionPlan& plan_;
  const AttentionProblem& p_;
  const AttentionArgs& a_;
  const AttentionPlan::Task task_;
  const FlashScratch& s_;
  const int64_t group_;
  const int64_t rows_;
  const int64_t first_token_;
};

template <typename V, DType kType>
void run_tasks(const AttentionPlan& plan, core::ThreadPool& pool) {
  const int64_t thread_bytes = AttentionPlan::thread_bytes(plan.problem);
  std::atomic<int64_t> next{0};
  pool.run([&](int thread, int) {
    const FlashScratch scratch(plan.problem, plan.scratch + thread * thread_bytes);
    for (int64_t i = next++; i < plan.tasks; i = next++) FlashTask<V, kType>(plan, i, scratch).run();
  });
}

template <typename V>
Status launch_flash(const AttentionProblem& problem, const AttentionArgs& args, Launch& launch) {
  const AttentionPlan plan(problem, args, launch.workspace);
  switch (problem.kv_dtype) {
    case DType::kF16:
      run_tasks<V, DType::kF16>(plan, launch.pool);
      break;
    case DType::kBF16:
      run_tasks<V, DType::kBF16>(plan, launch.pool);
      break;
    case DType::kI8:
      run_tasks<V, DType::kI8>(plan, launch.pool);
      break;
    default:
      run_tasks<V, DType::kF32>(plan, launch.pool);
  }
  return {};
}

template <typename V>
bool supports_flash(const AttentionProblem& p) {
  return p.head_dim % V::kLanes == 0 && p.value_dim % V::kLanes == 0 &&
         AttentionPlan::group_heads(p) <= AttentionPlan::kRows;
}

template <typename V>
constexpr Kernel<AttentionProblem, AttentionArgs> flash_kernel(std::string_view name, std::string_view arch,
                                                               int priority) {
  return {.name = name,
          .arch = arch,
          .priority = priority,
          .supports = supports_flash<V>,
          .workspace = AttentionPlan::workspace,
          .launch = launch_flash<V>};
}

}  // namespace
}  // namespace crest::ops
