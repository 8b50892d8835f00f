#include <algorithm>
#include <atomic>
#include <cmath>

#include "ops/linear_attention/internal.h"
#include "ops/reference_math.h"

namespace crest::ops {
namespace {

constexpr int64_t kChunk = 64;
// Shorter pieces are cheaper token by token.
constexpr int64_t kShortest = 16;
// Below this exp() is zero in any format; it keeps an infinite decay from becoming infinity - infinity.
constexpr double kSmallestDecay = -1e5;

/// Memory of one thread. A chunk's rows are time.
struct Scratch {
  float* recurrent;  // 2*k_dim + v_dim
  float* q;          // [chunk, k_dim], normalised and scaled
  float* k;          // [chunk, k_dim], normalised
  float* mix;        // [chunk, chunk]: L below the diagonal, then the scores of the output
  float* delta;      // [chunk, v_dim]: what is added to the state for each token
  float* inter;      // [chunk, v_dim]
  double* sums;      // [chunk]: g summed from the chunk's begin

  static int64_t doubles() { return kChunk; }
  static int64_t floats(const GatedDeltaProblem& p) {
    return 2 * p.k_dim + p.v_dim + 2 * kChunk * p.k_dim + kChunk * kChunk + 2 * kChunk * p.v_dim;
  }
  static int64_t bytes(const GatedDeltaProblem& p) {
    const auto raw = doubles() * static_cast<int64_t>(sizeof(double)) + floats(p) * static_cast<int64_t>(sizeof(float));
    return (raw + 63) / 64 * 64;
  }
  Scratch(const GatedDeltaProblem& p, std::byte* memory) {
    sums = reinterpret_cast<double*>(memory);
    recurrent = reinterpret_cast<float*>(sums + doubles());
    q = recurrent + 2 * p.k_dim + p.v_dim;
    k = q + kChunk * p.k_dim;
    mix = k + kChunk * p.k_dim;
    delta = mix + kChunk * kChunk;
    inter = delta + kChunk * p.v_dim;
  }
};

/// target[rows, n] = a[rows, depth] * b[depth, n].
void multiply(const float* a, const float* b, int64_t rows, int64_t depth, int64_t n, float* target) {
  for (int64_t i = 0; i < rows; ++i) {
    float* row = target + i * n;
    std::fill(row, row + n, 0.0f);
    int64_t j = 0;
    for (; j + 4 <= depth; j += 4) {
      const float* factors = a + i * depth + j;
      const float* source = b + j * n;
      for (int64_t c = 0; c < n; ++c) {
        row[c] += factors[0] * source[c] + factors[1] * source[n + c] + factors[2] * source[2 * n + c] +
                  factors[3] * source[3 * n + c];
      }
    }
    for (; j < depth; ++j) axpy(row, a[i * depth + j], b + j * n, n);
  }
}

/// mix[i, j] = (x_i . k_j) exp(G_i - G_j) for j below i (and j = i when the diagonal is asked for), times beta_i if
/// given.
void scores(const GatedDeltaProblem& p, const Scratch& s, const float* x, int64_t length, bool diagonal,
            const DeltaHead* beta, int64_t begin) {
  for (int64_t i = 0; i < length; ++i) {
    const int64_t end = i + (diagonal ? 1 : 0);
    for (int64_t j = 0; j < end; ++j) {
      float value =
          dot(x + i * p.k_dim, s.k + j * p.k_dim, p.k_dim) * static_cast<float>(std::exp(s.sums[i] - s.sums[j]));
      if (beta != nullptr) value *= beta->beta[(begin + i) * beta->gate_stride];
      s.mix[i * kChunk + j] = value;
    }
  }
}

/// One chunk of `length` tokens from token `begin`. With G the running sum of g, S the state before the chunk and
/// L = strictly_lower(beta_i (k_i . k_j) exp(G_i - G_j)), the additions D solve (I + L) D = beta (V - exp(G) K S); then
/// O = exp(G) Q S + lower((Q K^T) exp(G_i - G_j)) D and S' = exp(G_end) S + sum_i exp(G_end - G_i) k_i d_i^T.
void chunk(const GatedDeltaProblem& p, const DeltaHead& head, int64_t begin, int64_t length, const Scratch& s) {
  const int64_t n = p.v_dim;
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = begin + i;
    delta_normalize(p, head.q + t * head.q_stride, delta_scale(p), s.q + i * p.k_dim);
    delta_normalize(p, head.k + t * head.k_stride, 1.0f, s.k + i * p.k_dim);
    const double g = head.g[t * head.gate_stride];
    sum += g < kSmallestDecay ? kSmallestDecay : g;
    s.sums[i] = sum;
  }
  scores(p, s, s.k, length, false, &head, begin);
  multiply(s.k, head.state, length, p.k_dim, n, s.inter);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = begin + i;
    const float beta = head.beta[t * head.gate_stride];
    const auto decay = static_cast<float>(std::exp(s.sums[i]));
    float* d = s.delta + i * n;
    for (int64_t c = 0; c < n; ++c) d[c] = beta * (head.v[t * head.v_stride + c] - decay * s.inter[i * n + c]);
    for (int64_t j = 0; j < i; ++j) axpy(d, -s.mix[i * kChunk + j], s.delta + j * n, n);
  }
  scores(p, s, s.q, length, true, nullptr, begin);
  multiply(s.q, head.state, length, p.k_dim, n, s.inter);
  for (int64_t i = 0; i < length; ++i) {
    const auto decay = static_cast<float>(std::exp(s.sums[i]));
    float* out = head.out + (begin + i) * head.out_stride;
    for (int64_t c = 0; c < n; ++c) out[c] = decay * s.inter[i * n + c];
    for (int64_t j = 0; j <= i; ++j) axpy(out, s.mix[i * kChunk + j], s.delta + j * n, n);
  }
  const auto total = static_cast<float>(std::exp(sum));
  for (int64_t i = 0; i < p.k_dim * n; ++i) head.state[i] *= total;
  for (int64_t i = 0; i < length; ++i) {
    const auto decay = static_cast<float>(std::exp(sum - s.sums[i]));
    for (int64_t r = 0; r < p.k_dim; ++r) axpy(head.state + r * n, decay * s.k[i * p.k_dim + r], s.delta + i * n, n);
  }
}

int64_t workspace(const GatedDeltaProblem& p, int threads) { return Scratch::bytes(p) * threads; }

bool supports(const GatedDeltaProblem& p) { return p.max_q_len >= kShortest; }

Status launch(const GatedDeltaProblem& p, const GatedDeltaArgs& a, Launch& launch) {
  std::atomic<int64_t> next{0};
  launch.pool.run([&](int thread, int) {
    const Scratch scratch(p, launch.workspace.data() + thread * Scratch::bytes(p));
    for (int64_t item = next++; item < p.sequences * p.v_heads; item = next++) {
      const DeltaHead head = delta_head(p, a, item / p.v_heads, item % p.v_heads);
      for (int64_t begin = 0; begin < head.length; begin += kChunk) {
        const int64_t length = std::min(kChunk, head.length - begin);
        if (length < kShortest) {
          delta_recurrence(p, head, begin, begin + length, scratch.recurrent);
        } else {
          chunk(p, head, begin, length, scratch);
        }
      }
    }
  });
  return {};
}

}  // namespace

Kernel<GatedDeltaProblem, GatedDeltaArgs> gated_delta_chunked() {
  return {.name = "chunked", .priority = 1, .supports = supports, .workspace = workspace, .launch = launch};
}

}  // namespace crest::ops
