#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "ops/checks.h"
#include "ops/linear_attention/internal.h"
#include "ops/partition.h"
#include "ops/reference_math.h"

namespace crest::ops {
namespace {

constexpr int64_t kChannelBlock = 64;

/// Channels [begin, end) of one sequence.
void convolve(const CausalConv1dProblem& p, const CausalConv1dArgs& a, int64_t sequence, int64_t begin, int64_t end) {
  const int64_t past = p.width - 1;
  const int64_t stride = a.x_stride ? a.x_stride : p.channels;
  const int64_t first = a.cu_seqlens[sequence];
  const int64_t length = a.cu_seqlens[sequence + 1] - first;
  const float* x = a.x + first * stride;
  float* state = a.state + a.state_slots[sequence] * past * p.channels;
  const bool fresh = a.has_state != nullptr && !a.has_state[sequence];
  for (int64_t i = 0; fresh && i < past; ++i)
    std::fill(state + i * p.channels + begin, state + i * p.channels + end, 0.0f);

  // Column t of the sequence, where negative ones are those of the state.
  const auto column = [&](int64_t t) { return t < 0 ? state + (past + t) * p.channels : x + t * stride; };
  for (int64_t t = 0; t < length; ++t) {
    float* out = a.out + (first + t) * p.channels;
    std::fill(out + begin, out + end, 0.0f);
    for (int64_t i = 0; i < p.width; ++i) {
      const float* source = column(t - past + i);
      for (int64_t c = begin; c < end; ++c) out[c] += a.weight[c * p.width + i] * source[c];
    }
    for (int64_t c = begin; a.bias != nullptr && c < end; ++c) out[c] += a.bias[c];
    for (int64_t c = begin; p.silu && c < end; ++c) out[c] = silu(out[c]);
  }
  // Ascending order: a column moves to an older place before its own is overwritten.
  for (int64_t i = 0; i < past; ++i) {
    const float* source = column(length - past + i);
    float* target = state + i * p.channels;
    if (source != target) std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin) * sizeof(float));
  }
}

Status launch_conv(const CausalConv1dProblem& p, const CausalConv1dArgs& a, Launch& launch) {
  const int64_t blocks = (p.channels + kChannelBlock - 1) / kChannelBlock;
  launch.pool.parallel_for(p.sequences * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t channel = item % blocks * kChannelBlock;
      convolve(p, a, item / blocks, channel, std::min(channel + kChannelBlock, p.channels));
    }
  });
  return {};
}

/// log(1 + exp(x)); the identity above 20, as torch has it.
float softplus(float x) { return x > 20.0f ? x : std::log1p(std::exp(x)); }

Status launch_gates(const DeltaGatesProblem& p, const DeltaGatesArgs& a, Launch& launch) {
  const int64_t a_stride = a.a_stride ? a.a_stride : p.v_heads;
  const int64_t b_stride = a.b_stride ? a.b_stride : p.v_heads;
  launch.pool.parallel_for(p.tokens, row_grain(20 * p.v_heads), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t h = 0; h < p.v_heads; ++h) {
        a.g[t * p.v_heads + h] = a.a_scale[h] * softplus(a.a[t * a_stride + h] + a.dt_bias[h]);
        a.beta[t * p.v_heads + h] = sigmoid(a.b[t * b_stride + h]);
      }
    }
  });
  return {};
}

int64_t thread_bytes(const GatedDeltaProblem& p) {
  return ((2 * p.k_dim + p.v_dim) * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
}

int64_t workspace(const GatedDeltaProblem& p, int threads) { return thread_bytes(p) * threads; }

Status launch_recurrent(const GatedDeltaProblem& p, const GatedDeltaArgs& a, Launch& launch) {
  std::atomic<int64_t> next{0};
  launch.pool.run([&](int thread, int) {
    auto* scratch = reinterpret_cast<float*>(launch.workspace.data() + thread * thread_bytes(p));
    for (int64_t item = next++; item < p.sequences * p.v_heads; item = next++) {
      const DeltaHead head = delta_head(p, a, item / p.v_heads, item % p.v_heads);
      delta_recurrence(p, head, 0, head.length, scratch);
    }
  });
  return {};
}

}  // namespace

float delta_scale(const GatedDeltaProblem& p) {
  return p.scale != 0 ? p.scale : static_cast<float>(1.0 / std::sqrt(static_cast<double>(p.k_dim)));
}

void delta_normalize(const GatedDeltaProblem& p, const float* x, float scale, float* target) {
  float factor = scale;
  if (p.l2_norm) factor = static_cast<float>(scale / std::sqrt(sum_of_squares(x, p.k_dim) + p.l2_eps));
  for (int64_t i = 0; i < p.k_dim; ++i) target[i] = x[i] * factor;
}

void delta_recurrence(const GatedDeltaProblem& p, const DeltaHead& head, int64_t begin, int64_t end, float* scratch) {
  float* q = scratch;
  float* k = q + p.k_dim;
  float* d = k + p.k_dim;
  for (int64_t t = begin; t < end; ++t) {
    delta_normalize(p, head.q + t * head.q_stride, delta_scale(p), q);
    delta_normalize(p, head.k + t * head.k_stride, 1.0f, k);
    const float decay = std::exp(head.g[t * head.gate_stride]);
    std::fill(d, d + p.v_dim, 0.0f);
    for (int64_t i = 0; i < p.k_dim; ++i) {
      float* row = head.state + i * p.v_dim;
      for (int64_t j = 0; j < p.v_dim; ++j) {
        row[j] *= decay;
        d[j] += row[j] * k[i];
      }
    }
    const float* v = head.v + t * head.v_stride;
    const float beta = head.beta[t * head.gate_stride];
    for (int64_t j = 0; j < p.v_dim; ++j) d[j] = beta * (v[j] - d[j]);
    float* out = head.out + t * head.out_stride;
    std::fill(out, out + p.v_dim, 0.0f);
    for (int64_t i = 0; i < p.k_dim; ++i) {
      float* row = head.state + i * p.v_dim;
      for (int64_t j = 0; j < p.v_dim; ++j) {
        row[j] += k[i] * d[j];
        out[j] += row[j] * q[i];
      }
    }
  }
}

Kernel<CausalConv1dProblem, CausalConv1dArgs> causal_conv1d_reference() {
  return {.name = "reference", .launch = launch_conv};
}
Kernel<DeltaGatesProblem, DeltaGatesArgs> delta_gates_reference() {
  return {.name = "reference", .launch = launch_gates};
}
Kernel<GatedDeltaProblem, GatedDeltaArgs> gated_delta_reference() {
  return {.name = "recurrent", .workspace = workspace, .launch = launch_recurrent};
}

}  // namespace crest::ops
