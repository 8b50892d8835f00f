#include <algorithm>
#include <cstring>

#include "ops/linear_attention/cpu_linear_attention.h"
#include "ops/simd.h"

namespace crest::ops {
namespace {

using V = VecAvx2;
constexpr int64_t kBlock = 256;
constexpr int64_t kMaxWidth = 8;

/// sums[i] = sum over w of taps[w][i] * columns[w][i].
template <int kWidth>
void multiply(const float (*taps)[kBlock], const float* const* columns, int64_t count, int64_t, float* sums) {
  for (int64_t i = 0; i < count; i += V::kLanes) {
    auto sum = V::mul(V::load(taps[0] + i), V::load(columns[0] + i));
#pragma GCC unroll 8
    for (int w = 1; w < kWidth; ++w) sum = V::fma(V::load(taps[w] + i), V::load(columns[w] + i), sum);
    V::store(sums + i, sum);
  }
}
void multiply_any(const float (*taps)[kBlock], const float* const* columns, int64_t count, int64_t width, float* sums) {
  for (int64_t i = 0; i < count; i += V::kLanes) {
    auto sum = V::mul(V::load(taps[0] + i), V::load(columns[0] + i));
    for (int64_t w = 1; w < width; ++w) sum = V::fma(V::load(taps[w] + i), V::load(columns[w] + i), sum);
    V::store(sums + i, sum);
  }
}

/// kBlock channels of one sequence, beginning at channel c.
void convolve_block(const CausalConv1dProblem& p, const CausalConv1dArgs& a, int64_t sequence, int64_t c) {
  const int64_t past = p.width - 1;
  const int64_t stride = a.x_stride ? a.x_stride : p.channels;
  const int64_t first = a.cu_seqlens[sequence];
  const int64_t length = a.cu_seqlens[sequence + 1] - first;
  const int64_t count = std::min(kBlock, p.channels - c);
  const float* x = a.x + first * stride + c;
  float* state = a.state + a.state_slots[sequence] * past * p.channels + c;
  const bool fresh = a.has_state != nullptr && !a.has_state[sequence];

  alignas(64) float taps[kMaxWidth][kBlock] = {};
  alignas(64) float before[kMaxWidth][kBlock] = {};
  alignas(64) float sums[kBlock] = {};
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t t = 0; t < p.width; ++t) taps[t][i] = a.weight[(c + i) * p.width + t];
  }
  for (int64_t i = 0; !fresh && i < past; ++i)
    std::memcpy(before[i], state + i * p.channels, static_cast<size_t>(count) * 4);

  const auto column = [&](int64_t t) { return t < 0 ? before[past + t] : x + t * stride; };
  const int64_t full = count / V::kLanes * V::kLanes;
  for (int64_t t = 0; t < length; ++t) {
    const float* columns[kMaxWidth];
    for (int64_t i = 0; i < p.width; ++i) columns[i] = column(t - past + i);
    (p.width == 4 ? multiply<4> : multiply_any)(taps, columns, full, p.width, sums);
    for (int64_t i = full; i < count; ++i) {
      sums[i] = 0;
      for (int64_t w = 0; w < p.width; ++w) sums[i] += taps[w][i] * columns[w][i];
    }
    for (int64_t i = 0; a.bias != nullptr && i < count; ++i) sums[i] += a.bias[c + i];
    if (p.silu) {
      for (int64_t i = 0; i < count; i += V::kLanes) {
        const auto value = V::load(sums + i);
        V::store(sums + i, V::mul(value, vector_sigmoid<V>(value)));
      }
    }
    std::memcpy(a.out + (first + t) * p.channels + c, sums, static_cast<size_t>(count) * 4);
  }
  for (int64_t i = 0; i < past; ++i) {
    std::memcpy(state + i * p.channels, column(length - past + i), static_cast<size_t>(count) * 4);
  }
}

bool supports(const CausalConv1dProblem& p) { return p.width <= kMaxWidth; }

Status launch(const CausalConv1dProblem& p, const CausalConv1dArgs& a, Launch& launch) {
  const int64_t blocks = (p.channels + kBlock - 1) / kBlock;
  launch.pool.parallel_for(p.sequences * blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) convolve_block(p, a, item / blocks, item % blocks * kBlock);
  });
  return {};
}

}  // namespace

constinit const Kernel<CausalConv1dProblem, CausalConv1dArgs> kCausalConv1dAvx2 = {
    .name = "avx2", .arch = "avx2", .priority = 10, .supports = supports, .launch = launch};

}  // namespace crest::ops
