#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

/// 8 lanes. Without a byte dot product: u8 x s8 pairs go to 16 bits, several steps are added there (as many as fit),
/// and pairs of those to 32 bits. 8-bit quants would overflow the first step: they are split into two planes of 4 bits.
struct Avx2 {
  using I = __m256i;
  using F = __m256;
  static constexpr int kLanes = 8;
  static constexpr bool kSplitBytes = true;
  static constexpr int kPlainTile = 6;  // 12 sums, 2 weights, 1 activation: 15 of 16 registers
  /// kWide: 32-bit sums live beside the 16-bit ones.
  template <bool kWide>
  static constexpr int tile() {
    return kWide ? 2 : 3;
  }

  static F loadf(const float* p) { return _mm256_load_ps(p); }
  static void storef(float* p, F v) { _mm256_store_ps(p, v); }
  static F broadcastf(const float* p) { return _mm256_broadcast_ss(p); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F to_float(I v) { return _mm256_cvtepi32_ps(v); }

  template <int kSteps, int kFlush, int T>
  [[gnu::always_inline]] static void plane(const uint8_t (*steps)[panel::kStepBytes], const int8_t* const* x,
                                           int column, I weight, bool first, I (&out)[2][T]) {
#pragma GCC unroll 4
    for (int group = 0; group < kSteps / kFlush; ++group) {
      I sum[2][T];
#pragma GCC unroll 8
      for (int i = 0; i < kFlush; ++i) {
        const int step = group * kFlush + i;
        const I w0 = _mm256_load_si256(reinterpret_cast<const I*>(steps[step]));
        const I w1 = _mm256_load_si256(reinterpret_cast<const I*>(steps[step] + 32));
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          int32_t four;
          std::memcpy(&four, x[t] + column + 4 * step, 4);
          const I b = _mm256_set1_epi32(four);
          const I p0 = _mm256_maddubs_epi16(w0, b), p1 = _mm256_maddubs_epi16(w1, b);
          sum[0][t] = i == 0 ? p0 : _mm256_add_epi16(sum[0][t], p0);
          sum[1][t] = i == 0 ? p1 : _mm256_add_epi16(sum[1][t], p1);
          // NOTE: without this g++ gathers all products first and adds them as a tree, out of registers.
          asm("" : "+x"(sum[0][t]), "+x"(sum[1][t]));
        }
      }
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          const I wide = _mm256_madd_epi16(sum[v][t], weight);
          out[v][t] = first && group == 0 ? wide : _mm256_add_epi32(out[v][t], wide);
        }
      }
    }
  }

  template <int kSteps, int kFlush, bool kTwoPlanes, int T>
  [[gnu::always_inline]] static void dots(const panel::QuantBlock& block, int sub, const int8_t* const* x,
                                          I (&out)[2][T]) {
    plane<kSteps, kFlush, T>(block.quants[0] + sub * kSteps, x, 4 * kSteps * sub, _mm256_set1_epi16(1), true, out);
    if constexpr (kTwoPlanes)
      plane<kSteps, kFlush, T>(block.quants[1] + sub * kSteps, x, 4 * kSteps * sub, _mm256_set1_epi16(16), false, out);
  }
};

}  // namespace

#define CREST_LINEAR_ISA Avx2
#define CREST_LINEAR_ARCH "avx2"
#define CREST_LINEAR_PRIORITY 10
constinit const LinearTable kLinearAvx2 =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
