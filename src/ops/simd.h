#pragma once

// fp32 vectors of the CPU kernels, one struct an instruction set. Included only by files compiled for AVX2 or more;
// everything has internal linkage, so that no copy made for a newer processor is linked into older paths.

#include <immintrin.h>

#include <cstdint>

#include "tensor/dtype.h"

namespace crest::ops {
namespace {

struct VecAvx2 {
  using F = __m256;
  static constexpr int64_t kLanes = 8;
  static constexpr int kRegisters = 16;

  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F v) { _mm256_storeu_ps(p, v); }
  static F set(float x) { return _mm256_set1_ps(x); }
  static F broadcast(const float* p) { return _mm256_broadcast_ss(p); }
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  /// b where either is NaN.
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F round(F v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  /// value * 2^n for whole n from -126 to 127.
  static F scale(F value, F n) {
    const __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
    return _mm256_mul_ps(value, _mm256_castsi256_ps(exponent));
  }
  /// v where x >= limit (or x is NaN), else 0.
  static F keep_from(F v, F x, float limit) { return _mm256_and_ps(v, _mm256_cmp_ps(x, set(limit), _CMP_NLT_UQ)); }

  static F load_f16(const uint16_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static F load_bf16(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static F load_i8(const int8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }

  /// Sums of four vectors, each in the same order.
  static __m128 sums(F a, F b, F c, F d) {
    const __m256 quads = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    return _mm_add_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
  }
};

#ifdef __AVX512F__
struct VecAvx512 {
  using F = __m512;
  static constexpr int64_t kLanes = 16;
  static constexpr int kRegisters = 32;

  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F v) { _mm512_storeu_ps(p, v); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F broadcast(const float* p) { return _mm512_set1_ps(*p); }
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F round(F v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F scale(F value, F n) {
    const __m512i exponent = _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23);
    return _mm512_mul_ps(value, _mm512_castsi512_ps(exponent));
  }
  static F keep_from(F v, F x, float limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set(limit), _CMP_NLT_UQ), v);
  }

  static F load_f16(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F load_bf16(const uint16_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static F load_i8(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }

  static __m128 sums(F a, F b, F c, F d) { return VecAvx2::sums(halves(a), halves(b), halves(c), halves(d)); }

 private:
  static __m256 halves(F v) { return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)); }
};
#endif

/// One value a lane from a stored row of any type that a KV cache has (int8 without its scale).
template <typename V, tensor::DType kType>
inline typename V::F load_as(const std::byte* row, int64_t i) {
  using tensor::DType;
  if constexpr (kType == DType::kF32) return V::load(reinterpret_cast<const float*>(row) + i);
  if constexpr (kType == DType::kF16) return V::load_f16(reinterpret_cast<const uint16_t*>(row) + i);
  if constexpr (kType == DType::kBF16) return V::load_bf16(reinterpret_cast<const uint16_t*>(row) + i);
  if constexpr (kType == DType::kI8) return V::load_i8(reinterpret_cast<const int8_t*>(row) + i);
}

template <typename V>
inline float sum_lanes(typename V::F v) {
  return _mm_cvtss_f32(V::sums(v, v, v, v));
}

template <typename V>
inline float max_lanes(typename V::F v) {
  alignas(64) float lanes[V::kLanes];
  V::store(lanes, v);
  float largest = lanes[0];
  for (int64_t i = 1; i < V::kLanes; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
  return largest;
}

/// exp(x) to about one unit in the last place; 0 below -87.3 (where the result would be subnormal), infinity above
/// 88.7, NaN for NaN. Cody and Waite's reduction, then the polynomial of Cephes' expf.
template <typename V>
inline typename V::F vector_exp(typename V::F x) {
  using F = typename V::F;
  constexpr float kLowest = -87.33f;
  // Constants come first: min and max then keep a NaN of x.
  const F clamped = V::max(V::set(kLowest), V::min(V::set(89.0f), x));
  const F n = V::round(V::mul(clamped, V::set(1.44269504088896341f)));
  F r = V::fma(n, V::set(-0.693359375f), clamped);
  r = V::fma(n, V::set(2.12194440e-4f), r);
  F p = V::set(1.9875691500e-4f);
  for (const float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = V::fma(p, r, V::set(c));
  }
  const F y = V::add(V::fma(p, V::mul(r, r), r), V::set(1.0f));
  // Two steps reach 2^128, which is infinity.
  const F half = V::round(V::mul(n, V::set(0.5f)));
  return V::keep_from(V::scale(V::scale(y, half), V::sub(n, half)), x, kLowest);
}

/// 1 / (1 + exp(-x)).
template <typename V>
inline typename V::F vector_sigmoid(typename V::F x) {
  const auto one = V::set(1.0f);
  return V::div(one, V::add(one, vector_exp<V>(V::sub(V::set(0.0f), x))));
}

}  // namespace
}  // namespace crest::ops
