#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

using panel::unroll;

/// 16 lanes. Byte products as in the AVX2 kernels, twice as wide.
struct Avx512 : panel::Vector512 {
  static constexpr bool kByteDots = false;
  static constexpr bool kSigned = false;
  static constexpr int kPlainTile = 12;  // 24 sums, 2 weights, 1 activation
  template <bool>
  static constexpr int tile() {
    return 6;  // 12 sums of 16 bits, 12 of 32, 2 weights, 1 activation, products
  }

  template <int kPlane, int kSteps, int kFlush, int kVectors, int T, typename Source>
  [[gnu::always_inline]] static void plane(const Source& source, const int8_t* const* x, int64_t column, I weight,
                                           I (&out)[kVectors][T]) {
    unroll<kSteps / kFlush>([&]<int kPart>() __attribute__((always_inline)) {
      I sum[kVectors][T];
      unroll<kFlush>([&]<int i>() __attribute__((always_inline)) {
        constexpr int kStep = kPart * kFlush + i;
        I w[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) w[v] = source.template get<kStep, kPlane>(v);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const I b = broadcast4(x[t] + column + 4 * kStep);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) {
            const I product = _mm512_maddubs_epi16(w[v], b);
            sum[v][t] = i == 0 ? product : _mm512_add_epi16(sum[v][t], product);
            // NOTE: without this g++ gathers all products first and adds them as a tree, out of registers.
            asm("" : "+v"(sum[v][t]));
          }
        }
      });
      constexpr bool kFirst = kPlane == 0 && kPart == 0;
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const I wide = _mm512_madd_epi16(sum[v][t], weight);
          out[v][t] = kFirst ? wide : _mm512_add_epi32(out[v][t], wide);
        }
      }
    });
  }

  template <int kSteps, int kFlush, bool kTwoPlanes, int kVectors, int T, typename Source>
  [[gnu::always_inline]] static void dots(const Source& source, const int8_t* const* x, int64_t column,
                                          I (&out)[kVectors][T]) {
    plane<0, kSteps, kFlush>(source, x, column, _mm512_set1_epi16(1), out);
    if constexpr (kTwoPlanes) plane<1, kSteps, kFlush>(source, x, column, _mm512_set1_epi16(16), out);
  }
};

template <tensor::DType kType>
constexpr auto kernel = panel::kernel<Avx512, kType>;

}  // namespace

#define CREST_LINEAR_KERNEL kernel
#define CREST_LINEAR_ARCH "avx512"
#define CREST_LINEAR_PRIORITY 30
constinit const LinearTable kLinearAvx512 =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
