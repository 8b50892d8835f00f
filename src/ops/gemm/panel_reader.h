#pragma once

// What a chunk of layout kPanels holds, one trait a weight type: a step's quants, scales and offsets as vectors. The
// loops over them are in panel_kernel.h; a new format is added here and in panel.cpp.

#include "ops/gemm/panel.h"
#include "ops/gemm/panel_vector.h"
#include "tensor/blocks.h"
#include "tensor/dtype.h"

namespace crest::ops::panel {
namespace {

using namespace parts;
using tensor::DType;

/// How the quants of a type may be multiplied.
struct QuantClass {
  int steps;   // of 4 columns that share a scale: 8 or 4
  int flush;   // steps whose u8 x s8 products of pairs fit 16 bits together: 8, 4 or 2
  bool bytes;  // quants need all 8 bits
  int zero;    // what was added to signed quants; 0: the type has minimums of its own
};
constexpr QuantClass quant_class(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return {8, 8, false, 8};  // <= 15: 2 * 15 * 127 * 8 < 2^15
    case DType::kQ5_0:
      return {8, 4, false, 16};  // <= 31: 2 * 31 * 127 * 4 < 2^15
    case DType::kMXFP4:
      return {8, 4, false, 12};
    case DType::kQ5_1:
    case DType::kQ5_K:
      return {8, 4, false, 0};
    case DType::kQ6_K:
      return {4, 2, false, 32};  // <= 63
    case DType::kQ3_K:
      return {4, 4, false, 4};
    case DType::kQ2_K:
      return {4, 4, false, 0};
    case DType::kQ8_0:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return {8, 8, true, 128};
    default:
      return {8, 8, false, 0};
  }
}

/// Chunks of a type: columns and bytes as in panel.cpp's table.
struct ChunkShape {
  int subs;  // of 32 columns
  int64_t bytes;
};
constexpr ChunkShape chunk_shape(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kIQ4_NL:
      return {1, kQ4_0_Bytes};
    case DType::kQ4_1:
      return {1, kQ4_1_Bytes};
    case DType::kQ5_0:
      return {1, kQ5_0_Bytes};
    case DType::kQ5_1:
      return {1, kQ5_1_Bytes};
    case DType::kQ8_0:
      return {1, kQ8_0_Bytes};
    case DType::kMXFP4:
      return {1, kMxfp4_Bytes};
    case DType::kParoW4:
      return {4, kParo_Bytes};
    case DType::kQ2_K:
      return {8, kQ2_K_Bytes};
    case DType::kQ3_K:
      return {8, kQ3_K_Bytes};
    case DType::kQ4_K:
      return {8, kQ4_K_Bytes};
    case DType::kQ5_K:
      return {8, kQ5_K_Bytes};
    case DType::kQ6_K:
      return {8, kQ6_K_Bytes};
    default:
      return {8, kIQ4_XS_Bytes};
  }
}

/// Vector v of V of a step, scale or offset: rows from v * V::kLanes on. `sub` counts 32 columns, `group` what shares a
/// scale (32 or 16 columns), both from the start of the chunk.
template <typename V, DType kType>
struct Reader {
  using I = typename V::I;
  using F = typename V::F;
  static constexpr QuantClass kClass = quant_class(kType);
  static constexpr ChunkShape kChunk = chunk_shape(kType);
  static constexpr bool kMinimums = kClass.zero == 0;

  template <int s>
  [[gnu::always_inline]] static I nibbles(const uint8_t* planes, int sub, int v) {
    const I both = V::load(planes + (4 * sub + s % 4) * kStepBytes + v * V::kBytes);
    return V::band(V::template shift<(s < 4 ? 0 : -4)>(both), V::byte(15));
  }
  template <int s, int kShift>
  [[gnu::always_inline]] static I pairs(const uint8_t* planes, int sub, int v) {
    const I packed = V::load(planes + (2 * sub + s / 4) * kStepBytes + v * V::kBytes);
    return V::band(V::template shift<kShift - 2 * (s % 4)>(packed), V::byte(3 << kShift));
  }
  template <int s, int kShift>
  [[gnu::always_inline]] static I bits(const uint8_t* planes, int sub, int v) {
    const I packed = V::load(planes + sub * kStepBytes + v * V::kBytes);
    return V::band(V::template shift<kShift - s>(packed), V::byte(1 << kShift));
  }

  /// Unsigned quants of step s (0 to 7) of sub-block `sub`.
  template <int s>
  [[gnu::always_inline]] static I step(const uint8_t* chunk, int sub, int v) {
    if constexpr (kType == DType::kQ8_0) {
      return V::load(chunk + (8 * sub + s) * kStepBytes + v * V::kBytes);
    } else if constexpr (kType == DType::kQ2_K) {
      return pairs<s, 0>(chunk, sub, v);
    } else if constexpr (kType == DType::kQ3_K) {
      return V::bor(pairs<s, 0>(chunk, sub, v), bits<s, 2>(chunk + kQ3_K_Bits, sub, v));
    } else {
      const I low = nibbles<s>(chunk, sub, v);
      if constexpr (kType == DType::kQ5_0 || kType == DType::kQ5_1)
        return V::bor(low, bits<s, 4>(chunk + kNibbles32, sub, v));
      if constexpr (kType == DType::kQ5_K) return V::bor(low, bits<s, 4>(chunk + kQ5_K_Bits, sub, v));
      if constexpr (kType == DType::kQ6_K) return V::bor(low, pairs<s, 4>(chunk + kQ6_K_Pairs, sub, v));
      if constexpr (kType == DType::kMXFP4)
        return V::lookup(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0), low);
      if constexpr (kType == DType::kIQ4_NL || kType == DType::kIQ4_XS) {
        const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(tensor::kIQ4Values));
        return V::lookup(_mm_xor_si128(values, _mm_set1_epi8(-128)), low);
      }
      return low;
    }
  }

  [[gnu::always_inline]] static F scale(const uint8_t* chunk, int group, int v) {
    const int64_t at = 2 * v * V::kLanes, sub_at = 16 * group + v * V::kLanes;  // fp16 and byte of the first row
    if constexpr (kType == DType::kQ4_0 || kType == DType::kIQ4_NL) return V::halves(chunk + kQ4_0_Scale + at);
    if constexpr (kType == DType::kQ4_1) return V::halves(chunk + kQ4_1_Scale + at);
    if constexpr (kType == DType::kQ5_0) return V::halves(chunk + kQ5_0_Scale + at);
    if constexpr (kType == DType::kQ5_1) return V::halves(chunk + kQ5_1_Scale + at);
    if constexpr (kType == DType::kQ8_0) return V::halves(chunk + kQ8_0_Scale + at);
    if constexpr (kType == DType::kMXFP4) return V::half_powers(chunk + kMxfp4_Scale + at / 2);
    if constexpr (kType == DType::kParoW4) return V::halves(chunk + kParo_Scale + at);
    if constexpr (kType == DType::kQ4_K)
      return V::mul(V::halves(chunk + kQ4_K_Scale + at), V::unsigned_bytes(chunk + kQ4_K_Scales + sub_at));
    if constexpr (kType == DType::kQ5_K)
      return V::mul(V::halves(chunk + kQ5_K_Scale + at), V::unsigned_bytes(chunk + kQ5_K_Scales + sub_at));
    if constexpr (kType == DType::kQ6_K)
      return V::mul(V::halves(chunk + kQ6_K_Scale + at), V::signed_bytes(chunk + kQ6_K_Scales + sub_at));
    if constexpr (kType == DType::kQ3_K)
      return V::mul(V::halves(chunk + kQ3_K_Scale + at), V::signed_bytes(chunk + kQ3_K_Scales + sub_at));
    if constexpr (kType == DType::kQ2_K)
      return V::mul(V::halves(chunk + kQ2_K_Scale + at), V::low_nibbles(chunk + kQ2_K_Scales + sub_at));
    if constexpr (kType == DType::kIQ4_XS)
      return V::mul(V::halves(chunk + kIQ4_XS_Scale + at), V::signed_bytes(chunk + kIQ4_XS_Scales + sub_at));
  }

  /// What the sum of the activations is multiplied by, for types that have minimums.
  [[gnu::always_inline]] static F minimum(const uint8_t* chunk, int group, int v) {
    const int64_t at = 2 * v * V::kLanes, sub_at = 16 * group + v * V::kLanes;
    if constexpr (kType == DType::kQ4_1) return V::halves(chunk + kQ4_1_Min + at);
    if constexpr (kType == DType::kQ5_1) return V::halves(chunk + kQ5_1_Min + at);
    if constexpr (kType == DType::kParoW4)
      return V::mul(V::halves(chunk + kParo_Scale + at), V::negate(V::unsigned_bytes(chunk + kParo_Zero + at / 2)));
    if constexpr (kType == DType::kQ4_K)
      return V::mul(V::negate(V::halves(chunk + kQ4_K_Min + at)), V::unsigned_bytes(chunk + kQ4_K_Mins + sub_at));
    if constexpr (kType == DType::kQ5_K)
      return V::mul(V::negate(V::halves(chunk + kQ5_K_Min + at)), V::unsigned_bytes(chunk + kQ5_K_Mins + sub_at));
    if constexpr (kType == DType::kQ2_K)
      return V::mul(V::negate(V::halves(chunk + kQ2_K_Min + at)), V::high_nibbles(chunk + kQ2_K_Scales + sub_at));
  }
};

}  // namespace
}  // namespace crest::ops::panel
