#pragma once

// Vectors of the linear kernels: bytes and fp32 lanes of 256 or 512 bits. Included only by files compiled for AVX2 or
// more; everything has internal linkage, so that no copy made for a newer processor is linked into older paths.

#include <immintrin.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace crest::ops::panel {
namespace {

/// f.template operator()<0>(), …, <kCount - 1>().
template <int kCount, typename F>
[[gnu::always_inline]] inline void unroll(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>)
      __attribute__((always_inline)) { (f.template operator()<i>(), ...); }(std::make_integer_sequence<int, kCount>{});
}

struct Vector256 {
  using I = __m256i;
  using F = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kBytes = 32;

  static I load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const I*>(p)); }
  static void store(uint8_t* p, I v) { _mm256_store_si256(reinterpret_cast<I*>(p), v); }
  static I byte(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
  static I band(I a, I b) { return _mm256_and_si256(a, b); }
  static I bor(I a, I b) { return _mm256_or_si256(a, b); }
  static I bxor(I a, I b) { return _mm256_xor_si256(a, b); }
  static I add8(I a, I b) { return _mm256_add_epi8(a, b); }
  /// 16-bit lanes to the left by kUp bits, or to the right by -kUp.
  template <int kUp>
  static I shift(I v) {
    if constexpr (kUp > 0) return _mm256_slli_epi16(v, kUp);
    if constexpr (kUp < 0) return _mm256_srli_epi16(v, -kUp);
    return v;
  }
  static I lookup(__m128i table, I index) { return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index); }
  static I broadcast4(const int8_t* p) {
    int32_t four;
    std::memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
  }
  static I broadcasti(const int32_t* p) { return _mm256_set1_epi32(*p); }
  static I zeroi() { return _mm256_setzero_si256(); }
  static I set16(int16_t value) { return _mm256_set1_epi16(value); }
  static I add16(I a, I b) { return _mm256_add_epi16(a, b); }
  static I add32(I a, I b) { return _mm256_add_epi32(a, b); }
  /// u8 x s8, pairs added, to 16 bits; s16 x s16, pairs added, to 32 bits.
  static I multiply_pairs(I a, I b) { return _mm256_maddubs_epi16(a, b); }
  static I widen_pairs(I a, I b) { return _mm256_madd_epi16(a, b); }

  static F loadf(const float* p) { return _mm256_load_ps(p); }
  static void storef(float* p, F v) { _mm256_store_ps(p, v); }
  static F setf(float x) { return _mm256_set1_ps(x); }
  static F broadcastf(const float* p) { return _mm256_broadcast_ss(p); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F negate(F a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
  static F to_float(I v) { return _mm256_cvtepi32_ps(v); }
  static F as_float(I v) { return _mm256_castsi256_ps(v); }

  static I words(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static F halves(const uint8_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static F bfloats(const uint8_t* p) {
    return as_float(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
  }
  static F unsigned_bytes(const uint8_t* p) { return to_float(words(p)); }
  static F signed_bytes(const uint8_t* p) {
    return to_float(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static F low_nibbles(const uint8_t* p) { return to_float(_mm256_and_si256(words(p), _mm256_set1_epi32(15))); }
  static F high_nibbles(const uint8_t* p) { return to_float(_mm256_srli_epi32(words(p), 4)); }
  /// Half of 2^(e - 127) for bytes e; e < 2 gives the two subnormals.
  static F half_powers(const uint8_t* p) {
    const I e = words(p);
    const I normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const I small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return as_float(_mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
  }
};

#ifdef __AVX512BW__
struct Vector512 {
  using I = __m512i;
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kBytes = 64;

  static I load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(uint8_t* p, I v) { _mm512_store_si512(p, v); }
  static I byte(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
  static I band(I a, I b) { return _mm512_and_si512(a, b); }
  static I bor(I a, I b) { return _mm512_or_si512(a, b); }
  static I bxor(I a, I b) { return _mm512_xor_si512(a, b); }
  static I add8(I a, I b) { return _mm512_add_epi8(a, b); }
  template <int kUp>
  static I shift(I v) {
    if constexpr (kUp > 0) return _mm512_slli_epi16(v, kUp);
    if constexpr (kUp < 0) return _mm512_srli_epi16(v, -kUp);
    return v;
  }
  static I lookup(__m128i table, I index) { return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), index); }
  static I broadcast4(const int8_t* p) {
    int32_t four;
    std::memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
  }
  static I broadcasti(const int32_t* p) { return _mm512_set1_epi32(*p); }
  static I zeroi() { return _mm512_setzero_si512(); }
  static I set16(int16_t value) { return _mm512_set1_epi16(value); }
  static I add16(I a, I b) { return _mm512_add_epi16(a, b); }
  static I add32(I a, I b) { return _mm512_add_epi32(a, b); }
  /// u8 x s8, pairs added, to 16 bits; s16 x s16, pairs added, to 32 bits.
  static I multiply_pairs(I a, I b) { return _mm512_maddubs_epi16(a, b); }
  static I widen_pairs(I a, I b) { return _mm512_madd_epi16(a, b); }

  static F loadf(const float* p) { return _mm512_load_ps(p); }
  static void storef(float* p, F v) { _mm512_store_ps(p, v); }
  static F setf(float x) { return _mm512_set1_ps(x); }
  static F broadcastf(const float* p) { return _mm512_set1_ps(*p); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F negate(F a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
  static F to_float(I v) { return _mm512_cvtepi32_ps(v); }
  static F as_float(I v) { return _mm512_castsi512_ps(v); }

  static I words(const uint8_t* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F halves(const uint8_t* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static F bfloats(const uint8_t* p) {
    return as_float(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
  }
  static F unsigned_bytes(const uint8_t* p) { return to_float(words(p)); }
  static F signed_bytes(const uint8_t* p) {
    return to_float(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static F low_nibbles(const uint8_t* p) { return to_float(_mm512_and_si512(words(p), _mm512_set1_epi32(15))); }
  static F high_nibbles(const uint8_t* p) { return to_float(_mm512_srli_epi32(words(p), 4)); }
  static F half_powers(const uint8_t* p) {
    const I e = words(p);
    const I normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const I small = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    return as_float(_mm512_mask_blend_epi32(_mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)), normal, small));
  }
};
#endif

}  // namespace
}  // namespace crest::ops::panel
