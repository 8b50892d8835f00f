#pragma once

#include "ops/registry.h"
#include "ops/views.h"
#include "tensor/dtype.h"

namespace crest::ops {

/// K or V of one layer: pages of page_size tokens, laid out [pages, kv_heads, page_size, head_dim].
/// dtype: kF32, kF16, kBF16, or kI8 with one fp32 scale per token and head ([pages, kv_heads, page_size]; value =
/// q*scale).
struct KvPool {
  tensor::DType dtype = tensor::DType::kF32;
  int64_t pages = 0;
  int64_t page_size = 0;  // tokens, a multiple of 16
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  std::byte* data = nullptr;
  float* scales = nullptr;  // kI8 only

  int64_t element_bytes() const;
  /// Bytes of data, and number of scales (0 unless kI8).
  int64_t data_bytes() const { return pages * kv_heads * page_size * head_dim * element_bytes(); }
  int64_t scale_count() const { return dtype == tensor::DType::kI8 ? pages * kv_heads * page_size : 0; }
  /// Index of a (page, head, slot) vector, in vectors.
  int64_t vector_index(int64_t page, int64_t head, int64_t slot) const {
    return (page * kv_heads + head) * page_size + slot;
  }
};
/// Refuses other types, page sizes and sizes whose product overflows.
Status check(const KvPool& pool);

/// Stores fp32 vectors. f16 and bf16 round to nearest even (f16 saturates to ±65504 instead of becoming infinite);
/// int8: scale = max|x| / 127, q = round half to even(x / scale). Other pages are not touched.
struct KvWriteProblem {
  int64_t tokens = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  tensor::DType dtype = tensor::DType::kF32;
};
struct KvWriteArgs {
  HeadsView src{};  // [tokens, kv_heads, head_dim]
  const KvPool* pool = nullptr;
  const int64_t* slot_mapping = nullptr;  // [tokens]: page * page_size + offset; -1 skips the token
};
Status check(const KvWriteProblem& problem, const KvWriteArgs& args);
Status kv_write(const KvWriteProblem& problem, const KvWriteArgs& args, Context& context);
const Operator<KvWriteProblem, KvWriteArgs>& kv_write_operator();

/// Reads vectors back as fp32 (snapshots to a file, tests).
struct KvReadArgs {
  const KvPool* pool = nullptr;
  const int64_t* slot_mapping = nullptr;  // [tokens]; -1 gives zeros
  MutableHeadsView dst{};                 // [tokens, kv_heads, head_dim]
};
Status check(const KvWriteProblem& problem, const KvReadArgs& args);
Status kv_read(const KvWriteProblem& problem, const KvReadArgs& args, Context& context);
const Operator<KvWriteProblem, KvReadArgs>& kv_read_operator();

}  // namespace crest::ops
