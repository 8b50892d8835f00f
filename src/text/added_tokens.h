#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "text/vocab_data.h"

namespace crest::text {

/// Longer added tokens are refused: the search must stay linear in the text.
inline constexpr size_t kMaxAddedTokenBytes = 1024;

/// Part of a text: an added token, or text between them (id is kNoToken).
struct Fragment {
  size_t begin = 0;
  size_t end = 0;
  TokenId id = kNoToken;
};

/// Sorted, disjoint stretches [begin, end) of a text in which control tokens are recognised.
using TrustedRanges = std::span<const std::pair<size_t, size_t>>;

/// Finds added tokens in text: leftmost, longest.
class AddedTokenFinder {
 public:
  struct Entry {
    std::string text;
    AddedToken token;
    bool is_control = false;
  };
  /// Of two entries with one text the first counts.
  explicit AddedTokenFinder(std::vector<Entry> entries = {});

  bool empty() const { return entries_.empty(); }
  /// Fragments that cover the text, none empty. A control token is a token only where a trusted range covers it;
  /// elsewhere its spelling is plain text as a whole, shorter tokens in it included.
  std::vector<Fragment> cut(std::string_view text, TrustedRanges trusted) const;

 private:
  const Entry* longest_at(std::string_view text, size_t at) const;
  /// trusted: the range around `at`, or the next one.
  bool is_allowed(const Entry& entry, std::string_view text, size_t at, std::pair<size_t, size_t> trusted) const;

  std::vector<Entry> entries_;  ///< sorted by text
  std::bitset<256> starts_;     ///< bytes that an entry starts with
};

}  // namespace crest::text
