// Random operands for matrix tests.
#pragma once

#include <random>

#include "number_formats.h"

namespace crest_sim_test {

/// Distributions of codes: what goes wrong in matrix units depends on exponents, signs and special values.
class Codes {
 public:
  Codes(std::mt19937& random, int style) : random_(random), style_(style) {
    std::uniform_int_distribution<int> spread(1, 30);
    spread_ = spread(random_);
  }

  uint32_t operator()(const Format& f) {
    const uint32_t any = random_() & f.mask();
    switch (style_) {
      case 0:
        return any;  // everything, NaN and infinities included
      case 1:
        return finite(f, any);  // every finite value
      case 2:
        return near_one(f, any);  // moderate exponents, some zeros and subnormals
      case 3:
        return random_() % 4 ? near_one(f, any) : (last_ ^ 1u << (f.width() - 1)) & f.mask();  // cancellation
      default:
        return random_() % 40 ? near_one(f, any) : any & top_exponent(f) ? any | top_exponent(f) : any;
    }
  }

 private:
  static uint32_t top_exponent(const Format& f) { return ((1u << f.exponent_bits) - 1) << f.mantissa_bits; }
  uint32_t finite(const Format& f, uint32_t code) {
    while (decode(f, code).kind != Kind::kFinite) code = random_() & f.mask();
    return code;
  }
  uint32_t near_one(const Format& f, uint32_t code) {
    const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1), sign = code & 1u << (f.width() - 1);
    const uint32_t kind = random_() % 16;
    if (kind == 0) return last_ = f.top == TopExponent::kFnuz ? 0 : sign;
    if (kind == 1) return last_ = finite(f, sign | mantissa);
    const int last = (1 << f.exponent_bits) - 1;
    int field = f.bias + int(random_() % uint32_t(spread_)) - spread_ / 2;
    field = std::min(std::max(field, 0), last - 1);
    return last_ = finite(f, sign | uint32_t(field) << f.mantissa_bits | mantissa);
  }

  std::mt19937& random_;
  int style_, spread_ = 1;
  uint32_t last_ = 0;
};

inline uint32_t accumulator(std::mt19937& random, int style) {
  Codes codes(random, style);
  switch (random() % 8) {
    case 0:
      return 0;
    case 1:
      return 0x80000000u;
    case 2:
      return random() & 0x807fffffu;  // subnormal
    case 3:
      return (random() & 0x80ffffffu) | 0x3f000000u;
    case 4:
      return style == 0 ? random() : (random() & 0x807fffffu) | 0x7e800000u;
    case 5:
      return style == 4 && random() % 4 == 0 ? 0x7f800000u : (random() & 0x807fffffu) | 0x2f000000u;
    default:
      return codes(kF32);
  }
}

}  // namespace crest_sim_test
