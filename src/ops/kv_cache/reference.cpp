#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/checks.h"
#include "ops/kv_cache/internal.h"
#include "ops/partition.h"
#include "tensor/half.h"

namespace crest::ops {
namespace {

using tensor::DType;

uint16_t saturated_f16(float value) {
  constexpr float kLargest = 65504.0f;
  return tensor::f32_to_f16(std::isnan(value) ? value : std::clamp(value, -kLargest, kLargest));
}

/// A vector with a value that is not finite gets a NaN scale: it reads back as NaN, so that the fault stays visible.
void write_int8(const float* x, int64_t n, int8_t* quants, float* scale) {
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  *scale = finite ? largest / 127.0f : std::numeric_limits<float>::quiet_NaN();
  if (!finite || *scale == 0) {
    std::memset(quants, 0, static_cast<size_t>(n));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    quants[i] = static_cast<int8_t>(std::clamp(std::nearbyint(x[i] / *scale), -127.0f, 127.0f));
  }
}

void write_vector(const KvPool& pool, int64_t index, const float* x) {
  const int64_t n = pool.head_dim;
  std::byte* target = pool.data + index * n * pool.element_bytes();
  switch (pool.dtype) {
    case DType::kF32:
      std::memcpy(target, x, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::kF16: {
      auto* halves = reinterpret_cast<uint16_t*>(target);
      for (int64_t i = 0; i < n; ++i) halves[i] = saturated_f16(x[i]);
      return;
    }
    case DType::kBF16: {
      auto* halves = reinterpret_cast<uint16_t*>(target);
      for (int64_t i = 0; i < n; ++i) halves[i] = tensor::f32_to_bf16(x[i]);
      return;
    }
    default:
      write_int8(x, n, reinterpret_cast<int8_t*>(target), pool.scales + index);
  }
}

Status launch_write(const KvWriteProblem& p, const KvWriteArgs& a, Launch& launch) {
  const HeadsView src = resolve(a.src, p.kv_heads, p.head_dim);
  const KvPool& pool = *a.pool;
  launch.pool.parallel_for(p.tokens * p.kv_heads, row_grain(2 * p.head_dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row / p.kv_heads;
      const int64_t head = row % p.kv_heads;
      const int64_t slot = a.slot_mapping[token];
      if (slot < 0) continue;
      write_vector(pool, pool.vector_index(slot / pool.page_size, head, slot % pool.page_size),
                   src.data + token * src.token_stride + head * src.head_stride);
    }
  });
  return {};
}

Status launch_read(const KvWriteProblem& p, const KvReadArgs& a, Launch& launch) {
  const MutableHeadsView dst = resolve(a.dst, p.kv_heads, p.head_dim);
  const KvPool& pool = *a.pool;
  launch.pool.parallel_for(p.tokens * p.kv_heads, row_grain(2 * p.head_dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row / p.kv_heads;
      const int64_t head = row % p.kv_heads;
      const int64_t slot = a.slot_mapping[token];
      float* target = dst.data + token * dst.token_stride + head * dst.head_stride;
      if (slot < 0) {
        std::fill(target, target + p.head_dim, 0.0f);
        continue;
      }
      const int64_t index = pool.vector_index(slot / pool.page_size, head, slot % pool.page_size);
      const float* source = read_vector(pool, index, target);
      if (source != target) std::memcpy(target, source, static_cast<size_t>(p.head_dim) * sizeof(float));
    }
  });
  return {};
}

}  // namespace

const float* read_vector(const KvPool& pool, int64_t index, float* buffer) {
  const int64_t n = pool.head_dim;
  const std::byte* source = pool.data + index * n * pool.element_bytes();
  switch (pool.dtype) {
    case DType::kF32:
      return reinterpret_cast<const float*>(source);
    case DType::kF16: {
      const auto* halves = reinterpret_cast<const uint16_t*>(source);
      for (int64_t i = 0; i < n; ++i) buffer[i] = tensor::f16_to_f32(halves[i]);
      return buffer;
    }
    case DType::kBF16: {
      const auto* halves = reinterpret_cast<const uint16_t*>(source);
      for (int64_t i = 0; i < n; ++i) buffer[i] = tensor::bf16_to_f32(halves[i]);
      return buffer;
    }
    default: {
      const auto* quants = reinterpret_cast<const int8_t*>(source);
      const float scale = pool.scales[index];
      for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<float>(quants[i]) * scale;
      return buffer;
    }
  }
}

Kernel<KvWriteProblem, KvWriteArgs> kv_write_reference() { return {.name = "reference", .launch = launch_write}; }
Kernel<KvWriteProblem, KvReadArgs> kv_read_reference() { return {.name = "reference", .launch = launch_read}; }

}  // namespace crest::ops
