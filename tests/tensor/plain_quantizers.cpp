#include "tensor/plain_quantizers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/result.h"
#include "tensor/blocks.h"
#include "tensor/half.h"
#include "tensor/pack.h"

namespace crest::testing {
namespace {

using namespace tensor;

constexpr float kTiny = 1e-15f;
constexpr float kTinyIQ = 1e-8f;

int nearest(float x) { return static_cast<int>(std::nearbyintf(x)); }
uint8_t byte(int value) { return static_cast<uint8_t>(value); }

// The element of largest magnitude, with its sign.
float largest(const float* x, int n, float& magnitude) {
  float result = 0;
  magnitude = 0;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > magnitude) {
      magnitude = std::fabs(x[i]);
      result = x[i];
    }
  }
  return result;
}

// Symmetric scale search; codes[i] = q + nmax, q in [-nmax, nmax - 1]. Weights: given, or x^2.
float symmetric(int n, int nmax, const float* x, uint8_t* codes, const float* weights) {
  float magnitude;
  const float max = largest(x, n, magnitude);
  if (magnitude < kTiny) {
    std::fill(codes, codes + n, uint8_t{0});
    return 0;
  }
  const auto level = [&](float iscale, int i) { return std::clamp(nearest(iscale * x[i]), -nmax, nmax - 1); };
  float scale = 0;
  float best = 0;
  for (int step = -10; step <= 9; ++step) {
    if (step == 0) continue;
    const bool first = step == -10;
    const float iscale = first ? -static_cast<float>(nmax) / max : -(nmax + 0.1f * step) / max;
    float sum_lx = 0;
    float sum_l2 = 0;
    for (int i = 0; i < n; ++i) {
      const int l = level(iscale, i);
      const float w = weights != nullptr ? weights[i] : x[i] * x[i];
      sum_lx += w * x[i] * l;
      sum_l2 += w * l * l;
    }
    if (first || (sum_l2 > 0 && sum_lx * sum_lx > best * sum_l2)) {
      for (int i = 0; i < n; ++i) codes[i] = byte(level(iscale, i) + nmax);
      scale = sum_l2 != 0 ? sum_lx / sum_l2 : 0;
      best = scale * sum_lx;
    }
  }
  return scale;
}

// Q3_K without weights: coordinate descent from the first guess, weights x^2.
float descent3(const float* x, uint8_t* codes) {
  constexpr int kN = 16;
  constexpr int kMax = 4;
  float magnitude;
  const float max = largest(x, kN, magnitude);
  if (magnitude < kTiny) {
    std::fill(codes, codes + kN, uint8_t{0});
    return 0;
  }
  int levels[kN];
  float sum_lx = 0;
  float sum_l2 = 0;
  for (int i = 0; i < kN; ++i) {
    levels[i] = std::clamp(nearest(-static_cast<float>(kMax) / max * x[i]), -kMax, kMax - 1);
    const float w = x[i] * x[i];
    sum_lx += w * x[i] * levels[i];
    sum_l2 += w * levels[i] * levels[i];
  }
  for (int round = 0; round < 5; ++round) {
    bool changed = false;
    for (int i = 0; i < kN; ++i) {
      const float w = x[i] * x[i];
      float lx = sum_lx - w * x[i] * levels[i];
      if (lx <= 0) continue;
      float l2 = sum_l2 - w * levels[i] * levels[i];
      const int l = std::clamp(nearest(x[i] * l2 / lx), -kMax, kMax - 1);
      if (l == levels[i]) continue;
      lx += w * x[i] * l;
      l2 += w * l * l;
      if (l2 > 0 && lx * lx * sum_l2 > sum_lx * sum_lx * l2) {
        levels[i] = l;
        sum_lx = lx;
        sum_l2 = l2;
        changed = true;
      }
    }
    if (!changed) break;
  }
  for (int i = 0; i < kN; ++i) codes[i] = byte(levels[i] + kMax);
  return sum_lx / sum_l2;
}

struct Range {
  float scale;
  float minimum;  // the negated offset, >= 0
};
struct Steps {
  float first;
  float delta;
  int count;
  bool absolute;  // error measured by |.| instead of squares
};

// Scale and offset by weighted least squares over a grid of first guesses.
Range asymmetric(int n, int nmax, const float* x, const float* weights, uint8_t* codes, const Steps& steps) {
  float min = x[0];
  float max = x[0];
  float sum_w = weights[0];
  float sum_x = sum_w * x[0];
  for (int i = 1; i < n; ++i) {
    min = std::min(min, x[i]);
    max = std::max(max, x[i]);
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
  }
  min = std::min(min, 0.0f);
  if (max == min) {
    std::fill(codes, codes + n, uint8_t{0});
    return {0, -min};
  }
  float iscale = nmax / (max - min);
  float scale = 1 / iscale;
  const auto error_of = [&](float s, float m, const uint8_t* levels) {
    float sum = 0;
    for (int i = 0; i < n; ++i) {
      const float diff = s * levels[i] + m - x[i];
      sum += weights[i] * (steps.absolute ? std::fabs(diff) : diff * diff);
    }
    return sum;
  };
  for (int i = 0; i < n; ++i) codes[i] = byte(std::clamp(nearest(iscale * (x[i] - min)), 0, nmax));
  float best = error_of(scale, min, codes);
  const float start_max = max;
  uint8_t levels[32];
  float best_min = min;
  for (int step = 0; step <= steps.count; ++step) {
    iscale = (steps.first + steps.delta * step + nmax) / (start_max - best_min);
    float sum_l = 0;
    float sum_l2 = 0;
    float sum_xl = 0;
    for (int i = 0; i < n; ++i) {
      const int l = std::clamp(nearest(iscale * (x[i] - best_min)), 0, nmax);
      levels[i] = byte(l);
      sum_l += weights[i] * l;
      sum_l2 += weights[i] * l * l;
      sum_xl += weights[i] * l * x[i];
    }
    const float determinant = sum_w * sum_l2 - sum_l * sum_l;
    if (determinant <= 0) continue;
    float this_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    float this_min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
    if (this_min > 0) {
      this_min = 0;
      this_scale = sum_xl / sum_l2;
    }
    const float error = error_of(this_scale, this_min, levels);
    if (error < best) {
      std::copy(levels, levels + n, codes);
      best = error;
      scale = this_scale;
      best_min = this_min;
    }
  }
  return {scale, -best_min};
}

// Non-negative values (scales or minima of a super-block) to [0, nmax].
float positive(int n, int nmax, const float* x, uint8_t* codes, const float* weights) {
  const float max = *std::max_element(x, x + n);
  if (max < kTiny) {
    std::fill(codes, codes + n, uint8_t{0});
    return 0;
  }
  float iscale = nmax / max;
  const auto error_of = [&](float inverse) {
    float sum = 0;
    for (int i = 0; i < n; ++i) {
      const float diff = x[i] - 1 / inverse * std::min(nmax, nearest(inverse * x[i]));
      sum += weights[i] * diff * diff;
    }
    return sum;
  };
  float best = error_of(iscale);
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const float inverse = (0.1f * step + nmax) / max;
    const float error = error_of(inverse);
    if (error < best) {
      best = error;
      iscale = inverse;
    }
  }
  float sum_lx = 0;
  float sum_l2 = 0;
  for (int i = 0; i < n; ++i) {
    const int l = std::min(nmax, nearest(iscale * x[i]));
    codes[i] = byte(l);
    sum_lx += weights[i] * x[i] * l;
    sum_l2 += weights[i] * l * l;
  }
  for (int round = 0; round < 5; ++round) {
    bool changed = false;
    for (int i = 0; i < n; ++i) {
      const float w = weights[i];
      float lx = sum_lx - w * x[i] * codes[i];
      float l2 = sum_l2 - w * codes[i] * codes[i];
      if (lx <= 0 || l2 <= 0) continue;
      const int l = std::min(nmax, nearest(x[i] * l2 / lx));
      if (l == codes[i]) continue;
      lx += w * x[i] * l;
      l2 += w * l * l;
      if (lx * lx * sum_l2 > sum_lx * sum_lx * l2) {
        codes[i] = byte(l);
        sum_lx = lx;
        sum_l2 = l2;
        changed = true;
      }
    }
    if (!changed) break;
  }
  return sum_l2 > 0 ? sum_lx / sum_l2 : 0;
}

float mean_square(const float* x, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return sum / static_cast<float>(n);
}

void importance_weights(const float* importance, const float* x, int n, float sigma2, float* weights) {
  for (int i = 0; i < n; ++i) weights[i] = importance[i] * std::sqrt(sigma2 + x[i] * x[i]);
}

void q4_or_q5_0(const float* x, const float* importance, float sigma2, int nmax, uint16_t& d, uint8_t* codes) {
  if (importance != nullptr) {
    float weights[32];
    importance_weights(importance, x, 32, sigma2, weights);
    d = f32_to_f16(symmetric(32, nmax, x, codes, weights));
    return;
  }
  float magnitude;
  const float scale = largest(x, 32, magnitude) / -static_cast<float>(nmax);
  const float inverse = scale != 0 ? 1 / scale : 0;
  d = f32_to_f16(scale);
  for (int i = 0; i < 32; ++i) {
    codes[i] = byte(std::min(2 * nmax - 1, static_cast<int>(x[i] * inverse + (static_cast<float>(nmax) + 0.5f))));
  }
}

void q4_or_q5_1(const float* x, const float* importance, float sigma2, int nmax, uint16_t& d, uint16_t& m,
                uint8_t* codes) {
  if (importance != nullptr) {
    float weights[32];
    importance_weights(importance, x, 32, sigma2, weights);
    const Range range = asymmetric(32, nmax, x, weights, codes, {-0.9f, 0.05f, 36, false});
    d = f32_to_f16(range.scale);
    m = f32_to_f16(-range.minimum);
    return;
  }
  const auto [min, max] = std::minmax_element(x, x + 32);
  const float scale = (*max - *min) / static_cast<float>(nmax);
  const float inverse = scale != 0 ? 1 / scale : 0;
  d = f32_to_f16(scale);
  m = f32_to_f16(*min);
  for (int i = 0; i < 32; ++i) codes[i] = byte(std::min(nmax, static_cast<int>((x[i] - *min) * inverse + 0.5f)));
}

int nearest_iq4(float x) {
  int best = 0;
  for (int k = 1; k < 16; ++k) {
    if (std::fabs(x - kIQ4Values[k]) < std::fabs(x - kIQ4Values[best])) best = k;
  }
  return best;
}

// Scale of 32 values on the IQ4 table.
float iq4_scale(const float* x, const float* weights) {
  float magnitude;
  const float max = largest(x, 32, magnitude);
  if (magnitude < kTinyIQ) return 0;
  float d = 0;
  float best = 0;
  for (int step = -8; step <= 7; ++step) {
    const bool first = step == -8;
    const float inverse = first ? 1 / (-max / kIQ4Values[0]) : (static_cast<float>(step) + kIQ4Values[0]) / max;
    float sum_qx = 0;
    float sum_q2 = 0;
    for (int i = 0; i < 32; ++i) {
      const float q = kIQ4Values[nearest_iq4(inverse * x[i])];
      sum_qx += weights[i] * q * x[i];
      sum_q2 += weights[i] * q * q;
    }
    if (first || (sum_q2 > 0 && sum_qx * sum_qx > best * sum_q2)) {
      d = sum_qx / sum_q2;
      best = d * sum_qx;
    }
  }
  return d;
}

void iq4_weights(const float* x, const float* importance, float sigma2, float* weights) {
  if (importance != nullptr) return importance_weights(importance, x, 32, sigma2, weights);
  for (int i = 0; i < 32; ++i) weights[i] = x[i] * x[i];
}

void iq4_nl(const float* x, const float* importance, BlockIQ4_NL& block) {
  float weights[32];
  iq4_weights(x, importance, 2 * mean_square(x, 32), weights);
  const float d = iq4_scale(x, weights);
  block.d = f32_to_f16(d);
  uint8_t codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = byte(nearest_iq4(d != 0 ? 1 / d * x[i] : 0));
  pack_nibbles(codes, block.qs);
}

void iq4_xs(const float* x, const float* importance, BlockIQ4_XS& block) {
  const float sigma2 = 2 * mean_square(x, 256);
  float scales[8];
  for (int s = 0; s < 8; ++s) {
    float weights[32];
    iq4_weights(x + 32 * s, importance != nullptr ? importance + 32 * s : nullptr, sigma2, weights);
    scales[s] = iq4_scale(x + 32 * s, weights);
  }
  float magnitude;
  const float d = -largest(scales, 8, magnitude) / 32;
  const float inverse = d != 0 ? 1 / d : 0;
  block.d = f32_to_f16(d);
  block.scales_h = 0;
  std::memset(block.scales_l, 0, sizeof(block.scales_l));
  for (int s = 0; s < 8; ++s) {
    const int l = std::clamp(nearest(inverse * scales[s]), -32, 31);
    const float dl = d * static_cast<float>(l);
    const float idl = dl != 0 ? 1 / dl : 0;
    uint8_t codes[32];
    for (int i = 0; i < 32; ++i) codes[i] = byte(nearest_iq4(idl * x[32 * s + i]));
    pack_nibbles(codes, block.qs + 16 * s);
    block.scales_l[s / 2] = byte(block.scales_l[s / 2] | ((l + 32) & 15) << (s % 2 * 4));
    block.scales_h = static_cast<uint16_t>(block.scales_h | (l + 32) >> 4 << (2 * s));
  }
}

void mxfp4(const float* x, BlockMXFP4& block) {
  float magnitude;
  largest(x, 32, magnitude);
  block.e = magnitude > 0 ? byte(static_cast<int>(std::floor(std::log2(magnitude))) - 2 + 127) : 0;
  const float d = std::ldexp(0.5f, block.e - 127);
  uint8_t codes[32];
  for (int i = 0; i < 32; ++i) {
    int best = 0;
    for (int k = 1; k < 16; ++k) {
      if (std::fabs(kE2M1Doubled[k] * d - x[i]) < std::fabs(kE2M1Doubled[best] * d - x[i])) best = k;
    }
    codes[i] = byte(best);
  }
  pack_nibbles(codes, block.qs);
}

void q8_0(const float* x, BlockQ8_0& block) {
  float magnitude;
  largest(x, 32, magnitude);
  const float d = magnitude / 127;
  const float inverse = d != 0 ? 1 / d : 0;
  block.d = f32_to_f16(d);
  for (int i = 0; i < 32; ++i) block.qs[i] = static_cast<int8_t>(std::round(x[i] * inverse));
}

void q2_k(const float* x, const float* importance, BlockQ2_K& block) {
  float scales[16];
  float minima[16];
  float sums[16];
  uint8_t codes[256];
  const float sigma2 = mean_square(x, 256);
  for (int s = 0; s < 16; ++s) {
    const float* sub = x + 16 * s;
    float weights[16];
    if (importance != nullptr) importance_weights(importance + 16 * s, sub, 16, sigma2, weights);
    for (int i = 0; i < 16 && importance == nullptr; ++i) weights[i] = std::fabs(sub[i]);
    sums[s] = 0;
    for (const float w : weights) sums[s] += w;
    const Range range =
        asymmetric(16, 3, sub, weights, codes + 16 * s,
                   importance != nullptr ? Steps{-0.9f, 0.05f, 36, false} : Steps{-0.5f, 0.1f, 15, true});
    scales[s] = range.scale;
    minima[s] = range.minimum;
  }
  uint8_t ls[16] = {};
  uint8_t lm[16] = {};
  if (importance != nullptr) {
    block.d = f32_to_f16(positive(16, 15, scales, ls, sums));
    block.dmin = f32_to_f16(positive(16, 15, minima, lm, sums));
  } else {
    const float max_scale = *std::max_element(scales, scales + 16);
    const float max_min = *std::max_element(minima, minima + 16);
    for (int s = 0; s < 16; ++s) {
      if (max_scale > 0) ls[s] = byte(nearest(15 / max_scale * scales[s]));
      if (max_min > 0) lm[s] = byte(nearest(15 / max_min * minima[s]));
    }
    block.d = f32_to_f16(max_scale > 0 ? max_scale / 15 : 0);
    block.dmin = f32_to_f16(max_min > 0 ? max_min / 15 : 0);
  }
  for (int s = 0; s < 16; ++s) {
    block.scales[s] = byte(ls[s] | lm[s] << 4);
    const float d = f16_to_f32(block.d) * static_cast<float>(ls[s]);
    if (d == 0) continue;
    const float m = f16_to_f32(block.dmin) * static_cast<float>(lm[s]);
    for (int i = 0; i < 16; ++i) codes[16 * s + i] = byte(std::clamp(nearest((x[16 * s + i] + m) / d), 0, 3));
  }
  pack_pairs(codes, block.qs);
}

void q3_k(const float* x, const float* importance, BlockQ3_K& block) {
  float scales[16];
  float sums[16];
  uint8_t codes[256];
  const float sigma2 = 2 * mean_square(x, 256);
  for (int s = 0; s < 16; ++s) {
    if (importance == nullptr) {
      scales[s] = descent3(x + 16 * s, codes + 16 * s);
      continue;
    }
    float weights[16];
    importance_weights(importance + 16 * s, x + 16 * s, 16, sigma2, weights);
    sums[s] = 0;
    for (const float w : weights) sums[s] += w;
    scales[s] = symmetric(16, 4, x + 16 * s, codes + 16 * s, weights);
  }
  uint8_t ls[16] = {};
  float d = 0;
  if (importance != nullptr) {
    d = symmetric(16, 32, scales, ls, sums);
  } else {
    float magnitude;
    const float max = largest(scales, 16, magnitude);
    if (max != 0) {
      const float iscale = -32.0f / max;
      for (int s = 0; s < 16; ++s) ls[s] = byte(std::clamp(nearest(iscale * scales[s]), -32, 31) + 32);
      d = 1 / iscale;
    }
  }
  block.d = f32_to_f16(d);
  std::memset(block.scales, 0, sizeof(block.scales));
  for (int s = 0; s < 16; ++s) {
    pack_q3_scale(block.scales, s, ls[s]);
    const float dl = f16_to_f32(block.d) * static_cast<float>(ls[s] - 32);
    if (dl == 0) continue;
    for (int i = 0; i < 16; ++i) codes[16 * s + i] = byte(std::clamp(nearest(x[16 * s + i] / dl), -4, 3) + 4);
  }
  pack_pairs(codes, block.qs);
  pack_bit_planes(codes, 2, block.hmask);
}

template <typename Block>
void q4_or_q5_k(const float* x, const float* importance, int nmax, const Steps& plain_steps, Block& block,
                uint8_t* codes) {
  float scales[8];
  float minima[8];
  float sums[8];
  const float sigma2 = 2 * mean_square(x, 256);
  for (int s = 0; s < 8; ++s) {
    const float* sub = x + 32 * s;
    float weights[32];
    if (importance != nullptr) {
      importance_weights(importance + 32 * s, sub, 32, sigma2, weights);
    } else {
      const float average = std::sqrt(mean_square(sub, 32));
      for (int i = 0; i < 32; ++i) weights[i] = average + std::fabs(sub[i]);
    }
    sums[s] = 0;
    for (const float w : weights) sums[s] += w;
    const Range range = asymmetric(32, nmax, sub, weights, codes + 32 * s,
                                   importance != nullptr ? Steps{-0.9f, 0.05f, 36, false} : plain_steps);
    scales[s] = range.scale;
    minima[s] = range.minimum;
  }
  uint8_t ls[8] = {};
  uint8_t lm[8] = {};
  if (importance != nullptr) {
    block.d = f32_to_f16(positive(8, 63, scales, ls, sums));
    block.dmin = f32_to_f16(positive(8, 63, minima, lm, sums));
  } else {
    const float max_scale = std::max(0.0f, *std::max_element(scales, scales + 8));
    const float max_min = std::max(0.0f, *std::max_element(minima, minima + 8));
    const float inverse_scale = max_scale > 0 ? 63 / max_scale : 0;
    const float inverse_min = max_min > 0 ? 63 / max_min : 0;
    for (int s = 0; s < 8; ++s) {
      ls[s] = byte(std::min(63, nearest(inverse_scale * scales[s])));
      lm[s] = byte(std::min(63, nearest(inverse_min * minima[s])));
    }
    block.d = f32_to_f16(max_scale / 63);
    block.dmin = f32_to_f16(max_min / 63);
  }
  std::memset(block.scales, 0, sizeof(block.scales));
  for (int s = 0; s < 8; ++s) {
    pack_scale_min(block.scales, s, {ls[s], lm[s]});
    const float d = f16_to_f32(block.d) * static_cast<float>(ls[s]);
    if (d == 0) continue;
    const float m = f16_to_f32(block.dmin) * static_cast<float>(lm[s]);
    for (int i = 0; i < 32; ++i) codes[32 * s + i] = byte(std::clamp(nearest((x[32 * s + i] + m) / d), 0, nmax));
  }
}

void q6_k(const float* x, const float* importance, BlockQ6_K& block) {
  float scales[16];
  uint8_t codes[256];
  for (int s = 0; s < 16; ++s) {
    scales[s] = symmetric(16, 32, x + 16 * s, codes + 16 * s, importance != nullptr ? importance + 16 * s : nullptr);
  }
  float magnitude;
  const float max = largest(scales, 16, magnitude);
  if (magnitude < kTiny) {
    std::memset(static_cast<void*>(&block), 0, sizeof(block));
    return;
  }
  const float iscale = -128.0f / max;
  block.d = f32_to_f16(1 / iscale);
  for (int s = 0; s < 16; ++s) {
    block.scales[s] = static_cast<int8_t>(std::min(127, nearest(iscale * scales[s])));
    const float d = f16_to_f32(block.d) * static_cast<float>(block.scales[s]);
    if (d == 0) continue;
    for (int i = 0; i < 16; ++i) codes[16 * s + i] = byte(std::clamp(nearest(x[16 * s + i] / d), -32, 31) + 32);
  }
  pack_q6_k(codes, block.ql, block.qh);
}

void small_block(DType dtype, const float* x, const float* importance, float sigma2, void* out) {
  uint8_t codes[32];
  switch (dtype) {
    case DType::kQ4_0: {
      auto& block = *static_cast<BlockQ4_0*>(out);
      uint16_t d;
      q4_or_q5_0(x, importance, sigma2, 8, d, codes);
      block.d = d;
      return pack_nibbles(codes, block.qs);
    }
    case DType::kQ5_0: {
      auto& block = *static_cast<BlockQ5_0*>(out);
      uint16_t d;
      q4_or_q5_0(x, importance, sigma2, 16, d, codes);
      block.d = d;
      pack_fifth_bits(codes, block.qh);
      return pack_nibbles(codes, block.qs);
    }
    case DType::kQ4_1: {
      auto& block = *static_cast<BlockQ4_1*>(out);
      uint16_t d, m;
      q4_or_q5_1(x, importance, sigma2, 15, d, m, codes);
      block.d = d;
      block.m = m;
      return pack_nibbles(codes, block.qs);
    }
    case DType::kQ5_1: {
      auto& block = *static_cast<BlockQ5_1*>(out);
      uint16_t d, m;
      q4_or_q5_1(x, importance, sigma2, 31, d, m, codes);
      block.d = d;
      block.m = m;
      pack_fifth_bits(codes, block.qh);
      return pack_nibbles(codes, block.qs);
    }
    case DType::kQ8_0:
      return q8_0(x, *static_cast<BlockQ8_0*>(out));
    case DType::kIQ4_NL:
      return iq4_nl(x, importance, *static_cast<BlockIQ4_NL*>(out));
    case DType::kMXFP4:
      return mxfp4(x, *static_cast<BlockMXFP4*>(out));
    default:
      CREST_CHECK(false, "no plain quantiser");
  }
}

void super_block(DType dtype, const float* x, const float* importance, void* out) {
  uint8_t codes[256] = {};
  switch (dtype) {
    case DType::kQ2_K:
      return q2_k(x, importance, *static_cast<BlockQ2_K*>(out));
    case DType::kQ3_K:
      return q3_k(x, importance, *static_cast<BlockQ3_K*>(out));
    case DType::kQ4_K: {
      auto& block = *static_cast<BlockQ4_K*>(out);
      q4_or_q5_k(x, importance, 15, {-1.0f, 0.1f, 20, false}, block, codes);
      return pack_k_nibbles(codes, block.qs);
    }
    case DType::kQ5_K: {
      auto& block = *static_cast<BlockQ5_K*>(out);
      q4_or_q5_k(x, importance, 31, {-0.5f, 0.1f, 15, false}, block, codes);
      pack_bit_planes(codes, 4, block.qh);
      return pack_k_nibbles(codes, block.qs);
    }
    case DType::kQ6_K:
      return q6_k(x, importance, *static_cast<BlockQ6_K*>(out));
    case DType::kIQ4_XS:
      return iq4_xs(x, importance, *static_cast<BlockIQ4_XS*>(out));
    default:
      CREST_CHECK(false, "no plain quantiser");
  }
}

}  // namespace

std::vector<uint8_t> plain_quantize(DType dtype, const float* x, int64_t n, const float* importance) {
  const DTypeInfo& type = info(dtype);
  std::vector<uint8_t> bytes(static_cast<size_t>(row_bytes(dtype, n)));
  const float sigma2 = mean_square(x, n);
  for (int64_t b = 0; b < n / type.block_size; ++b) {
    const float* block = x + b * type.block_size;
    const float* weights = importance != nullptr ? importance + b * type.block_size : nullptr;
    void* out = bytes.data() + b * type.block_bytes;
    if (type.block_size == 32) {
      small_block(dtype, block, weights, sigma2, out);
    } else {
      super_block(dtype, block, weights, out);
    }
  }
  return bytes;
}

}  // namespace crest::testing
