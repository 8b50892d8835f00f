#pragma once

#include "ops/kv_cache/kv_cache.h"

namespace crest::ops {

Kernel<KvWriteProblem, KvWriteArgs> kv_write_reference();
Kernel<KvWriteProblem, KvReadArgs> kv_read_reference();

// NOTE: a constant, because code of its file must not run before the processor was looked at.
extern const Kernel<KvWriteProblem, KvWriteArgs> kKvWriteAvx2;

/// One stored vector as fp32: index as in KvPool::vector_index. Returns the pool's own memory when it is fp32, else
/// buffer.
const float* read_vector(const KvPool& pool, int64_t index, float* buffer);

}  // namespace crest::ops
