#include <cstring>
#include <limits>

#include "ops/checks.h"
#include "ops/kv_cache/internal.h"
#include "ops/partition.h"
#include "ops/simd.h"

namespace crest::ops {
namespace {

using tensor::DType;
using V = VecAvx2;

void write_f16(const float* x, int64_t n, uint16_t* target) {
  for (int64_t i = 0; i < n; i += V::kLanes) {
    // Constants come first: min and max then keep a NaN.
    const auto value = V::max(V::set(-65504.0f), V::min(V::set(65504.0f), V::load(x + i)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
}

void write_bf16(const float* x, int64_t n, uint16_t* target) {
  for (int64_t i = 0; i < n; i += V::kLanes) {
    const auto value = V::load(x + i);
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
    const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
    const __m256i halves = _mm256_srli_epi32(chosen, 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(halves, halves), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i), _mm256_castsi256_si128(packed));
  }
}

void write_int8(const float* x, int64_t n, int8_t* target, float* scale) {
  // As integers, magnitudes order like the floats, with infinity and NaN on top.
  __m256i largest = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += V::kLanes) {
    const __m256i magnitude = _mm256_and_si256(_mm256_castps_si256(V::load(x + i)), _mm256_set1_epi32(0x7fffffff));
    largest = _mm256_max_epi32(largest, magnitude);
  }
  alignas(32) int32_t lanes[V::kLanes];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), largest);
  int32_t top = 0;
  for (const int32_t lane : lanes) top = lane > top ? lane : top;
  float max;
  std::memcpy(&max, &top, sizeof max);
  const bool finite = top < 0x7f800000;
  *scale = finite ? max / 127.0f : std::numeric_limits<float>::quiet_NaN();
  if (!finite || *scale == 0) {
    std::memset(target, 0, static_cast<size_t>(n));
    return;
  }
  for (int64_t i = 0; i < n; i += V::kLanes) {
    const auto q = V::div(V::load(x + i), V::set(*scale));
    const auto clamped = V::max(V::set(-127.0f), V::min(V::set(127.0f), q));
    const __m256i words = _mm256_cvtps_epi32(clamped);
    const __m256i shorts = _mm256_packs_epi32(words, words);
    const __m256i bytes = _mm256_packs_epi16(shorts, shorts);
    const int32_t low = _mm256_extract_epi32(bytes, 0), high = _mm256_extract_epi32(bytes, 4);
    std::memcpy(target + i, &low, 4);
    std::memcpy(target + i + 4, &high, 4);
  }
}

bool supports(const KvWriteProblem& p) { return p.head_dim % V::kLanes == 0; }

Status launch(const KvWriteProblem& p, const KvWriteArgs& a, Launch& launch) {
  const HeadsView src = resolve(a.src, p.kv_heads, p.head_dim);
  const KvPool& pool = *a.pool;
  launch.pool.parallel_for(p.tokens * p.kv_heads, row_grain(p.head_dim / 2), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t token = row / p.kv_heads;
      const int64_t head = row % p.kv_heads;
      const int64_t slot = a.slot_mapping[token];
      if (slot < 0) continue;
      const int64_t index = pool.vector_index(slot / pool.page_size, head, slot % pool.page_size);
      const float* x = src.data + token * src.token_stride + head * src.head_stride;
      std::byte* target = pool.data + index * p.head_dim * pool.element_bytes();
      switch (p.dtype) {
        case DType::kF16:
          write_f16(x, p.head_dim, reinterpret_cast<uint16_t*>(target));
          break;
        case DType::kBF16:
          write_bf16(x, p.head_dim, reinterpret_cast<uint16_t*>(target));
          break;
        case DType::kI8:
          write_int8(x, p.head_dim, reinterpret_cast<int8_t*>(target), pool.scales + index);
          break;
        default:
          std::memcpy(target, x, static_cast<size_t>(p.head_dim) * sizeof(float));
      }
    }
  });
  return {};
}

}  // namespace

constinit const Kernel<KvWriteProblem, KvWriteArgs> kKvWriteAvx2 = {
    .name = "avx2", .arch = "avx2", .priority = 10, .supports = supports, .launch = launch};

}  // namespace crest::ops
