#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/half.h"
#include "tensor/quantize_grids.h"

namespace crest::tensor::detail {

/// Weighted sums over one group of values x with grid values q, for x ~ scale * q.
struct ScaledSums {
  float xx = 0;
  float xq = 0;
  float qq = 0;

  /// Scale of least squares; the error that a scale leaves with these q.
  double scale() const { return qq > 0 ? double{xq} / qq : 0; }
  double error(double s) const { return xx + s * (s * qq - 2.0 * xq); }
};

template <int kN, typename Grid>
void sum_codes(const float* x, const float* weights, float inverse, ScaledSums& sums) {
  Lanes xq{};
  Lanes qq{};
  for (int i = 0; i < kN; i += 4) {
    const Lanes value = load(x + i);
    const Lanes q = Grid::nearest(value * splat(inverse));
    const Lanes weighted = load(weights + i) * q;
    xq += weighted * value;
    qq += weighted * q;
  }
  sums.xq = sum(xq);
  sums.qq = sum(qq);
}

template <int kN>
float largest_magnitude(const float* x) {
  Lanes top{};
  for (int i = 0; i < kN; i += 4) top = max(top, max(load(x + i), -load(x + i)));
  return std::max(std::max(top[0], top[1]), std::max(top[2], top[3]));
}

/// Where the largest magnitude may land on the grid: at kReach + first, + first + step, ...
struct ScaleSearch {
  float first;
  float step;
  int count;
};

/// Sums of the best codes found, among scales of both signs (grids are not symmetric), then alternation of codes and
/// least squares from the best one.
template <int kN, typename Grid>
ScaledSums search_scale(const float* x, const float* weights, const ScaleSearch& search) {
  ScaledSums best;
  Lanes xx{};
  for (int i = 0; i < kN; i += 4) xx += load(weights + i) * load(x + i) * load(x + i);
  best.xx = sum(xx);
  const float top = largest_magnitude<kN>(x);
  if (top <= 0) return best;
  ScaledSums sums = best;
  const auto attempt = [&](float inverse) {
    sum_codes<kN, Grid>(x, weights, inverse, sums);
    // The error is xx - xq^2 / qq.
    if (best.qq != 0 && !(double{sums.xq} * sums.xq * best.qq > double{best.xq} * best.xq * sums.qq)) return false;
    best = sums;
    return true;
  };
  for (int i = 0; i < search.count; ++i) {
    const float inverse = (Grid::kReach + search.first + search.step * static_cast<float>(i)) / top;
    attempt(inverse);
    attempt(-inverse);
  }
  for (int round = 0; round < 6; ++round) {
    if (best.xq == 0 || !attempt(best.qq / best.xq)) break;
  }
  return best;
}

/// y = d * scale_j * q with a signed integer scale_j in [-kHalfScale, kHalfScale - 1] for each sub-block (Q3_K, Q6_K,
/// IQ4_XS). Sub-blocks alone; then d from a grid, by a quadratic model (codes fixed, a sub-block's error is a parabola
/// of its scale); then codes, scale_j and d again by exact errors and least squares while the error falls.
template <typename Grid, int kSub, int kHalfScale>
class ScaledSuperBlock {
 public:
  static constexpr int kCount = kSuperBlock / kSub;

  ScaledSuperBlock(const float* x, const float* weights, const ScaleSearch& search) : x_(x), weights_(weights) {
    for (int j = 0; j < kCount; ++j) {
      sums_[j] = search_scale<kSub, Grid>(x + kSub * j, weights + kSub * j, search);
    }
  }

  void solve() {
    if (!choose_step()) return;
    double best = std::numeric_limits<double>::infinity();
    Choice choice = choice_;
    for (int round = 0; round < 3; ++round) {
      const double error = choose_integers();
      if (!(error < best)) break;
      best = error;
      choice = choice_;
      if (!solve_step()) break;
    }
    choice_ = choice;
  }

  uint16_t d() const { return choice_.d; }
  int scale(int j) const { return choice_.scale[j]; }

  void codes(uint8_t* out) const {
    for (int j = 0; j < kCount; ++j) {
      const float scale = f16_to_f32(choice_.d) * static_cast<float>(choice_.scale[j]);
      encode<kSub, Grid>(x_ + kSub * j, scale != 0 ? 1 / scale : 0, out + kSub * j);
    }
  }

 private:
  struct Choice {
    uint16_t d = 0;
    int8_t scale[kCount] = {};
  };

  static double clamp_scale(double x) { return std::clamp(x, -1.0 * kHalfScale, kHalfScale - 1.0); }

  // The sign of d decides which scale may reach -kHalfScale.
  bool choose_step() {
    double top = 0;
    for (const ScaledSums& s : sums_) top = std::max(top, std::fabs(s.scale()));
    if (top <= 0) return false;
    double best = std::numeric_limits<double>::infinity();
    double best_d = 0;
    for (int step = -4; step <= 12; ++step) {
      for (const int sign : {-1, 1}) {
        const double d = sign * top / (kHalfScale - 0.25 * step);
        double error = 0;
        for (int j = 0; j < kCount && error < best; ++j) {
          const double s = sums_[j].scale();
          const double difference = d * clamp_scale(std::nearbyint(s / d)) - s;
          error += sums_[j].qq * difference * difference;
        }
        if (error < best) {
          best = error;
          best_d = d;
        }
      }
    }
    choice_.d = to_half(best_d);
    return true;
  }

  double choose_integers() {
    const double d = f16_to_f32(choice_.d);
    double total = 0;
    for (int j = 0; j < kCount; ++j) {
      double best = std::numeric_limits<double>::infinity();
      ScaledSums best_sums;
      const int middle = d != 0 ? static_cast<int>(std::nearbyint(clamp_scale(sums_[j].scale() / d))) : 0;
      ScaledSums sums = sums_[j];
      for (int scale = std::max(middle - 1, -kHalfScale); scale <= std::min(middle + 1, kHalfScale - 1); ++scale) {
        const double s = d * scale;
        sum_codes<kSub, Grid>(x_ + kSub * j, weights_ + kSub * j, s != 0 ? static_cast<float>(1 / s) : 0, sums);
        const double error = sums.error(s);
        if (error < best) {
          best = error;
          best_sums = sums;
          choice_.scale[j] = static_cast<int8_t>(scale);
        }
      }
      sums_[j] = best_sums;
      total += best;
    }
    return total;
  }

  bool solve_step() {
    double xa = 0;
    double aa = 0;
    for (int j = 0; j < kCount; ++j) {
      const double a = choice_.scale[j];
      xa += a * sums_[j].xq;
      aa += a * a * sums_[j].qq;
    }
    if (aa <= 0) return false;
    const uint16_t bits = to_half(xa / aa);
    if (bits == choice_.d) return false;
    choice_.d = bits;
    return true;
  }

  const float* x_;
  const float* weights_;
  ScaledSums sums_[kCount];
  Choice choice_;
};

}  // namespace crest::tensor::detail
