#include "ops/attention/flash_kernel.h"

namespace crest::ops {

constinit const Kernel<AttentionProblem, AttentionArgs> kAttentionAvx2 = flash_kernel<VecAvx2>("avx2", "avx2", 10);

}  // namespace crest::ops
