#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/panel_dots.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

struct Avx512 : panel::PairDots<panel::Vector512> {
  static constexpr int kPlainTile = 12;  // 24 sums, 2 weights, 1 activation
  template <bool>
  static constexpr int tile() {
    return 6;  // 12 sums of 16 bits, 12 of 32, 2 weights, 1 activation, products
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
