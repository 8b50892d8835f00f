#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace crest::format {

/// Small, fast, the same everywhere (splitmix64, Steele et al. 2014).
class RandomBits {
 public:
  explicit RandomBits(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  /// In [0, 1).
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }
  /// Mean 0, standard deviation 1 (sum of twelve uniform values).
  float normal();

 private:
  uint64_t state_;
};

/// Valid blocks of one type whose values have a given standard deviation, to fill tensors of any size with: quantised
/// once, then copied in random order.
class BlockPool {
 public:
  BlockPool(tensor::DType dtype, float deviation);
  /// Fills a piece of a tensor that starts at a block and ends with the tensor or at a block.
  void fill(std::span<std::byte> out, uint64_t seed) const;

 private:
  size_t unit_bytes_;
  size_t units_;
  std::vector<std::byte> data_;
};

}  // namespace crest::format
