// The rule of CDNA3's matrix cores once more, in unbounded integers and straight from its description (arXiv
// 2511.10909; see sim/src/matrix/strict_group.h for the wording), for one element of D.
#pragma once

#include <vector>

#include "number_formats.h"

namespace crest_sim_test {

struct StrictRule {
  Format a, b;
  int group = 8;              ///< products per step
  bool even_and_odd = false;  ///< 8-bit and narrower formats
};

/// A sum in units of 2^unit whose terms were aligned to `exponent`.
struct Aligned {
  BigInteger sum;
  int exponent = 0;
};

struct Product {
  BigInteger significand;
  int unit = 0;      ///< value = significand × 2^unit
  int exponent = 0;  ///< the sum of the factors' exponents
};

inline Aligned sum_cut_products(const std::vector<Product>& products) {
  Aligned r{{}, products.front().exponent};
  for (const Product& p : products) r.exponent = std::max(r.exponent, p.exponent);
  for (const Product& p : products) r.sum = r.sum + p.significand.scaled_toward_zero(p.unit - (r.exponent - 24));
  return r;
}

/// One step: c + Σ a·b with `scale` added to the exponents of the products.
inline uint32_t strict_step(const StrictRule& rule, const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
                            uint32_t c_code, int scale) {
  constexpr uint32_t kNan = 0x7fc00000;
  const Decoded c = decode(kF32, c_code);
  bool nan = c.kind == Kind::kNan, plus = c.kind == Kind::kInfinite && !c.negative,
       minus = c.kind == Kind::kInfinite && c.negative;
  std::vector<Product> products;
  for (size_t t = 0; t < a.size(); ++t) {
    const Decoded x = decode(rule.a, a[t]), y = decode(rule.b, b[t]);
    if (x.kind == Kind::kNan || y.kind == Kind::kNan) nan = true;
    if (x.kind == Kind::kInfinite && y.kind == Kind::kFinite && y.significand == 0) nan = true;
    if (y.kind == Kind::kInfinite && x.kind == Kind::kFinite && x.significand == 0) nan = true;
    const bool negative = x.negative != y.negative;
    if (x.kind == Kind::kInfinite || y.kind == Kind::kInfinite) (negative ? minus : plus) = true;
    Product p;
    p.significand = BigInteger(x.significand) * BigInteger(y.significand);
    p.unit = x.exponent - x.mantissa_bits + y.exponent - y.mantissa_bits;
    p.exponent = p.significand.zero() ? -126 : x.exponent + y.exponent;
    if (p.unit + p.significand.bit_length() > 128) (negative ? minus : plus) = true;
    if (negative) p.significand = -p.significand;
    products.push_back(p);
  }
  if (nan || (plus && minus)) return kNan;
  if (plus || minus) return plus ? 0x7f800000 : 0xff800000;

  Aligned dot;
  if (rule.even_and_odd) {
    std::vector<Product> even, odd;
    for (size_t t = 0; t < products.size(); ++t) (t % 2 ? odd : even).push_back(products[t]);
    const Aligned first = sum_cut_products(even), second = sum_cut_products(odd);
    dot.exponent = std::max(first.exponent, second.exponent);
    dot.sum =
        first.sum.scaled_floor(first.exponent - dot.exponent) + second.sum.scaled_floor(second.exponent - dot.exponent);
  } else {
    dot = sum_cut_products(products);
  }
  if (dot.exponent > -126) dot.exponent += scale;  // a group of zeros has no scale

  const int c_exponent = c.significand ? c.exponent : -126;
  const int top = std::max(dot.exponent, c_exponent);
  const BigInteger sum = dot.sum.scaled_floor(dot.exponent - 24 - (top - 31));
  BigInteger old = BigInteger(c.negative ? -c.significand : c.significand).scaled_floor(c_exponent - 23 - (top - 24));
  if (rule.even_and_odd && c_exponent < top - 25) old = BigInteger();
  const BigInteger total = sum + old.shifted_left(7);
  return total.zero() ? 0u : encode_f32(total, top - 31);
}

inline uint32_t strict_chain(const StrictRule& rule, const std::vector<uint32_t>& a, const std::vector<uint32_t>& b,
                             uint32_t c, const std::vector<int>& scales = {}) {
  for (size_t t = 0; t < a.size(); t += size_t(rule.group)) {
    const size_t end = std::min(a.size(), t + size_t(rule.group));
    const int scale = scales.empty() ? 0 : scales[t / 32];
    c = strict_step(rule, {a.begin() + long(t), a.begin() + long(end)}, {b.begin() + long(t), b.begin() + long(end)}, c,
                    scale);
  }
  return c;
}

}  // namespace crest_sim_test
