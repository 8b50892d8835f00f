#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

using panel::unroll;

/// 8 lanes. Without a byte dot product: u8 x s8 pairs go to 16 bits, several steps are added there (as many as fit),
/// and pairs of those to 32 bits. 8-bit quants would overflow the first step: they are split into two planes of 4 bits.
struct Avx2 : panel::Vector256 {
  static constexpr bool kByteDots = false;
  static constexpr bool kSigned = false;
  static constexpr int kPlainTile = 6;  // 12 sums, 2 weights, 1 activation: 15 of 16 registers
  /// kWide: 32-bit sums live beside the 16-bit ones.
  template <bool kWide>
  static constexpr int tile() {
    return kWide ? 3 : 4;
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
            const I product = _mm256_maddubs_epi16(w[v], b);
            sum[v][t] = i == 0 ? product : _mm256_add_epi16(sum[v][t], product);
            // NOTE: without this g++ gathers all products first and adds them as a tree, out of registers.
            asm("" : "+x"(sum[v][t]));
          }
        }
      });
      constexpr bool kFirst = kPlane == 0 && kPart == 0;
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const I wide = _mm256_madd_epi16(sum[v][t], weight);
          out[v][t] = kFirst ? wide : _mm256_add_epi32(out[v][t], wide);
        }
      }
    });
  }

  template <int kSteps, int kFlush, bool kTwoPlanes, int kVectors, int T, typename Source>
  [[gnu::always_inline]] static void dots(const Source& source, const int8_t* const* x, int64_t column,
                                          I (&out)[kVectors][T]) {
    plane<0, kSteps, kFlush>(source, x, column, _mm256_set1_epi16(1), out);
    if constexpr (kTwoPlanes) plane<1, kSteps, kFlush>(source, x, column, _mm256_set1_epi16(16), out);
  }
};

template <tensor::DType kType>
constexpr auto kernel = panel::kernel<Avx2, kType>;

}  // namespace

#define CREST_LINEAR_KERNEL kernel
#define CREST_LINEAR_ARCH "avx2"
#define CREST_LINEAR_PRIORITY 10
constinit const LinearTable kLinearAvx2 =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
