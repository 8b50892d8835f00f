#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace crest::core {

/// SHA-256 (FIPS 180-4), streaming.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  std::array<uint8_t, 32> digest();

 private:
  void block(const uint8_t* data);
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> buffer_{};
  uint64_t length_ = 0;
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace crest::core
