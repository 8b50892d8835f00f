#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

using panel::unroll;

/// 8 lanes with the byte dot product of client processors: u8 x s8, four at a time, straight to 32 bits.
struct AvxVnni : panel::Vector256 {
  static constexpr bool kByteDots = true;
  static constexpr bool kSigned = false;
  static constexpr int kPlainTile = 6;
  template <bool>
  static constexpr int tile() {
    return 6;  // 12 sums, 2 weights, 1 activation
  }

  template <int kSteps, int, bool, int kVectors, int T, typename Source>
  [[gnu::always_inline]] static void dots(const Source& source, const int8_t* const* x, int64_t column,
                                          I (&out)[kVectors][T]) {
    unroll<kSteps>([&]<int i>() __attribute__((always_inline)) {
      I w[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) w[v] = source.template get<i, 0>(v);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        const I b = broadcast4(x[t] + column + 4 * i);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) out[v][t] = _mm256_dpbusd_avx_epi32(out[v][t], w[v], b);
      }
    });
  }
};

template <tensor::DType kType>
constexpr auto kernel = panel::kernel<AvxVnni, kType>;

}  // namespace

#define CREST_LINEAR_KERNEL kernel
#define CREST_LINEAR_ARCH "avx_vnni"
#define CREST_LINEAR_PRIORITY 20
constinit const LinearTable kLinearAvxVnni =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
