#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

/// 16 lanes with the byte dot product: u8 x s8, four at a time, straight to 32 bits.
struct Avx512Vnni {
  using I = __m512i;
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr bool kSplitBytes = false;
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

  template <int kSteps, int, bool, int T>
  [[gnu::always_inline]] static void dots(const panel::QuantBlock& block, int sub, const int8_t* const* x,
                                          I (&out)[1][T]) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) out[0][t] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int i = 0; i < kSteps; ++i) {
      const I w = _mm512_load_si512(block.quants[0][sub * kSteps + i]);
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        int32_t four;
        std::memcpy(&four, x[t] + 4 * (kSteps * sub + i), 4);
        out[0][t] = _mm512_dpbusd_epi32(out[0][t], w, _mm512_set1_epi32(four));
      }
    }
  }
};

}  // namespace

#define CREST_LINEAR_ISA Avx512Vnni
#define CREST_LINEAR_ARCH "avx512_vnni"
#define CREST_LINEAR_PRIORITY 40
constinit const LinearTable kLinearAvx512Vnni =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
