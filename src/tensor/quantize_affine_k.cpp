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
      const AffineFit f = search_affine<kSub, kMaxCode, true>(x + kSub * j, weights + kSub * j, search, sums_[j]);
      scale_[j] = f.scale;
      minimum_[j] = -f.offset;
    }
  }

  void solve() {
    if (!choose_steps()) return;
    double best = std::numeric_limits<double>::infinity();
    Choice choice = choice_;
    for (int round = 0; round < kRounds; ++round) {
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
  float minimum_for(int j, float scale) const { return (scale * sums_[j].q - sums_[j].x) / sums_[j].w; }

  bool choose_steps() {
    const float max_scale = *std::max_element(scale_, scale_ + kCount);
    const float max_minimum = *std::max_element(minimum_, minimum_ + kCount);
    if (max_scale <= 0 && max_minimum <= 0) return false;
    float best = std::numeric_limits<float>::infinity();
    const Model quadratic(*this);
    for (int a = kFirstScale; a <= kLastScale; ++a) {
      const float d = max_scale / (kMaxScale - kStepScale * static_cast<float>(a));
      for (int b = kFirstMinimum; b <= kLastMinimum; ++b) {
        const float dmin = max_minimum / (kMaxScale - kStepMinimum * static_cast<float>(b));
        const float error = quadratic.error(d, dmin);
        if (error < best) {
          best = error;
          choice_.d = to_half(d);
          choice_.dmin = to_half(dmin);
        }
      }
    }
    return true;
  }

  // The quadratic forms of all sub-blocks around their best scale and minimum, four sub-blocks at a time.
  struct Model {
    explicit Model(const AffineSuperBlock& block) {
      for (int j = 0; j < kCount; ++j) {
        const AffineSums& s = block.sums_[j];
        w[j] = s.w;
        mean[j] = s.q / s.w;
        spread[j] = std::max(s.qq - s.q * mean[j], 0.0f);
        scale[j] = block.scale_[j];
        minimum[j] = scale[j] > 0 ? block.minimum_for(j, scale[j]) : block.minimum_[j];
      }
    }
    float error(float d, float dmin) const {
      const float inverse_d = d > 0 ? 1 / d : 0;
      const float inverse_dmin = dmin > 0 ? 1 / dmin : 0;
      Lanes total{};
      for (int j = 0; j < kCount; j += 4) {
        const Lanes target = load(scale + j) * splat(inverse_d);
        const Lanes nearest = snap(target, 0, kMaxScale);
        const Lanes side = target < nearest ? splat(-1) : splat(1);
        Lanes best = one(j, nearest, d, dmin, inverse_dmin);
        best = min(best, one(j, max(min(nearest + side, splat(kMaxScale)), Lanes{}), d, dmin, inverse_dmin));
        total += best;
      }
      return sum(total);
    }
    // Written as a sum of squares: the minimum's distance from its best value for this scale, and the scale's.
    Lanes one(int j, Lanes integer, float d, float dmin, float inverse_dmin) const {
      const Lanes off = integer * splat(d) - load(scale + j);
      const Lanes wanted = load(minimum + j) + load(mean + j) * off;
      const Lanes left = snap(wanted * splat(inverse_dmin), 0, kMaxScale) * splat(dmin) - wanted;
      return load(spread + j) * off * off + load(w + j) * left * left;
    }
    float w[kCount], mean[kCount], spread[kCount], scale[kCount], minimum[kCount];
  };

  // Integer scale and minimum of every sub-block for the present d and dmin; the sums then belong to their codes.
  double choose_integers() {
    const float d = f16_to_f32(choice_.d);
    const float dmin = f16_to_f32(choice_.dmin);
    double total = 0;
    for (int j = 0; j < kCount; ++j) {
      double best = std::numeric_limits<double>::infinity();
      AffineSums best_sums;
      const AffineSums start = sums_[j];
      const float target = d > 0 ? std::min(scale_[j] / d, float{kMaxScale}) : 0;
      const int middle = static_cast<int>(target + 0.5f);
      for (int scale = std::max(middle - 1, 0); scale <= std::min(middle + 1, kMaxScale); ++scale) {
        sums_[j] = start;
        const float wanted = dmin > 0 ? minimum_for(j, d * static_cast<float>(scale)) / dmin : 0;
        const int floor = static_cast<int>(std::clamp(wanted, 0.0f, float{kMaxScale}));
        for (int minimum = floor; minimum <= std::min(floor + 1, kMaxScale); ++minimum) {
          const double error = exact(j, d * static_cast<float>(scale), dmin * static_cast<float>(minimum));
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

  double exact(int j, float scale, float minimum) {
    sum_codes<kSub, kMaxCode>(x_ + kSub * j, weights_ + kSub * j, scale > 0 ? 1 / scale : 0, -minimum, sums_[j]);
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
    const uint16_t d_bits = to_half(d);
    const uint16_t dmin_bits = to_half(dmin);
    if (d_bits == choice_.d && dmin_bits == choice_.dmin) return false;
    choice_.d = d_bits;
    choice_.dmin = dmin_bits;
    for (int j = 0; j < kCount; ++j) {
      Explained explained;
      if (!explain<true>(sums_[j], explained)) continue;
      scale_[j] = explained.fit(sums_[j]).scale;
    }
    return true;
  }

  // How far d and dmin may lie from what maps the largest scale and minimum to kMaxScale.
  static constexpr bool kFine = kMaxScale > 15;
  static constexpr int kFirstScale = -2, kLastScale = 12;
  static constexpr int kFirstMinimum = -2, kLastMinimum = 7;
  static constexpr float kStepScale = kFine ? 0.5f : 0.25f;
  static constexpr float kStepMinimum = kFine ? 1.0f : 0.5f;
  static constexpr int kRounds = 3;

  const float* x_;
  const float* weights_;
  AffineSums sums_[kCount];
  float scale_[kCount];
  float minimum_[kCount];
  Choice choice_;
};

template <typename Block, typename Write>
void each_block(const float* x, const float* weights, void* dst, int64_t n, Write write) {
  auto* blocks = static_cast<Block*>(dst);
  for (int64_t b = 0; b < n / kSuperBlock; ++b) write(x + b * kSuperBlock, weights + b * kSuperBlock, blocks[b]);
}

constexpr AffineSearch kSearch2{0.0f, 0.1f, 9};
constexpr AffineSearch kSearch4{-1.5f, 0.3f, 11};
constexpr AffineSearch kSearch5{-3.0f, 0.5f, 11};

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
