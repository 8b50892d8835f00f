#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_dots.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

struct Avx2 : panel::PairDots<panel::Vector256> {
  static constexpr int kPlainTile = 6;  // 12 sums, 2 weights, 1 activation: 15 of 16 registers
  /// kWide: 32-bit sums live beside the 16-bit ones.
  template <bool kWide>
  static constexpr int tile() {
    return kWide ? 3 : 4;
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
