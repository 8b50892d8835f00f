#pragma once

#include <cstdint>

namespace crest::tensor {

/// Codes of one block, one a byte in element order, into the bit fields of the block formats. Outputs are overwritten.

/// 32 codes of 4 bits: low nibbles are elements 0-15 (Q4_0, Q4_1, IQ4_NL, MXFP4, each sub-block of IQ4_XS; of Q5_0 and
/// Q5_1 the low four bits).
inline void pack_nibbles(const uint8_t* codes, uint8_t* qs) {
  for (int j = 0; j < 16; ++j) qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

/// The fifth bits of 32 codes (Q5_0, Q5_1).
inline void pack_fifth_bits(const uint8_t* codes, uint8_t* qh) {
  for (int b = 0; b < 4; ++b) {
    int bits = 0;
    for (int j = 0; j < 8; ++j) bits |= (codes[8 * b + j] >> 4 & 1) << j;
    qh[b] = static_cast<uint8_t>(bits);
  }
}

/// 256 codes, their low two bits: Q2_K, Q3_K.
inline void pack_pairs(const uint8_t* codes, uint8_t* qs) {
  for (int half = 0; half < 2; ++half) {
    const uint8_t* c = codes + 128 * half;
    for (int l = 0; l < 32; ++l) {
      qs[32 * half + l] =
          static_cast<uint8_t>((c[l] & 3) | (c[l + 32] & 3) << 2 | (c[l + 64] & 3) << 4 | (c[l + 96] & 3) << 6);
    }
  }
}

/// Bit `bit` of 256 codes, that of element 32 j + l in bit j of out[l]: Q3_K's hmask (bit 2), Q5_K's qh (bit 4).
inline void pack_bit_planes(const uint8_t* codes, int bit, uint8_t* out) {
  for (int l = 0; l < 32; ++l) {
    int bits = 0;
    for (int j = 0; j < 8; ++j) bits |= (codes[32 * j + l] >> bit & 1) << j;
    out[l] = static_cast<uint8_t>(bits);
  }
}

/// 256 codes, their low four bits: Q4_K, Q5_K.
inline void pack_k_nibbles(const uint8_t* codes, uint8_t* qs) {
  for (int chunk = 0; chunk < 4; ++chunk) {
    const uint8_t* c = codes + 64 * chunk;
    for (int l = 0; l < 32; ++l) {
      qs[32 * chunk + l] = static_cast<uint8_t>((c[l] & 15) | (c[l + 32] & 15) << 4);
    }
  }
}

/// 256 codes of 6 bits: Q6_K.
inline void pack_q6_k(const uint8_t* codes, uint8_t* ql, uint8_t* qh) {
  for (int half = 0; half < 2; ++half) {
    const uint8_t* c = codes + 128 * half;
    for (int l = 0; l < 32; ++l) {
      ql[64 * half + l] = static_cast<uint8_t>((c[l] & 15) | (c[l + 64] & 15) << 4);
      ql[64 * half + l + 32] = static_cast<uint8_t>((c[l + 32] & 15) | (c[l + 96] & 15) << 4);
      qh[32 * half + l] =
          static_cast<uint8_t>(c[l] >> 4 | c[l + 32] >> 4 << 2 | c[l + 64] >> 4 << 4 | c[l + 96] >> 4 << 6);
    }
  }
}

}  // namespace crest::tensor
