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
  double scale = 0;
  double offset = 0;
  double error = 0;  // sum of w * (scale * q + offset - x)^2
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

/// Sums with the codes of the grid offset, offset + 1/inverse, ... (0 to max_code).
template <int kN>
void sum_codes(const float* x, const float* weights, float inverse, float offset, float max_code, AffineSums& sums) {
  Lanes q{};
  Lanes qq{};
  Lanes xq{};
  for (int i = 0; i < kN; i += 4) {
    const Lanes value = load(x + i);
    const Lanes c = snap((value - splat(offset)) * splat(inverse), 0, max_code);
    const Lanes weighted = load(weights + i) * c;
    q += weighted;
    qq += weighted * c;
    xq += weighted * value;
  }
  sums.q = sum(q);
  sums.qq = sum(qq);
  sums.xq = sum(xq);
}

/// Least squares; with `no_positive_offset` the offset is at most 0. False when all codes are equal.
inline bool fit(const AffineSums& s, bool no_positive_offset, AffineFit& result) {
  const double w = s.w, x = s.x, q = s.q, qq = s.qq, xq = s.xq;
  const double determinant = w * qq - q * q;
  if (determinant <= 1e-7 * w * qq) return false;
  result.scale = (w * xq - x * q) / determinant;
  result.offset = (qq * x - q * xq) / determinant;
  if (no_positive_offset && result.offset > 0) {
    result.offset = 0;
    result.scale = xq / qq;
  }
  result.error = s.xx - result.scale * xq - result.offset * x;
  return result.scale > 0;
}

/// How the ends of the range are moved inwards, in steps of the code grid, when first guesses are made.
struct AffineSearch {
  float first;
  float step;
  int count;
};

/// Best scale and offset found for kN values: guesses that move both ends or one end of the range, then alternation of
/// codes and least squares from the best one. On return `sums` belongs to the result.
template <int kN>
AffineFit search_affine(const float* x, const float* weights, int max_code, bool no_positive_offset,
                        const AffineSearch& search, AffineSums& sums) {
  sum_values<kN>(x, weights, sums);
  Lanes low_lanes = load(x);
  Lanes high_lanes = low_lanes;
  for (int i = 4; i < kN; i += 4) {
    low_lanes = min(low_lanes, load(x + i));
    high_lanes = max(high_lanes, load(x + i));
  }
  float low = std::min(std::min(low_lanes[0], low_lanes[1]), std::min(low_lanes[2], low_lanes[3]));
  const float high = std::max(std::max(high_lanes[0], high_lanes[1]), std::max(high_lanes[2], high_lanes[3]));
  if (no_positive_offset) low = std::min(low, 0.0f);
  AffineFit best{0, no_positive_offset ? std::min(0.0, double{sums.x} / sums.w) : double{sums.x} / sums.w, 0};
  best.error = sums.xx + best.offset * (best.offset * sums.w - 2.0 * sums.x);
  if (!(high > low)) return best;

  const auto top = static_cast<float>(max_code);
  AffineSums best_sums = sums;
  const auto attempt = [&](float inverse, float offset) {
    AffineFit candidate;
    sum_codes<kN>(x, weights, inverse, offset, top, sums);
    if (!fit(sums, no_positive_offset, candidate) || !(candidate.error < best.error)) return false;
    best = candidate;
    best_sums = sums;
    return true;
  };
  const float unit = (high - low) / top;
  for (int i = 0; i < search.count; ++i) {
    const float shift = unit * (search.first + search.step * static_cast<float>(i));
    attempt(top / (high - low - 2 * shift), low + shift);
    attempt(top / (high - low - shift), low + shift);
    attempt(top / (high - low - shift), low);
  }
  for (int round = 0; round < 6; ++round) {
    if (best.scale <= 0 || !attempt(static_cast<float>(1 / best.scale), static_cast<float>(best.offset))) break;
  }
  sums = best_sums;
  return best;
}

}  // namespace crest::tensor::detail
