#pragma once

// Chunks of layout kPanels to the form that the micro-kernels multiply. Included only by files compiled for AVX2 or
// more; everything has internal linkage, so that no copy made for a newer processor is linked into older paths.

#include <immintrin.h>

#include <cstdint>

#include "ops/gemm/panel.h"
#include "tensor/blocks.h"
#include "tensor/dtype.h"

namespace crest::ops::panel {
namespace {

using namespace parts;
using tensor::DType;

/// Up to 256 columns of one panel: row r of the product is sum over sub-blocks of
/// scale[sub][r] * (sum of quants times activations) * activation scale + offset[sub][r] * activation sum.
struct QuantBlock {
  alignas(64) uint8_t quants[2][64][kStepBytes];  // plane 1: the upper 4 bits, where 8-bit quants are split
  alignas(64) float scale[16][kRows];
  alignas(64) float offset[16][kRows];
};

/// How the quants of a type may be multiplied.
struct QuantClass {
  int steps;   // of 4 columns that share a scale: 8 or 4
  int flush;   // steps whose u8 x s8 products of pairs fit 16 bits together: 8, 4 or 2
  bool bytes;  // quants need all 8 bits
};
constexpr QuantClass quant_class(DType dtype) {
  switch (dtype) {
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K:
    case DType::kMXFP4:
      return {8, 4, false};  // <= 31: 2 * 31 * 127 * 4 < 2^15
    case DType::kQ6_K:
      return {4, 2, false};  // <= 63
    case DType::kQ2_K:
    case DType::kQ3_K:
      return {4, 4, false};
    case DType::kQ8_0:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return {8, 8, true};
    default:
      return {8, 8, false};  // <= 15: 2 * 15 * 127 * 8 < 2^15
  }
}

inline __m256i load(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline void store(uint8_t* p, __m256i v) { _mm256_store_si256(reinterpret_cast<__m256i*>(p), v); }
inline __m256 halves(const uint8_t* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
inline __m256 unsigned_bytes(const uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline __m256 signed_bytes(const uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline __m256 nibbles_low(const uint8_t* p) {
  const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return _mm256_cvtepi32_ps(_mm256_and_si256(v, _mm256_set1_epi32(15)));
}
inline __m256 nibbles_high(const uint8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_srli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))), 4));
}

/// f(low, high): what becomes of the nibbles before they are stored.
template <typename F>
inline void unpack_nibbles(const uint8_t* planes, int subs, uint8_t (*out)[kStepBytes], F f) {
  const __m256i mask = _mm256_set1_epi8(15);
  for (int v = 0; v < 4 * subs; ++v) {
    uint8_t* low = out[v / 4 * 8 + v % 4];
    for (int half = 0; half < 64; half += 32) {
      const __m256i both = load(planes + v * kStepBytes + half);
      store(low + half, f(_mm256_and_si256(both, mask)));
      store(low + 4 * kStepBytes + half, f(_mm256_and_si256(_mm256_srli_epi16(both, 4), mask)));
    }
  }
}
inline void unpack_nibbles(const uint8_t* planes, int subs, uint8_t (*out)[kStepBytes]) {
  unpack_nibbles(planes, subs, out, [](__m256i v) { return v; });
}

/// out |= 2-bit values << kShift (kFirst: out = ...).
template <int kShift, bool kFirst>
inline void unpack_pairs(const uint8_t* planes, int subs, uint8_t (*out)[kStepBytes]) {
  const __m256i mask = _mm256_set1_epi8(3 << kShift);
  for (int v = 0; v < 2 * subs; ++v) {
    for (int half = 0; half < 64; half += 32) {
      const __m256i packed = load(planes + v * kStepBytes + half);
      for (int j = 0; j < 4; ++j) {
        const int up = kShift - 2 * j;
        __m256i value = up >= 0 ? _mm256_slli_epi16(packed, up) : _mm256_srli_epi16(packed, -up);
        value = _mm256_and_si256(value, mask);
        uint8_t* at = out[4 * v + j] + half;
        store(at, kFirst ? value : _mm256_or_si256(value, load(at)));
      }
    }
  }
}

template <int kShift>
inline void unpack_bits(const uint8_t* planes, int subs, uint8_t (*out)[kStepBytes]) {
  const __m256i mask = _mm256_set1_epi8(1 << kShift);
  for (int b = 0; b < subs; ++b) {
    for (int half = 0; half < 64; half += 32) {
      const __m256i packed = load(planes + b * kStepBytes + half);
      for (int s = 0; s < 8; ++s) {
        const int up = kShift - s;
        __m256i value = up >= 0 ? _mm256_slli_epi16(packed, up) : _mm256_srli_epi16(packed, -up);
        uint8_t* at = out[8 * b + s] + half;
        store(at, _mm256_or_si256(_mm256_and_si256(value, mask), load(at)));
      }
    }
  }
}

/// 8-bit quants where the kernel wants them: whole in plane 0, or 4 bits in each plane.
template <bool kSplit>
inline void store_bytes(QuantBlock& block, int step, int half, __m256i value) {
  if constexpr (kSplit) {
    const __m256i mask = _mm256_set1_epi8(15);
    store(block.quants[0][step] + half, _mm256_and_si256(value, mask));
    store(block.quants[1][step] + half, _mm256_and_si256(_mm256_srli_epi16(value, 4), mask));
  } else {
    store(block.quants[0][step] + half, value);
  }
}

constexpr int kByteOffset = 128;
constexpr int kMxfp4Offset = 12;

template <bool kSplit>
inline void unpack_iq4(const uint8_t* planes, int subs, QuantBlock& block, int first_step) {
  alignas(16) uint8_t table[16];
  for (int i = 0; i < 16; ++i) table[i] = static_cast<uint8_t>(tensor::kIQ4Values[i] + kByteOffset);
  const __m256i codes = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(table)));
  const __m256i mask = _mm256_set1_epi8(15);
  for (int v = 0; v < 4 * subs; ++v) {
    const int step = first_step + v / 4 * 8 + v % 4;
    for (int half = 0; half < 64; half += 32) {
      const __m256i both = load(planes + v * kStepBytes + half);
      store_bytes<kSplit>(block, step, half, _mm256_shuffle_epi8(codes, _mm256_and_si256(both, mask)));
      store_bytes<kSplit>(block, step + 4, half,
                          _mm256_shuffle_epi8(codes, _mm256_and_si256(_mm256_srli_epi16(both, 4), mask)));
    }
  }
}

inline void set_scale(QuantBlock& block, int sub, int half, __m256 scale, __m256 offset) {
  _mm256_store_ps(block.scale[sub] + half, scale);
  _mm256_store_ps(block.offset[sub] + half, offset);
}

/// Sub-block `sub` (of 32 columns) of a format of 32 columns.
template <DType kType, bool kSplit>
inline void unpack_32(const uint8_t* chunk, QuantBlock& block, int sub) {
  uint8_t (*out)[kStepBytes] = block.quants[0] + 8 * sub;
  constexpr bool kFifth = kType == DType::kQ5_0 || kType == DType::kQ5_1;
  if constexpr (kType == DType::kQ8_0) {
    for (int s = 0; s < 8; ++s) {
      for (int half = 0; half < 64; half += 32)
        store_bytes<kSplit>(block, 8 * sub + s, half, load(chunk + s * kStepBytes + half));
    }
  } else if constexpr (kType == DType::kIQ4_NL) {
    unpack_iq4<kSplit>(chunk, 1, block, 8 * sub);
  } else if constexpr (kType == DType::kMXFP4) {
    const __m256i codes =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
    unpack_nibbles(chunk, 1, out, [codes](__m256i v) { return _mm256_shuffle_epi8(codes, v); });
  } else {
    unpack_nibbles(chunk, 1, out);
    if constexpr (kFifth) unpack_bits<4>(chunk + kNibbles32, 1, out);
  }
  for (int half = 0; half < 16; half += 8) {
    if constexpr (kType == DType::kQ4_0) {
      const __m256 d = halves(chunk + kQ4_0_Scale + 2 * half);
      set_scale(block, sub, half, d, _mm256_mul_ps(d, _mm256_set1_ps(-8)));
    } else if constexpr (kType == DType::kQ4_1) {
      set_scale(block, sub, half, halves(chunk + kQ4_1_Scale + 2 * half), halves(chunk + kQ4_1_Min + 2 * half));
    } else if constexpr (kType == DType::kQ5_0) {
      const __m256 d = halves(chunk + kQ5_0_Scale + 2 * half);
      set_scale(block, sub, half, d, _mm256_mul_ps(d, _mm256_set1_ps(-16)));
    } else if constexpr (kType == DType::kQ5_1) {
      set_scale(block, sub, half, halves(chunk + kQ5_1_Scale + 2 * half), halves(chunk + kQ5_1_Min + 2 * half));
    } else if constexpr (kType == DType::kQ8_0 || kType == DType::kIQ4_NL) {
      const __m256 d = halves(chunk + (kType == DType::kQ8_0 ? kQ8_0_Scale : kQ4_0_Scale) + 2 * half);
      set_scale(block, sub, half, d, _mm256_mul_ps(d, _mm256_set1_ps(-kByteOffset)));
    } else if constexpr (kType == DType::kMXFP4) {
      const __m256i e =
          _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(chunk + kMxfp4_Scale + half)));
      // Half of 2^(e - 127), because the codes are doubled; e < 2 gives the two subnormals.
      const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
      const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
      const __m256 d =
          _mm256_castsi256_ps(_mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
      set_scale(block, sub, half, d, _mm256_mul_ps(d, _mm256_set1_ps(-kMxfp4Offset)));
    }
  }
}

template <bool kFifth>
inline void unpack_q4_k(const uint8_t* chunk, QuantBlock& block) {
  unpack_nibbles(chunk, 8, block.quants[0]);
  if constexpr (kFifth) unpack_bits<4>(chunk + kQ5_K_Bits, 8, block.quants[0]);
  const uint8_t* scales = chunk + (kFifth ? kQ5_K_Scales : kQ4_K_Scales);
  const uint8_t* mins = chunk + (kFifth ? kQ5_K_Mins : kQ4_K_Mins);
  for (int half = 0; half < 16; half += 8) {
    const __m256 d = halves(chunk + (kFifth ? kQ5_K_Scale : kQ4_K_Scale) + 2 * half);
    const __m256 m = _mm256_sub_ps(_mm256_setzero_ps(), halves(chunk + (kFifth ? kQ5_K_Min : kQ4_K_Min) + 2 * half));
    for (int sub = 0; sub < 8; ++sub) {
      set_scale(block, sub, half, _mm256_mul_ps(d, unsigned_bytes(scales + 16 * sub + half)),
                _mm256_mul_ps(m, unsigned_bytes(mins + 16 * sub + half)));
    }
  }
}

/// 16 sub-blocks of 16 columns with signed scales and a constant offset of the quants.
inline void set_signed_scales(const uint8_t* scales, const uint8_t* d_at, int subs, float zero, QuantBlock& block) {
  for (int half = 0; half < 16; half += 8) {
    const __m256 d = halves(d_at + 2 * half);
    for (int sub = 0; sub < subs; ++sub) {
      const __m256 scale = _mm256_mul_ps(d, signed_bytes(scales + 16 * sub + half));
      set_scale(block, sub, half, scale, _mm256_mul_ps(scale, _mm256_set1_ps(zero)));
    }
  }
}

template <DType kType, bool kSplit>
inline void unpack_256(const uint8_t* chunk, QuantBlock& block) {
  if constexpr (kType == DType::kQ4_K || kType == DType::kQ5_K) {
    unpack_q4_k<kType == DType::kQ5_K>(chunk, block);
  } else if constexpr (kType == DType::kQ6_K) {
    unpack_nibbles(chunk, 8, block.quants[0]);
    unpack_pairs<4, false>(chunk + kQ6_K_Pairs, 8, block.quants[0]);
    set_signed_scales(chunk + kQ6_K_Scales, chunk + kQ6_K_Scale, 16, -32, block);
  } else if constexpr (kType == DType::kQ3_K) {
    unpack_pairs<0, true>(chunk, 8, block.quants[0]);
    unpack_bits<2>(chunk + kQ3_K_Bits, 8, block.quants[0]);
    set_signed_scales(chunk + kQ3_K_Scales, chunk + kQ3_K_Scale, 16, -4, block);
  } else if constexpr (kType == DType::kIQ4_XS) {
    unpack_iq4<kSplit>(chunk, 8, block, 0);
    set_signed_scales(chunk + kIQ4_XS_Scales, chunk + kIQ4_XS_Scale, 8, -kByteOffset, block);
  } else {
    static_assert(kType == DType::kQ2_K);
    unpack_pairs<0, true>(chunk, 8, block.quants[0]);
    for (int half = 0; half < 16; half += 8) {
      const __m256 d = halves(chunk + kQ2_K_Scale + 2 * half);
      const __m256 m = _mm256_sub_ps(_mm256_setzero_ps(), halves(chunk + kQ2_K_Min + 2 * half));
      for (int sub = 0; sub < 16; ++sub) {
        const uint8_t* s = chunk + kQ2_K_Scales + 16 * sub + half;
        set_scale(block, sub, half, _mm256_mul_ps(d, nibbles_low(s)), _mm256_mul_ps(m, nibbles_high(s)));
      }
    }
  }
}

inline void unpack_paro(const uint8_t* chunk, QuantBlock& block, int first_sub) {
  unpack_nibbles(chunk, 4, block.quants[0] + 8 * first_sub);
  for (int half = 0; half < 16; half += 8) {
    const __m256 d = halves(chunk + kParo_Scale + 2 * half);
    const __m256 offset =
        _mm256_mul_ps(d, _mm256_sub_ps(_mm256_setzero_ps(), unsigned_bytes(chunk + kParo_Zero + half)));
    for (int sub = first_sub; sub < first_sub + 4; ++sub) set_scale(block, sub, half, d, offset);
  }
}

/// Columns of one call of unpack_block: at most 256.
constexpr int64_t kBlockCols = 256;

/// Chunks that hold `cols` <= 256 columns.
template <DType kType, bool kSplit>
inline void unpack_block(const uint8_t* chunk, int64_t cols, QuantBlock& block) {
  if constexpr (kType == DType::kParoW4) {
    for (int64_t c = 0; c < cols; c += 128) unpack_paro(chunk + c / 128 * kParo_Bytes, block, static_cast<int>(c / 32));
  } else if constexpr (kType == DType::kQ2_K || kType == DType::kQ3_K || kType == DType::kQ4_K ||
                       kType == DType::kQ5_K || kType == DType::kQ6_K || kType == DType::kIQ4_XS) {
    unpack_256<kType, kSplit>(chunk, block);
  } else {
    constexpr int64_t bytes = kType == DType::kQ4_0 || kType == DType::kIQ4_NL ? kQ4_0_Bytes
                              : kType == DType::kQ4_1                          ? kQ4_1_Bytes
                              : kType == DType::kQ5_0                          ? kQ5_0_Bytes
                              : kType == DType::kQ5_1                          ? kQ5_1_Bytes
                              : kType == DType::kQ8_0                          ? kQ8_0_Bytes
                                                                               : kMxfp4_Bytes;
    for (int64_t sub = 0; sub < cols / 32; ++sub)
      unpack_32<kType, kSplit>(chunk + sub * bytes, block, static_cast<int>(sub));
  }
}

}  // namespace
}  // namespace crest::ops::panel
