#include "ops/attention/flash_kernel.h"

namespace crest::ops {

constinit const Kernel<AttentionProblem, AttentionArgs> kAttentionAvx512 =
    flash_kernel<VecAvx512>("avx512", "avx512", 20);

}  // namespace crest::ops
