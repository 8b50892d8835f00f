#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

/// 16 lanes. Byte products as in the AVX2 kernels, twice as wide.
struct Avx512 {
  using I = __m512i;
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr bool kSplitBytes = true;
  static constexpr int kPlainTile = 8;
  template <bool kWide>
  static constexpr int tile() {
    return 8;
  }

  static F loadf(const float* p) { return _mm512_load_ps(p); }
  static void storef(float* p, F v) { _mm512_store_ps(p, v); }
  static F broadcastf(const float* p) { return _mm512_set1_ps(*p); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F to_float(I v) { return _mm512_cvtepi32_ps(v); }

  template <int kSteps, int kFlush, int T>
  [[gnu::always_inline]] static void plane(const uint8_t (*steps)[panel::kStepBytes], const int8_t* const* x,
                                           int column, I weight, bool first, I (&out)[1][T]) {
#pragma GCC unroll 4
    for (int group = 0; group < kSteps / kFlush; ++group) {
      I sum[T];
#pragma GCC unroll 8
      for (int i = 0; i < kFlush; ++i) {
        const int step = group * kFlush + i;
        const I w = _mm512_load_si512(steps[step]);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          int32_t four;
          std::memcpy(&four, x[t] + column + 4 * step, 4);
          const I product = _mm512_maddubs_epi16(w, _mm512_set1_epi32(four));
          sum[t] = i == 0 ? product : _mm512_add_epi16(sum[t], product);
        }
      }
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        const I wide = _mm512_madd_epi16(sum[t], weight);
        out[0][t] = first && group == 0 ? wide : _mm512_add_epi32(out[0][t], wide);
      }
    }
  }

  template <int kSteps, int kFlush, bool kTwoPlanes, int T>
  [[gnu::always_inline]] static void dots(const panel::QuantBlock& block, int sub, const int8_t* const* x,
                                          I (&out)[1][T]) {
    plane<kSteps, kFlush, T>(block.quants[0] + sub * kSteps, x, 4 * kSteps * sub, _mm512_set1_epi16(1), true, out);
    if constexpr (kTwoPlanes)
      plane<kSteps, kFlush, T>(block.quants[1] + sub * kSteps, x, 4 * kSteps * sub, _mm512_set1_epi16(16), false, out);
  }
};

}  // namespace

#define CREST_LINEAR_ISA Avx512
#define CREST_LINEAR_ARCH "avx512"
#define CREST_LINEAR_PRIORITY 30
constinit const LinearTable kLinearAvx512 =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
