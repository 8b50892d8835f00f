#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/blocks.h"
#include "tensor/half.h"
#include "tensor/pack.h"
#include "tensor/quantize_affine.h"
#include "tensor/quantize_kernels.h"

// Q2_K, Q4_K, Q5_K: y = d * scale_j * q - dmin * minimum_j with integer scale_j and minimum_j per sub-block.
//
// 1. Each sub-block alone: best real-valued scale and minimum (search_affine).
// 2. d and dmin from a grid, by a quadratic model: with codes fixed, a sub-block's error is a quadratic form of its
//    scale and minimum, so the two are rounded jointly, not one by one.
// 3. Codes, scale_j and minimum_j are chosen again with the rounded d and dmin by exact errors; d and dmin are solved
//    by least squares; repeated while the exact error falls.
namespace crest::tensor::detail {
namespace {

template <int kSub, int kMaxCode, int kMaxScale>
class AffineSuperBlock {
 public:
  static constexpr int kCount = kSuperBlock / kSub;

  AffineSuperBlock(const float* x, const float* weights, const AffineSearch& search) : x_(x), weights_(weights) {
    for (int j = 0; j < kCount; ++j) {
      fits_[j] = search_affine<kSub>(x + kSub * j, weights + kSub * j, kMaxCode, true, search, sums_[j]);
    }
  }

  void solve() {
    if (!choose_steps()) return;
    double best = std::numeric_limits<double>::infinity();
    Choice choice = choice_;
    for (int round = 0; round < 4; ++round) {
      const double error = choose_integers();
      if (!(error < best)) break;
      best = error;
      choice = choice_;
      if (!solve_steps()) break;
    }
    choice_ = choice;
  }

  uint16_t d() const { return choice_.d; }
  uint16_t dmin() const { return choice_.dmin; }
  int scale(int j) const { return choice_.scale[j]; }
  int minimum(int j) const { return choice_.minimum[j]; }

  void codes(uint8_t* out) const {
    for (int j = 0; j < kCount; ++j) {
      const float scale = f16_to_f32(choice_.d) * static_cast<float>(choice_.scale[j]);
      const float minimum = f16_to_f32(choice_.dmin) * static_cast<float>(choice_.minimum[j]);
      const float inverse = scale > 0 ? 1 / scale : 0;
      for (int i = kSub * j; i < kSub * (j + 1); i += 4) {
        const Lanes q = snap((load(x_ + i) + splat(minimum)) * splat(inverse), 0, kMaxCode);
        for (int k = 0; k < 4; ++k) out[i + k] = static_cast<uint8_t>(q[k]);
      }
    }
  }

 private:
  struct Choice {
    uint16_t d = 0;
    uint16_t dmin = 0;
    uint8_t scale[kCount] = {};
    uint8_t minimum[kCount] = {};
  };

  // Error of sub-block j with its present codes.
  double model(int j, double scale, double minimum) const {
    const AffineSums& s = sums_[j];
    return s.xx + scale * (scale * s.qq - 2.0 * s.xq) + minimum * (minimum * s.w + 2.0 * s.x - 2.0 * scale * s.q);
  }
  // Best minimum for a given scale and the present codes.
  double minimum_for(int j, double scale) const { return (scale * sums_[j].q - sums_[j].x) / sums_[j].w; }

  bool choose_steps() {
    double max_scale = 0;
    double max_minimum = 0;
    for (const AffineFit& f : fits_) {
      max_scale = std::max(max_scale, f.scale);
      max_minimum = std::max(max_minimum, -f.offset);
    }
    if (max_scale <= 0 && max_minimum <= 0) return false;
    double best = std::numeric_limits<double>::infinity();
    double best_d = 0;
    double best_dmin = 0;
    for (int a = -3; a <= 8; ++a) {
      const double d = max_scale / (kMaxScale - 0.25 * a * kGrid);
      for (int b = -2; b <= 4; ++b) {
        const double dmin = max_minimum / (kMaxScale - 0.5 * b * kGrid);
        double error = 0;
        for (int j = 0; j < kCount && error < best; ++j) error += model_error(j, d, dmin);
        if (error < best) {
          best = error;
          best_d = d;
          best_dmin = dmin;
        }
      }
    }
    choice_.d = f32_to_f16(static_cast<float>(best_d));
    choice_.dmin = f32_to_f16(static_cast<float>(best_dmin));
    return true;
  }

  double model_error(int j, double d, double dmin) const {
    double best = std::numeric_limits<double>::infinity();
    const double inverse_dmin = dmin > 0 ? 1 / dmin : 0;
    const int floor = d > 0 ? static_cast<int>(fits_[j].scale / d) : 0;
    for (int scale = floor; scale <= floor + 1; ++scale) {
      const double s = d * std::min(scale, kMaxScale);
      const int minimum = std::clamp(static_cast<int>(minimum_for(j, s) * inverse_dmin + 0.5), 0, kMaxScale);
      best = std::min(best, model(j, s, dmin * minimum));
    }
    return best;
  }

  // Integer scale and minimum of every sub-block for the present d and dmin; the sums then belong to their codes.
  double choose_integers() {
    const double d = f16_to_f32(choice_.d);
    const double dmin = f16_to_f32(choice_.dmin);
    double total = 0;
    for (int j = 0; j < kCount; ++j) {
      double best = std::numeric_limits<double>::infinity();
      AffineSums best_sums;
      const AffineSums start = sums_[j];
      const int middle = d > 0 ? static_cast<int>(std::min(fits_[j].scale / d + 0.5, double{kMaxScale})) : 0;
      for (int scale = std::max(middle - kReach, 0); scale <= std::min(middle + kReach, kMaxScale); ++scale) {
        sums_[j] = start;
        const double target = dmin > 0 ? minimum_for(j, d * scale) / dmin : 0;
        const int floor = std::clamp(static_cast<int>(target), 0, kMaxScale);
        for (int minimum = floor; minimum <= std::min(floor + 1, kMaxScale); ++minimum) {
          const double error = exact(j, d * scale, dmin * minimum);
          if (error < best) {
            best = error;
            best_sums = sums_[j];
            choice_.scale[j] = static_cast<uint8_t>(scale);
            choice_.minimum[j] = static_cast<uint8_t>(minimum);
          }
        }
      }
      sums_[j] = best_sums;
      total += best;
    }
    return total;
  }

  double exact(int j, double scale, double minimum) {
    const float inverse = scale > 0 ? static_cast<float>(1 / scale) : 0;
    sum_codes<kSub>(x_ + kSub * j, weights_ + kSub * j, inverse, static_cast<float>(-minimum), kMaxCode, sums_[j]);
    return model(j, scale, minimum);
  }

  // d and dmin by least squares over the super-block, codes and integers fixed. False when nothing changes.
  bool solve_steps() {
    double aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
    for (int j = 0; j < kCount; ++j) {
      const double a = choice_.scale[j];
      const double b = choice_.minimum[j];
      aa += a * a * sums_[j].qq;
      ab += a * b * sums_[j].q;
      bb += b * b * sums_[j].w;
      ax += a * sums_[j].xq;
      bx += b * sums_[j].x;
    }
    const double determinant = aa * bb - ab * ab;
    double d = aa > 0 ? ax / aa : 0;
    double dmin = 0;
    if (determinant > 1e-9 * aa * bb) {
      d = (ax * bb - ab * bx) / determinant;
      dmin = (ab * ax - aa * bx) / determinant;
    }
    if (d <= 0 || dmin < 0) return false;
    const uint16_t d_bits = f32_to_f16(static_cast<float>(d));
    const uint16_t dmin_bits = f32_to_f16(static_cast<float>(dmin));
    if (d_bits == choice_.d && dmin_bits == choice_.dmin) return false;
    choice_.d = d_bits;
    choice_.dmin = dmin_bits;
    for (int j = 0; j < kCount; ++j) fit(sums_[j], true, fits_[j]);
    return true;
  }

  static constexpr double kGrid = kMaxScale > 15 ? 1 : 0.5;
  static constexpr int kReach = 1;
  const float* x_;
  const float* weights_;
  AffineFit fits_[kCount];
  AffineSums sums_[kCount];
  Choice choice_;
};

template <typename Block, typename Write>
void each_block(const float* x, const float* weights, void* dst, int64_t n, Write write) {
  auto* blocks = static_cast<Block*>(dst);
  for (int64_t b = 0; b < n / kSuperBlock; ++b) write(x + b * kSuperBlock, weights + b * kSuperBlock, blocks[b]);
}

constexpr AffineSearch kSearch2{-0.3f, 0.1f, 12};
constexpr AffineSearch kSearch4{-0.6f, 0.2f, 14};
constexpr AffineSearch kSearch5{-0.6f, 0.2f, 14};

template <typename Block, typename Solver>
void write_scales(const Solver& solver, Block& block) {
  block.d = solver.d();
  block.dmin = solver.dmin();
  std::memset(block.scales, 0, sizeof(block.scales));
  for (int j = 0; j < Solver::kCount; ++j) {
    pack_scale_min(block.scales, j, {static_cast<uint8_t>(solver.scale(j)), static_cast<uint8_t>(solver.minimum(j))});
  }
}

}  // namespace

void quantize_q2_k(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockQ2_K>(x, weights, dst, n, [](const float* values, const float* w, BlockQ2_K& block) {
    AffineSuperBlock<16, 3, 15> solver(values, w, kSearch2);
    solver.solve();
    block.d = solver.d();
    block.dmin = solver.dmin();
    for (int j = 0; j < 16; ++j) block.scales[j] = static_cast<uint8_t>(solver.scale(j) | solver.minimum(j) << 4);
    uint8_t codes[kSuperBlock];
    solver.codes(codes);
    pack_pairs(codes, block.qs);
  });
}

void quantize_q4_k(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockQ4_K>(x, weights, dst, n, [](const float* values, const float* w, BlockQ4_K& block) {
    AffineSuperBlock<32, 15, 63> solver(values, w, kSearch4);
    solver.solve();
    write_scales(solver, block);
    uint8_t codes[kSuperBlock];
    solver.codes(codes);
    pack_k_nibbles(codes, block.qs);
  });
}

void quantize_q5_k(const float* x, const float* weights, void* dst, int64_t n) {
  each_block<BlockQ5_K>(x, weights, dst, n, [](const float* values, const float* w, BlockQ5_K& block) {
    AffineSuperBlock<32, 31, 63> solver(values, w, kSearch5);
    solver.solve();
    write_scales(solver, block);
    uint8_t codes[kSuperBlock];
    solver.codes(codes);
    pack_k_nibbles(codes, block.qs);
    pack_bit_planes(codes, 4, block.qh);
  });
}

}  // namespace crest::tensor::detail
