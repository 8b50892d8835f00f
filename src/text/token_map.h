#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocab_data.h"

namespace crest::text {

inline uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  uint64_t hash = bytes.size() * kMultiplier;
  const auto mix = [&](uint64_t word) { hash = std::rotl(hash ^ word, 29) * kMultiplier; };
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
    bytes.remove_prefix(8);
  }
  uint64_t word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  mix(word);
  return hash ^ hash >> 32;
}

/// Text → id by open addressing. Keeps views of the texts: they must stay where they are. Of equal texts the one
/// inserted last counts.
class TokenMap {
 public:
  TokenMap() = default;
  explicit TokenMap(size_t capacity) : slots_(std::bit_ceil(2 * capacity + 2)) {}

  void insert(std::string_view text, TokenId id) {
    Slot& slot = slots_[position(text)];
    slot = {text, id};
  }
  TokenId find(std::string_view text) const { return slots_.empty() ? kNoToken : slots_[position(text)].id; }

 private:
  struct Slot {
    std::string_view text;
    TokenId id = kNoToken;
  };
  size_t position(std::string_view text) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash_bytes(text) & mask;
    while (slots_[at].id != kNoToken && slots_[at].text != text) at = (at + 1) & mask;
    return at;
  }
  std::vector<Slot> slots_;
};

/// Map of all names of a vocabulary.
inline TokenMap map_of_names(std::span<const std::string> tokens) {
  TokenMap map(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) map.insert(tokens[i], static_cast<TokenId>(i));
  return map;
}

}  // namespace crest::text
