// Unpacking loops of one element format; with a layout known to the compiler they unroll.
#pragma once

#include "matrix/decode_small.h"
#include "matrix/unpack.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// Bits of value e in the lanes starting at `rows` (already advanced to the first lane wanted).
template <int Bits>
CREST_SIM_INLINE WideU raw_value(const uint32_t* rows, int lanes, int e) {
  if constexpr (Bits == 32) {
    return load<WideU>(rows + e * lanes);
  } else if constexpr (Bits == 6) {
    const int bit = e * 6, word = bit / 32, shift = bit % 32;
    WideU value = load<WideU>(rows + word * lanes) >> uint32_t(shift);
    if (shift > 26) value |= load<WideU>(rows + (word + 1) * lanes) << uint32_t(32 - shift);
    return value & 63u;
  } else {
    constexpr int kPerWord = 32 / Bits;
    const WideU word = load<WideU>(rows + e / kPerWord * lanes);
    return (word >> uint32_t(e % kPerWord * Bits)) & ((1u << Bits) - 1);
  }
}

/// Two values of 16 bits per word: even e from the low halves, odd e from the high ones.
template <Element E>
CREST_SIM_INLINE void decode_pair(WideU word, WideF& low, WideF& high) {
  if constexpr (E == Element::kBf16) {
    low = bits<WideF>(word << 16);
    high = bits<WideF>(word & 0xffff0000u);
  } else {
#if defined(__F16C__)
    using Halves = _Float16 __attribute__((ext_vector_type(2 * kWide)));
    const Halves halves = bits<Halves>(word);
    low = __builtin_convertvector(halves.even, WideF);
    high = __builtin_convertvector(halves.odd, WideF);
#else
    low = decode<E, false>(word & 0xffffu);
    high = decode<E, false>(word >> 16);
#endif
  }
}

template <Element E>
CREST_SIM_INLINE void unpack_pairs(const uint32_t* rows, const UnpackLayout& layout, float* table) {
  const int columns = layout.columns;
  for (int group = 0; group < layout.lanes / columns; ++group, rows += columns) {
    for (int e = 0; e < layout.elements; e += 2, table += 2 * columns) {
      for (int c = 0; c < columns; c += kWide) {
        WideF low, high;
        decode_pair<E>(load<WideU>(rows + e / 2 * layout.lanes + c), low, high);
        store(table + c, low);
        store(table + columns + c, high);
      }
    }
  }
}

template <Element E, bool Fnuz>
CREST_SIM_INLINE void unpack_as(const uint32_t* rows, const UnpackLayout& layout, float* table) {
  const int groups = layout.lanes / layout.columns;
  for (int group = 0; group < groups; ++group) {
    for (int e = 0; e < layout.elements; ++e) {
      const uint32_t* from = rows + group * layout.columns;
      float* to = table + unpacked_row(group, e, layout.elements, groups, layout.two_runs) * layout.columns;
      for (int c = 0; c < layout.columns; c += kWide) {
        store(to + c, decode<E, Fnuz>(raw_value<element_bits(E)>(from + c, layout.lanes, e)));
      }
    }
  }
}

}  // namespace crest_sim::CREST_SIM_LEVEL
