// The two-term dot product of RDNA3 in unbounded integers, from its description in sim/src/matrix/rdna3_dot.h.
#pragma once

#include <array>

#include "number_formats.h"

namespace crest_sim_test {

enum class DotResult { kF32, kF16, kBf16 };

inline uint32_t round_dot(const BigInteger& total, int unit, bool frame_negative, DotResult result, bool saturate) {
  if (total.zero()) return 0;
  const bool negative = total.negative() != frame_negative;
  if (result == DotResult::kF16) {
    const Rounded r = round_to_nearest_even(total.magnitude(), unit, 11, -14);
    const uint32_t sign = negative ? 0x8000 : 0;
    if (r.significand == 0) return 0;
    if (r.exponent > 15) return sign | (saturate ? 0x7bff : 0x7c00);
    return sign | (r.significand < 1024 ? uint32_t(r.significand)
                                        : uint32_t(r.exponent + 15) << 10 | (uint32_t(r.significand) & 1023));
  }
  // fp32, rounded before its exponent is looked at
  const Rounded r = round_to_nearest_even(total.magnitude(), unit, 24, -100000);
  uint32_t word;
  if (r.exponent < -126) {
    word = 0;
  } else if (r.exponent > 127) {
    word = (negative ? 0x80000000u : 0) | 0x7f800000u;
  } else {
    word = (negative ? 0x80000000u : 0) | uint32_t(r.exponent + 127) << 23 | (uint32_t(r.significand) & 0x7fffff);
  }
  return result == DotResult::kBf16 ? word >> 16 : word;
}

inline uint32_t rdna3_dot2(std::array<uint32_t, 2> a, std::array<uint32_t, 2> b, uint32_t c_code, bool bf16,
                           DotResult result, bool saturate = false) {
  const Format f = bf16 ? kBf16 : kF16;
  const Format c_format = result == DotResult::kF32 ? kF32 : result == DotResult::kF16 ? kF16 : kBf16;
  const auto special = [&](uint32_t word) -> uint32_t {
    if (result == DotResult::kF32) return word;
    if (word == 0xffc00a3d) return result == DotResult::kBf16 ? 0xfffd : 0xfe3d;
    return result == DotResult::kBf16 ? word >> 16 : (word >> 16 & 0x8000) | 0x7c00 | (word >> 13 & 1023);
  };
  Decoded x[2], y[2];
  for (int t = 0; t < 2; ++t) {
    x[t] = decode(f, a[t]);
    y[t] = decode(f, b[t]);
    for (Decoded* d : {&x[t], &y[t]}) {  // bf16 subnormals are zeros
      if (bf16 && d->kind == Kind::kFinite && d->significand < 128) d->significand = 0;
    }
    if (x[t].kind == Kind::kNan || y[t].kind == Kind::kNan) return special(0xffc00a3d);
  }
  bool plus = false, minus = false;
  for (int t = 0; t < 2; ++t) {
    const bool left = x[t].kind == Kind::kInfinite, right = y[t].kind == Kind::kInfinite;
    if ((left && !right && y[t].significand == 0) || (right && !left && x[t].significand == 0))
      return special(0xffc00000);
    if (left || right) (x[t].negative != y[t].negative ? minus : plus) = true;
  }
  if (plus && minus) return special(0xffc00000);
  Decoded c = decode(c_format, c_code);
  if (c.kind == Kind::kNan) {
    const uint32_t sign = c.negative ? 0x80000000u : 0;
    const uint32_t payload = c_code & ((1u << c_format.mantissa_bits) - 1);
    return special(sign | 0x7fc00000u | payload << (23 - c_format.mantissa_bits));
  }
  if (c.kind == Kind::kInfinite) (c.negative ? minus : plus) = true;
  if (plus && minus) return special(0xffc00000);
  if (plus || minus) return special(minus ? 0xff800000 : 0x7f800000);

  // fp32 (and bf16) subnormals of the accumulator count as zero; fp16 ones are normal in fp32.
  if (c_format.exponent_bits == 8 && c.significand < int64_t(1) << c_format.mantissa_bits) c.significand = 0;
  struct Term {
    BigInteger significand;
    int unit;  // value = significand × 2^unit
    bool negative;
    int lead() const { return significand.zero() ? -1000000 : unit + significand.bit_length() - 1; }
  };
  Term terms[3] = {
      {BigInteger(c.significand), c.exponent - c.mantissa_bits, c.negative}, {{}, 0, false}, {{}, 0, false}};
  int factor_exponent = -1000000;
  for (int t = 0; t < 2; ++t) {
    terms[t + 1] = {BigInteger(x[t].significand * y[t].significand),
                    x[t].exponent + y[t].exponent - 2 * f.mantissa_bits, x[t].negative != y[t].negative};
    if (!terms[t + 1].significand.zero()) factor_exponent = std::max(factor_exponent, x[t].exponent + y[t].exponent);
  }
  int lead = std::max(terms[1].lead(), terms[2].lead());
  lead = std::max(lead, result == DotResult::kF16 ? std::max(-14, terms[0].lead()) : terms[0].lead());
  if (terms[0].significand.zero() && terms[1].significand.zero() && terms[2].significand.zero()) return 0;
  const int unit = std::max(factor_exponent - 24, lead - 26);
  BigInteger total;
  for (const Term& term : terms) {
    const BigInteger cut = term.significand.scaled_toward_zero(term.unit - unit);
    total = total + (term.negative != c.negative ? -cut - BigInteger(1) : cut);
  }
  return round_dot(total, unit, c.negative, result, saturate);
}

}  // namespace crest_sim_test
