// Small floating-point formats to fp32, vectorised and exact.
//
// Formats: OCP 8-bit (E4M3FN, E5M2) and their FNUZ variants (bias one higher, 0x80 is the only NaN, no -0), OCP
// microscaling E2M3, E3M2, E2M1, IEEE half, bfloat16.
#pragma once

#include "matrix/shape.h"
#include "matrix/simd.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// How the top exponent of a format is used.
enum class Special : uint8_t { kNone, kIeee, kAllOnesIsNan, kFnuz };

struct SmallFormat {
  int exponent_bits, mantissa_bits, bias;
  Special special;
  constexpr int width() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr int min_exponent() const { return 1 - bias; }
};

constexpr SmallFormat small_format(Element e, bool fnuz) {
  switch (e) {
    case Element::kFp8:
      return fnuz ? SmallFormat{4, 3, 8, Special::kFnuz} : SmallFormat{4, 3, 7, Special::kAllOnesIsNan};
    case Element::kBf8:
      return fnuz ? SmallFormat{5, 2, 16, Special::kFnuz} : SmallFormat{5, 2, 15, Special::kIeee};
    case Element::kFp6:
      return {2, 3, 1, Special::kNone};
    case Element::kBf6:
      return {3, 2, 3, Special::kNone};
    case Element::kFp4:
      return {2, 1, 1, Special::kNone};
    case Element::kF16:
      return {5, 10, 15, Special::kIeee};
    default:
      return {8, 7, 127, Special::kIeee};
  }
}

/// Exponent that subnormals of the format have; fp32 and its truncations share fp32's.
constexpr int min_exponent(Element e, bool fnuz) {
  return e == Element::kF32 || e == Element::kXf32 ? -126 : small_format(e, fnuz).min_exponent();
}

/// `raw` holds the encoding in its low bits; higher bits must be zero.
template <Element E, bool Fnuz>
CREST_SIM_INLINE WideF decode(WideU raw) {
  if constexpr (E == Element::kF32 || E == Element::kXf32) {
    // Matrix cores cut xf32 inputs to TF32. A NaN must not become an infinity by that.
    if constexpr (E == Element::kF32) return bits<WideF>(raw);
    const WideU cut = raw & 0xffffe000u;
    const WideI nan = (raw & 0x7fffffffu) > 0x7f800000u;
    return bits<WideF>(cut | (bits<WideU>(nan) & 0x00400000u));
  } else if constexpr (E == Element::kI8 || E == Element::kU8 || E == Element::kI4 || E == Element::kU4) {
    constexpr int kBits = element_bits(E);
    constexpr bool kSigned = E == Element::kI8 || E == Element::kI4;
    const WideI value = kSigned ? bits<WideI>(raw << (32 - kBits)) >> (32 - kBits) : bits<WideI>(raw);
    return __builtin_convertvector(value, WideF);
  } else if constexpr (E == Element::kBf16) {
    return bits<WideF>(raw << 16);
  } else {
    constexpr SmallFormat f = small_format(E, Fnuz);
    constexpr int kMagnitude = f.width() - 1;
    constexpr uint32_t kMask = (1u << kMagnitude) - 1;
    constexpr uint32_t kTop = ((1u << f.exponent_bits) - 1) << f.mantissa_bits;
    const WideU magnitude = raw & kMask;
    const WideU sign = (raw >> kMagnitude) << 31;
    // The multiplication moves the exponent to fp32's bias and normalises subnormals.
    const WideF scaled = bits<WideF>(magnitude << (23 - f.mantissa_bits)) * bits<float>(uint32_t(254 - f.bias) << 23);
    WideU value = bits<WideU>(scaled);
    if constexpr (f.special == Special::kIeee) {
      const WideI top = magnitude >= kTop;
      value = select(top, (magnitude << (23 - f.mantissa_bits)) | 0x7f800000u, value);
    } else if constexpr (f.special == Special::kAllOnesIsNan) {
      const WideI nan = magnitude == kMask;
      value = select(nan, WideU(0x7fc00000u), value);
    } else if constexpr (f.special == Special::kFnuz) {
      const WideI nan = raw == (1u << kMagnitude);
      return bits<WideF>(select(nan, WideU(0x7fc00000u), value | sign));
    }
    return bits<WideF>(value | sign);
  }
}

}  // namespace crest_sim::CREST_SIM_LEVEL
