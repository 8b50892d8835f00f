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
  return hash ^ hash >> 29;
}

/// Text → id by open addressing. Keeps views of the texts: they must stay where they are. Of equal texts the one
/// inserted last counts.
class TokenMap {
 public:
  TokenMap() = default;
  explicit TokenMap(size_t capacity) : slots_(std::bit_ceil(capacity + capacity / 2 + 2)) {}

  void insert(std::string_view text, TokenId id) {
    const uint64_t hash = hash_bytes(text);
    slots_[position(text, hash)] = {text.data(), static_cast<uint32_t>(text.size()), static_cast<uint32_t>(hash >> 32),
                                    id};
  }
  TokenId find(std::string_view text) const {
    return slots_.empty() ? kNoToken : slots_[position(text, hash_bytes(text))].id;
  }

 private:
  struct Slot {
    const char* data = nullptr;
    uint32_t size = 0;
    uint32_t tag = 0;  ///< upper half of the hash: most other texts are told apart without reading them
    TokenId id = kNoToken;
  };
  size_t position(std::string_view text, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.id == kNoToken) return at;
      if (slot.tag == tag && std::string_view(slot.data, slot.size) == text) return at;
    }
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
