#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace crest::ops {

/// Reproducible random numbers for cases and tests (SplitMix64).
class CaseRandom {
 public:
  explicit CaseRandom(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  int64_t below(int64_t limit) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(limit)); }
  float uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(static_cast<double>(bits() >> 11) * 0x1p-53);
  }
  /// Sum of four uniforms, scaled to mean 0 and variance 1: close to normal, without long tails.
  float normal() {
    float sum = 0;
    for (int i = 0; i < 4; ++i) sum += uniform(-1, 1);
    return sum * 0.8660254f;
  }

 private:
  uint64_t state_;
};

/// Memory between two guard zones, filled with 0xff (NaN as fp32) until written.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t count) : count_(count), bytes_(static_cast<size_t>(count) * sizeof(T) + 2 * kGuard) {
    poison();
  }

  T* data() { return reinterpret_cast<T*>(bytes_.data() + kGuard); }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data() + kGuard); }
  int64_t size() const { return count_; }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }

  void poison() {
    std::memset(bytes_.data(), kPattern, bytes_.size());
    std::memset(bytes_.data() + kGuard, 0xff, static_cast<size_t>(count_) * sizeof(T));
  }
  void fill(const std::vector<T>& values) { std::copy(values.begin(), values.end(), data()); }
  std::vector<T> values() const { return std::vector<T>(data(), data() + count_); }
  /// False when something wrote outside.
  bool intact() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != kPattern || bytes_[bytes_.size() - 1 - i] != kPattern) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr uint8_t kPattern = 0xa5;
  int64_t count_;
  std::vector<uint8_t> bytes_;
};

}  // namespace crest::ops
