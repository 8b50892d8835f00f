#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tensor/quantize_lanes.h"

namespace crest::tensor::detail {

/// Weighted sums over one group of values x with codes q: all that least squares for x ~ scale * q + offset needs.
struct AffineSums {
  float w = 0;
  float x = 0;
  float xx = 0;
  float q = 0;
  float qq = 0;
  float xq = 0;
};

struct AffineFit {
  float scale = 0;
  float offset = 0;
};

template <int kN>
void sum_values(const float* x, const float* weights, AffineSums& sums) {
  Lanes w{};
  Lanes wx{};
  Lanes wxx{};
  for (int i = 0; i < kN; i += 4) {
    const Lanes value = load(x + i);
    const Lanes weighted = load(weights + i) * value;
    w += load(weights + i);
    wx += weighted;
    wxx += weighted * value;
  }
  sums.w = sum(w);
  sums.x = sum(wx);
  sums.xx = sum(wxx);
}

/// Sums with the codes (0 to kMaxCode) of the grid offset, offset + 1/inverse, ...
template <int kN, int kMaxCode>
void sum_codes(const float* x, const float* weights, float inverse, float offset, AffineSums& sums) {
  Lanes q{};
  Lanes qq{};
  Lanes xq{};
  for (int i = 0; i < kN; i += 4) {
    const Lanes value = load(x + i);
    const Lanes c = snap((value - splat(offset)) * splat(inverse), 0, kMaxCode);
    const Lanes weighted = load(weights + i) * c;
    q += weighted;
    qq += weighted * c;
    xq += weighted * value;
  }
  sums.q = sum(q);
  sums.qq = sum(qq);
  sums.xq = sum(xq);
}

/// Least squares for the codes of the sums. With kNegativeOffset the offset is at most 0.
/// What a fit explains of sum(w x^2) is slope^2 / spread (+ a constant without that bound); what is left is the error.
struct Explained {
  float slope = 0;
  float spread = 1;
  bool bounded = false;  // offset 0

  /// Cross-multiplied: no division, and no difference of nearly equal numbers.
  bool better_than(const Explained& other, float constant) const {
    const double a = double{slope} * slope + (bounded ? 0.0 : double{constant} * spread);
    const double b = double{other.slope} * other.slope + (other.bounded ? 0.0 : double{constant} * other.spread);
    return a * other.spread > b * spread;
  }
  AffineFit fit(const AffineSums& s) const {
    const float scale = slope / spread;
    return {scale, bounded ? 0 : (s.x - scale * s.q) / s.w};
  }
};

template <bool kNegativeOffset>
bool explain(const AffineSums& s, Explained& result) {
  const float inverse_w = 1 / s.w;
  const float mean = s.x * inverse_w;
  result = {s.xq - mean * s.q, s.qq - s.q * s.q * inverse_w, false};
  if (kNegativeOffset && mean * result.spread > result.slope * s.q * inverse_w) result = {s.xq, s.qq, true};
  return result.spread > 1e-6f * s.qq && result.slope > 0;
}

/// How the ends of the range are moved inwards, in steps of the code grid, when first guesses are made.
struct AffineSearch {
  float first;
  float step;
  int count;
};

/// Best scale and offset found for kN values: guesses that move both ends or one end of the range, then alternation of
/// codes and least squares from the best one. On return `sums` belongs to the result.
template <int kN, int kMaxCode, bool kNegativeOffset>
AffineFit search_affine(const float* x, const float* weights, const AffineSearch& search, AffineSums& sums) {
  sum_values<kN>(x, weights, sums);
  Lanes low_lanes = load(x);
  Lanes high_lanes = low_lanes;
  for (int i = 4; i < kN; i += 4) {
    low_lanes = min(low_lanes, load(x + i));
    high_lanes = max(high_lanes, load(x + i));
  }
  float low = std::min(std::min(low_lanes[0], low_lanes[1]), std::min(low_lanes[2], low_lanes[3]));
  const float high = std::max(std::max(high_lanes[0], high_lanes[1]), std::max(high_lanes[2], high_lanes[3]));
  if (kNegativeOffset) low = std::min(low, 0.0f);
  const float mean = sums.x / sums.w;
  AffineFit result{0, kNegativeOffset ? std::min(0.0f, mean) : mean};
  if (!(high > low)) return result;

  const float constant = sums.x * mean;
  AffineSums best_sums = sums;
  Explained best;
  best.bounded = kNegativeOffset && mean > 0;
  bool found = false;
  const auto attempt = [&](float inverse, float offset) {
    Explained candidate;
    sum_codes<kN, kMaxCode>(x, weights, inverse, offset, sums);
    if (!explain<kNegativeOffset>(sums, candidate) || !candidate.better_than(best, constant)) return false;
    best = candidate;
    best_sums = sums;
    found = true;
    return true;
  };
  constexpr float kTop = kMaxCode;
  const float unit = (high - low) / kTop;
  for (int i = 0; i < search.count; ++i) {
    const float shift = unit * (search.first + search.step * static_cast<float>(i));
    const float one_end = kTop / (high - low - shift);
    attempt(kTop / (high - low - 2 * shift), low + shift);
    attempt(one_end, low + shift);
    attempt(one_end, low);
  }
  if (!found) return result;
  for (int round = 0; round < 6; ++round) {
    result = best.fit(best_sums);
    if (!attempt(1 / result.scale, result.offset)) break;
  }
  sums = best_sums;
  return result;
}

}  // namespace crest::tensor::detail
