#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_dots.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

/// The byte dot product of client processors.
struct VnniVector256 : panel::Vector256 {
  static I byte_dot(I sum, I weights, I activations) { return _mm256_dpbusd_avx_epi32(sum, weights, activations); }
};

struct AvxVnni : panel::QuadDots<VnniVector256> {
  static constexpr int kPlainTile = 6;
  template <bool>
  static constexpr int tile() {
    return 6;  // 12 sums, 2 weights, 1 activation
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
