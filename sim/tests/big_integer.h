// Unbounded integers for test oracles: slow and plain.
#pragma once

#include <cstdint>
#include <vector>

namespace crest_sim_test {

class BigInteger {
 public:
  BigInteger() = default;
  BigInteger(int64_t value) : negative_(value < 0) {  // NOLINT: numbers are numbers
    uint64_t magnitude = negative_ ? 0 - uint64_t(value) : uint64_t(value);
    for (; magnitude; magnitude >>= 32) words_.push_back(uint32_t(magnitude));
  }

  bool zero() const { return words_.empty(); }
  bool negative() const { return negative_; }
  BigInteger magnitude() const {
    BigInteger r = *this;
    r.negative_ = false;
    return r;
  }
  BigInteger operator-() const {
    BigInteger r = *this;
    if (!zero()) r.negative_ = !negative_;
    return r;
  }
  /// Bits of the magnitude: ⌊log2⌋ + 1; 0 for 0.
  int bit_length() const {
    if (zero()) return 0;
    int top = 31;
    while (!(words_.back() >> top & 1)) --top;
    return int(words_.size() - 1) * 32 + top + 1;
  }
  bool bit(int index) const {
    const auto word = size_t(index) / 32;
    return index >= 0 && word < words_.size() && (words_[word] >> index % 32 & 1);
  }
  int64_t to_int64() const {
    uint64_t value = 0;
    for (size_t i = 0; i < words_.size() && i < 2; ++i) value |= uint64_t(words_[i]) << 32 * i;
    return negative_ ? -int64_t(value) : int64_t(value);
  }

  friend BigInteger operator+(const BigInteger& a, const BigInteger& b) {
    if (a.negative_ == b.negative_) {
      BigInteger r = add_magnitudes(a, b);
      r.negative_ = a.negative_ && !r.zero();
      return r;
    }
    const int order = compare_magnitudes(a, b);
    if (order == 0) return {};
    BigInteger r = order > 0 ? subtract_magnitudes(a, b) : subtract_magnitudes(b, a);
    r.negative_ = order > 0 ? a.negative_ : b.negative_;
    return r;
  }
  friend BigInteger operator-(const BigInteger& a, const BigInteger& b) { return a + -b; }
  friend BigInteger operator*(const BigInteger& a, const BigInteger& b) {
    BigInteger r;
    for (size_t i = 0; i < a.words_.size(); ++i) {
      for (int bit = 0; bit < 32; ++bit) {
        if (a.words_[i] >> bit & 1) r = add_magnitudes(r, b.magnitude().shifted_left(int(i) * 32 + bit));
      }
    }
    r.negative_ = a.negative_ != b.negative_ && !r.zero();
    return r;
  }
  friend bool operator==(const BigInteger& a, const BigInteger& b) { return (a - b).zero(); }
  friend bool operator<(const BigInteger& a, const BigInteger& b) { return (a - b).negative_; }

  BigInteger shifted_left(int count) const {
    BigInteger r;
    r.negative_ = negative_;
    r.words_.assign(size_t(count) / 32, 0);
    uint32_t carry = 0;
    for (const uint32_t word : words_) {
      const uint64_t wide = uint64_t(word) << count % 32 | carry;
      r.words_.push_back(uint32_t(wide));
      carry = uint32_t(wide >> 32);
    }
    r.words_.push_back(carry);
    r.trim();
    return r;
  }
  /// Multiplies by 2^shift and cuts the fraction toward zero.
  BigInteger scaled_toward_zero(int shift) const {
    if (shift >= 0) return shifted_left(shift);
    BigInteger r;
    for (int i = -shift; i < bit_length(); ++i) {
      if (bit(i)) r = add_magnitudes(r, BigInteger(1).shifted_left(i + shift));
    }
    r.negative_ = negative_ && !r.zero();
    return r;
  }
  /// Multiplies by 2^shift and floors.
  BigInteger scaled_floor(int shift) const {
    const BigInteger cut = scaled_toward_zero(shift);
    if (shift >= 0 || !negative_ || cut.shifted_left(-shift) == *this) return cut;
    return cut - BigInteger(1);
  }

 private:
  void trim() {
    while (!words_.empty() && words_.back() == 0) words_.pop_back();
    if (words_.empty()) negative_ = false;
  }
  static int compare_magnitudes(const BigInteger& a, const BigInteger& b) {
    if (a.words_.size() != b.words_.size()) return a.words_.size() < b.words_.size() ? -1 : 1;
    for (size_t i = a.words_.size(); i-- > 0;) {
      if (a.words_[i] != b.words_[i]) return a.words_[i] < b.words_[i] ? -1 : 1;
    }
    return 0;
  }
  static BigInteger add_magnitudes(const BigInteger& a, const BigInteger& b) {
    BigInteger r;
    uint64_t carry = 0;
    for (size_t i = 0; i < a.words_.size() || i < b.words_.size() || carry; ++i) {
      carry += (i < a.words_.size() ? a.words_[i] : 0) + uint64_t(i < b.words_.size() ? b.words_[i] : 0);
      r.words_.push_back(uint32_t(carry));
      carry >>= 32;
    }
    r.trim();
    return r;
  }
  static BigInteger subtract_magnitudes(const BigInteger& a, const BigInteger& b) {
    BigInteger r;
    int64_t borrow = 0;
    for (size_t i = 0; i < a.words_.size(); ++i) {
      int64_t word = int64_t(a.words_[i]) - (i < b.words_.size() ? b.words_[i] : 0) + borrow;
      borrow = word < 0 ? -1 : 0;
      r.words_.push_back(uint32_t(word));
    }
    r.trim();
    return r;
  }

  std::vector<uint32_t> words_;  // least significant first, no leading zeros
  bool negative_ = false;
};

/// significand × 2^exponent rounded to nearest-even in a binary format with `precision` significant bits and exponents
/// from `min_exponent`; returns the bits of an IEEE encoding with `fraction_bits` = precision - 1 (no sign).
struct Rounded {
  int64_t significand = 0;  ///< below 2^precision
  int exponent = 0;         ///< of the leading bit of a normal result
};
inline Rounded round_to_nearest_even(const BigInteger& magnitude, int exponent, int precision, int min_exponent) {
  if (magnitude.zero()) return {0, min_exponent};
  int lead = exponent + magnitude.bit_length() - 1;
  if (lead < min_exponent) lead = min_exponent;
  const int last = lead - (precision - 1);  // weight of the result's last place
  BigInteger kept = magnitude.scaled_toward_zero(exponent - last);
  if (exponent < last) {
    const int half = last - exponent - 1;
    bool rest = false;
    for (int i = 0; i < half; ++i) rest |= magnitude.bit(i);
    if (magnitude.bit(half) && (rest || kept.bit(0))) kept = kept + BigInteger(1);
  }
  if (kept.bit_length() > precision) {
    kept = kept.scaled_toward_zero(-1);
    ++lead;
  }
  return {kept.to_int64(), lead};
}

}  // namespace crest_sim_test
