// Host vectors of the x86-64 level this file is compiled for: 4, 8 or 16 lanes of 32 bits.
//
// Everything here and in the other headers of sim/src/matrix lives in the namespace of the level: an inline function
// that the linker merges across levels would carry one level's instructions into the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define CREST_SIM_INLINE [[gnu::always_inline]] static inline

namespace crest_sim::CREST_SIM_LEVEL {

#if defined(__AVX512F__)
inline constexpr int kWide = 16;
#elif defined(__AVX2__)
inline constexpr int kWide = 8;
#else
inline constexpr int kWide = 4;
#endif

#if defined(__FMA__)
inline constexpr bool kHasFma = true;
#else
inline constexpr bool kHasFma = false;
#endif

template <int N>
using VecF = float __attribute__((ext_vector_type(N)));
template <int N>
using VecI = int32_t __attribute__((ext_vector_type(N)));
template <int N>
using VecU = uint32_t __attribute__((ext_vector_type(N)));
template <int N>
using VecD = double __attribute__((ext_vector_type(N)));
template <int N>
using VecL = int64_t __attribute__((ext_vector_type(N)));

using WideF = VecF<kWide>;
using WideI = VecI<kWide>;
using WideU = VecU<kWide>;
using WideD = VecD<kWide>;  // two registers
using WideL = VecL<kWide>;

template <typename V>
CREST_SIM_INLINE V load(const void* from) {
  V value;
  std::memcpy(&value, from, sizeof(V));
  return value;
}
template <typename V>
CREST_SIM_INLINE void store(void* to, V value) {
  std::memcpy(to, &value, sizeof(V));
}
template <typename To, typename From>
CREST_SIM_INLINE To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}
/// mask lanes are 0 or -1.
template <typename V, typename Mask>
CREST_SIM_INLINE V select(Mask mask, V yes, V no) {
  return bits<V>((bits<Mask>(yes) & mask) | (bits<Mask>(no) & ~mask));
}
CREST_SIM_INLINE WideF splat(float value) { return WideF(value); }
CREST_SIM_INLINE WideI splat(int32_t value) { return WideI(value); }

template <typename V>
CREST_SIM_INLINE V fused(V a, V b, V c) {
  return __builtin_elementwise_fma(a, b, c);
}
template <typename V>
CREST_SIM_INLINE V vmax(V a, V b) {
  return __builtin_elementwise_max(a, b);
}
template <typename V>
CREST_SIM_INLINE V vmin(V a, V b) {
  return __builtin_elementwise_min(a, b);
}
/// Arithmetic shift right by 0..31 and more (more acts like 31).
CREST_SIM_INLINE WideI floor_shift(WideI value, WideI count) { return value >> vmin(count, splat(31)); }
/// 2^e for e in [-126, 127].
CREST_SIM_INLINE WideF power_of_two(WideI e) { return bits<WideF>((e + 127) << 23); }
/// 2^e for e in [-1022, 1023].
CREST_SIM_INLINE WideD power_of_two_double(WideI e) {
  return bits<WideD>((__builtin_convertvector(e, WideL) + 1023) << 52);
}
/// Truncation to int32; lanes outside its range have an unspecified value (no undefined behaviour).
CREST_SIM_INLINE WideI truncate(WideF value) {
#if defined(__AVX512F__)
  return bits<WideI>(__builtin_ia32_cvttps2dq512_mask(value, WideI(0), uint16_t(-1), 4));
#elif defined(__AVX2__)
  return bits<WideI>(__builtin_ia32_cvttps2dq256(value));
#else
  return bits<WideI>(__builtin_ia32_cvttps2dq(value));
#endif
}
template <typename Mask>
CREST_SIM_INLINE bool any(Mask mask) {
  return __builtin_reduce_or(mask) != 0;
}

}  // namespace crest_sim::CREST_SIM_LEVEL
