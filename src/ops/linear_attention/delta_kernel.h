#pragma once

// Gated delta rule, one template for all instruction sets: pieces of 16 and more tokens in chunked form (see
// chunked.cpp for the maths), the rest token by token.

#include <algorithm>
#include <atomic>
#include <cmath>

#include "ops/linear_attention/internal.h"
#include "ops/simd_matmul.h"

namespace crest::ops {
namespace {

constexpr int64_t kChunk = 64;
constexpr int64_t kShortest = 16;
constexpr double kSmallestDecay = -1e5;  // exp() of less is zero; keeps -infinity out of differences

/// Memory of one thread; rows are the tokens of a chunk.
struct DeltaScratch {
  double* sums;  // [chunk]: G, the running sum of g
  float* q;      // [chunk, k_dim]
  float* k;      // [chunk, k_dim]
  float* ratio;  // [chunk, chunk]: exp(G_i - G_j) for j <= i
  float* mix;    // [chunk, chunk]
  float* delta;  // [chunk, v_dim]
  float* inter;  // [chunk, v_dim]
  float* decay;  // [chunk]: exp(G)
  static int64_t floats(const GatedDeltaProblem& p) {
    return 2 * kChunk * (p.k_dim + kChunk + p.v_dim) + kChunk + 2 * kChunk;
  }
  static int64_t bytes(const GatedDeltaProblem& p) {
    return (floats(p) * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
  }
  DeltaScratch(const GatedDeltaProblem& p, std::byte* memory) {
    sums = reinterpret_cast<double*>(memory);
    q = reinterpret_cast<float*>(sums + kChunk);
    k = q + kChunk * p.k_dim;
    ratio = k + kChunk * p.k_dim;
    mix = ratio + kChunk * kChunk;
    delta = mix + kChunk * kChunk;
    inter = delta + kChunk * p.v_dim;
    decay = inter + kChunk * p.v_dim;
  }
};

template <typename V>
[[gnu::noinline]] void normalize(const GatedDeltaProblem& p, const float* x, float scale, float* target) {
  float factor = scale;
  if (p.l2_norm) {
    auto squares = V::set(0.0f);
    for (int64_t i = 0; i < p.k_dim; i += V::kLanes) squares = V::fma(V::load(x + i), V::load(x + i), squares);
    factor = scale / std::sqrt(sum_lanes<V>(squares) + p.l2_eps);
  }
  for (int64_t i = 0; i < p.k_dim; i += V::kLanes) V::store(target + i, V::mul(V::load(x + i), V::set(factor)));
}

/// One token for kVectors vectors of the state's columns, which stay in the first-level cache between the two passes.
template <typename V, int kVectors>
void step_columns(const GatedDeltaProblem& p, const float* q, const float* k, const float* v, float beta, float decay,
                  float* state, float* out) {
  using F = typename V::F;
  F memory[kVectors];
#pragma GCC unroll 8
  for (int c = 0; c < kVectors; ++c) memory[c] = V::set(0.0f);
  for (int64_t i = 0; i < p.k_dim; ++i) {
    const F factor = V::broadcast(k + i);
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c)
      memory[c] = V::fma(factor, V::load(state + i * p.v_dim + c * V::kLanes), memory[c]);
  }
  F delta[kVectors], sum[kVectors];
#pragma GCC unroll 8
  for (int c = 0; c < kVectors; ++c) {
    delta[c] = V::mul(V::set(beta), V::sub(V::load(v + c * V::kLanes), V::mul(V::set(decay), memory[c])));
    sum[c] = V::set(0.0f);
  }
  for (int64_t i = 0; i < p.k_dim; ++i) {
    float* row = state + i * p.v_dim;
    const F k_i = V::broadcast(k + i), q_i = V::broadcast(q + i);
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) {
      const F s = V::fma(k_i, delta[c], V::mul(V::set(decay), V::load(row + c * V::kLanes)));
      V::store(row + c * V::kLanes, s);
      sum[c] = V::fma(q_i, s, sum[c]);
    }
  }
#pragma GCC unroll 8
  for (int c = 0; c < kVectors; ++c) V::store(out + c * V::kLanes, sum[c]);
}

template <typename V>
[[gnu::noinline]] void recurrence(const GatedDeltaProblem& p, const DeltaHead& head, int64_t begin, int64_t end,
                                  const DeltaScratch& s) {
  constexpr int kVectors = V::kRegisters / 8;
  for (int64_t t = begin; t < end; ++t) {
    normalize<V>(p, head.q + t * head.q_stride, delta_scale(p), s.q);
    normalize<V>(p, head.k + t * head.k_stride, 1.0f, s.k);
    const float decay = std::exp(head.g[t * head.gate_stride]);
    const float beta = head.beta[t * head.gate_stride];
    const float* v = head.v + t * head.v_stride;
    float* out = head.out + t * head.out_stride;
    int64_t c = 0;
    for (; c + kVectors * V::kLanes <= p.v_dim; c += kVectors * V::kLanes) {
      step_columns<V, kVectors>(p, s.q, s.k, v + c, beta, decay, head.state + c, out + c);
    }
    for (; c < p.v_dim; c += V::kLanes) step_columns<V, 1>(p, s.q, s.k, v + c, beta, decay, head.state + c, out + c);
  }
}

/// exp(G_i - G_j) from the difference: neither factor may overflow on its own.
template <typename V>
[[gnu::noinline]] void decay_ratios(const DeltaScratch& s, int64_t length) {
  for (int64_t i = 0; i < length; ++i) {
    float* row = s.ratio + i * kChunk;
    for (int64_t j = 0; j <= i; ++j) row[j] = static_cast<float>(s.sums[i] - s.sums[j]);
    std::fill(row + i + 1, row + kChunk, 0.0f);
    for (int64_t j = 0; j <= i; j += V::kLanes) V::store(row + j, vector_exp<V>(V::load(row + j)));
  }
}

/// mix[i, j] = (x_i . k_j) exp(G_i - G_j), times beta_i if given, for j < i or, with the diagonal, j <= i; zero above.
template <typename V>
[[gnu::noinline]] void scores(const GatedDeltaProblem& p, const DeltaScratch& s, const float* x, int64_t length,
                              bool diagonal, const float* beta, int64_t beta_stride) {
  for (int64_t i = 0; i < length; ++i) {
    float* row = s.mix + i * kChunk;
    const int64_t end = i + (diagonal ? 1 : 0);
    for (int64_t j = 0; j < end; j += 4) {
      const auto key = [&](int64_t n) { return s.k + std::min(j + n, length - 1) * p.k_dim; };
      _mm_storeu_ps(row + j, dot_quad<V>(x + i * p.k_dim, key(0), key(1), key(2), key(3), p.k_dim));
    }
    const auto factor = V::set(beta != nullptr ? beta[i * beta_stride] : 1.0f);
    const float* ratio = s.ratio + i * kChunk;
    for (int64_t j = 0; j < end; j += V::kLanes) {
      V::store(row + j, V::mul(V::mul(V::load(row + j), V::load(ratio + j)), factor));
    }
    std::fill(row + end, row + kChunk, 0.0f);
  }
}

/// delta_i = beta_i (v_i - exp(G_i) inter_i) - sum over j < i of mix[i, j] delta_j, for kVectors vectors of columns.
template <typename V, int kVectors>
[[gnu::noinline]] void substitute(const GatedDeltaProblem& p, const DeltaHead& head, int64_t begin, int64_t length,
                                  const DeltaScratch& s, int64_t column) {
  using F = typename V::F;
  for (int64_t i = 0; i < length; ++i) {
    const float* v = head.v + (begin + i) * head.v_stride + column;
    const F beta = V::broadcast(head.beta + (begin + i) * head.gate_stride);
    const F decay = V::broadcast(s.decay + i);
    F sum[kVectors];
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) {
      const F memory = V::mul(decay, V::load(s.inter + i * p.v_dim + column + c * V::kLanes));
      sum[c] = V::mul(beta, V::sub(V::load(v + c * V::kLanes), memory));
    }
    for (int64_t j = 0; j < i; ++j) {
      const F factor = V::set(-s.mix[i * kChunk + j]);
#pragma GCC unroll 8
      for (int c = 0; c < kVectors; ++c)
        sum[c] = V::fma(factor, V::load(s.delta + j * p.v_dim + column + c * V::kLanes), sum[c]);
    }
#pragma GCC unroll 8
    for (int c = 0; c < kVectors; ++c) V::store(s.delta + i * p.v_dim + column + c * V::kLanes, sum[c]);
  }
}

template <typename V>
void chunk(const GatedDeltaProblem& p, const DeltaHead& head, int64_t begin, int64_t length, const DeltaScratch& s) {
  constexpr int kVectors = V::kRegisters / 4;
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = begin + i;
    normalize<V>(p, head.q + t * head.q_stride, delta_scale(p), s.q + i * p.k_dim);
    normalize<V>(p, head.k + t * head.k_stride, 1.0f, s.k + i * p.k_dim);
    const double g = head.g[t * head.gate_stride];
    sum += g < kSmallestDecay ? kSmallestDecay : g;
    s.sums[i] = sum;
    s.decay[i] = static_cast<float>(std::exp(sum));
  }
  decay_ratios<V>(s, length);
  scores<V>(p, s, s.k, length, false, head.beta + begin * head.gate_stride, head.gate_stride);
  multiply<V>({s.k, p.k_dim, 1}, head.state, p.v_dim, length, p.k_dim, p.v_dim, nullptr, s.inter, p.v_dim);
  int64_t c = 0;
  for (; c + kVectors * V::kLanes <= p.v_dim; c += kVectors * V::kLanes)
    substitute<V, kVectors>(p, head, begin, length, s, c);
  for (; c < p.v_dim; c += V::kLanes) substitute<V, 1>(p, head, begin, length, s, c);

  scores<V>(p, s, s.q, length, true, nullptr, 0);
  float* out = head.out + begin * head.out_stride;
  multiply<V>({s.q, p.k_dim, 1}, head.state, p.v_dim, length, p.k_dim, p.v_dim, nullptr, out, head.out_stride);
  multiply<V>({s.mix, kChunk, 1}, s.delta, p.v_dim, length, length, p.v_dim, s.decay, out, head.out_stride, true);

  for (int64_t i = 0; i < length; ++i) {
    const auto factor = V::set(static_cast<float>(std::exp(sum - s.sums[i])));
    float* row = s.delta + i * p.v_dim;
    for (int64_t d = 0; d < p.v_dim; d += V::kLanes) V::store(row + d, V::mul(V::load(row + d), factor));
  }
  // The state's rows are kept by exp(G) of the whole chunk.
  std::fill(s.q, s.q + p.k_dim, static_cast<float>(std::exp(sum)));
  multiply<V>({s.k, 1, p.k_dim}, s.delta, p.v_dim, p.k_dim, length, p.v_dim, s.q, head.state, p.v_dim);
}

template <typename V>
Status launch_delta(const GatedDeltaProblem& p, const GatedDeltaArgs& a, Launch& launch) {
  std::atomic<int64_t> next{0};
  launch.pool.run([&](int thread, int) {
    const DeltaScratch scratch(p, launch.workspace.data() + thread * DeltaScratch::bytes(p));
    for (int64_t item = next++; item < p.sequences * p.v_heads; item = next++) {
      const DeltaHead head = delta_head(p, a, item / p.v_heads, item % p.v_heads);
      for (int64_t begin = 0; begin < head.length; begin += kChunk) {
        const int64_t length = std::min(kChunk, head.length - begin);
        if (length < kShortest) {
          recurrence<V>(p, head, begin, begin + length, scratch);
        } else {
          chunk<V>(p, head, begin, length, scratch);
        }
      }
    }
  });
  return {};
}

template <typename V>
bool supports_delta(const GatedDeltaProblem& p) {
  return p.k_dim % V::kLanes == 0 && p.v_dim % V::kLanes == 0;
}

inline int64_t delta_workspace(const GatedDeltaProblem& p, int threads) { return DeltaScratch::bytes(p) * threads; }

template <typename V>
constexpr Kernel<GatedDeltaProblem, GatedDeltaArgs> delta_kernel(std::string_view name, std::string_view arch,
                                                                 int priority) {
  return {.name = name,
          .arch = arch,
          .priority = priority,
          .supports = supports_delta<V>,
          .workspace = delta_workspace,
          .launch = launch_delta<V>};
}

}  // namespace
}  // namespace crest::ops
