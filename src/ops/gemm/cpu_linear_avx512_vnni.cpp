#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/isa_avx512_vnni.h"

namespace crest::ops {
namespace {

template <tensor::DType kType>
constexpr auto kernel = panel::kernel<Avx512Vnni, kType>;

}  // namespace

#define CREST_LINEAR_KERNEL kernel
#define CREST_LINEAR_ARCH "avx512_vnni"
#define CREST_LINEAR_PRIORITY 40
constinit const LinearTable kLinearAvx512Vnni =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
