#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

/// 8 lanes with the byte dot product of client processors: u8 x s8, four at a time, straight to 32 bits.
struct AvxVnni {
  using I = __m256i;
  using F = __m256;
  static constexpr int kLanes = 8;
  static constexpr bool kSplitBytes = false;
  static constexpr int kPlainTile = 6;
  template <bool kWide>
  static constexpr int tile() {
    return 3;
  }

  static F loadf(const float* p) { return _mm256_load_ps(p); }
  static void storef(float* p, F v) { _mm256_store_ps(p, v); }
  static F broadcastf(const float* p) { return _mm256_broadcast_ss(p); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F to_float(I v) { return _mm256_cvtepi32_ps(v); }

  template <int kSteps, int, bool, int T>
  [[gnu::always_inline]] static void dots(const panel::QuantBlock& block, int sub, const int8_t* const* x,
                                          I (&out)[2][T]) {
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) out[0][t] = out[1][t] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = 0; i < kSteps; ++i) {
      const uint8_t* step = block.quants[0][sub * kSteps + i];
      const I w0 = _mm256_load_si256(reinterpret_cast<const I*>(step)),
              w1 = _mm256_load_si256(reinterpret_cast<const I*>(step + 32));
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
        int32_t four;
        std::memcpy(&four, x[t] + 4 * (kSteps * sub + i), 4);
        const I b = _mm256_set1_epi32(four);
        out[0][t] = _mm256_dpbusd_avx_epi32(out[0][t], w0, b);
        out[1][t] = _mm256_dpbusd_avx_epi32(out[1][t], w1, b);
      }
    }
  }
};

}  // namespace

#define CREST_LINEAR_ISA AvxVnni
#define CREST_LINEAR_ARCH "avx_vnni"
#define CREST_LINEAR_PRIORITY 20
constinit const LinearTable kLinearAvxVnni =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
