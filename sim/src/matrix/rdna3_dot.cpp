#include "matrix/rdna3_dot.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

template <bool Bf16>
struct Factor {
  uint32_t raw;
  uint32_t magnitude() const { return raw & 0x7fff; }
  static constexpr uint32_t kInfinity = Bf16 ? 0x7f80 : 0x7c00;
  bool nan() const { return magnitude() > kInfinity; }
  bool infinite() const { return magnitude() == kInfinity; }
  bool zero() const { return Bf16 ? magnitude() < 0x80 : magnitude() == 0; }
  bool negative() const { return raw >> 15 & 1; }
};

/// Narrows an infinity or a NaN.
uint32_t narrow_special(uint32_t word, DotOutput output) {
  if (output == DotOutput::kF32) return word;
  if (word == kFactorNan) return output == DotOutput::kBf16 ? 0xfffd : 0xfe3d;
  if (output == DotOutput::kBf16) return word >> 16;
  return (word >> 16 & 0x8000) | 0x7c00 | (word >> 13 & 1023);
}

/// fp32 bits of c without quieting NaNs.
uint32_t widen_accumulator(uint32_t c, DotOutput output) {
  if (output == DotOutput::kF32) return c;
  if (output == DotOutput::kBf16) return c << 16;
  return widen_half<false>(WideU(c))[0];
}

}  // namespace

template <bool Bf16>
uint32_t dot2_special(uint32_t a0, uint32_t b0, uint32_t a1, uint32_t b1, uint32_t c, DotOutput output) {
  const Factor<Bf16> left[2] = {{a0}, {a1}}, right[2] = {{b0}, {b1}};
  bool infinite[2] = {false, false};
  for (int t = 0; t < 2; ++t) {
    if (left[t].nan() || right[t].nan()) return narrow_special(kFactorNan, output);
  }
  for (int t = 0; t < 2; ++t) {
    if ((left[t].infinite() && right[t].zero()) || (right[t].infinite() && left[t].zero())) {
      return narrow_special(kInvalidNan, output);
    }
    if (left[t].infinite() || right[t].infinite()) infinite[left[t].negative() != right[t].negative()] = true;
  }
  if (infinite[0] && infinite[1]) return narrow_special(kInvalidNan, output);
  const uint32_t word = widen_accumulator(c, output);
  if ((word & 0x7fffffff) > 0x7f800000) return narrow_special(word | 0x00400000, output);
  if ((word & 0x7fffffff) == 0x7f800000) infinite[word >> 31] = true;
  if (infinite[0] && infinite[1]) return narrow_special(kInvalidNan, output);
  return narrow_special(infinite[1] ? 0xff800000 : 0x7f800000, output);
}

template uint32_t dot2_special<false>(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, DotOutput);
template uint32_t dot2_special<true>(uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, DotOutput);

}  // namespace crest_sim::CREST_SIM_LEVEL
