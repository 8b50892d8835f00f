#pragma once

#include <cstdint>
#include <span>

namespace crest::text {

/// Canonical decomposition of one step; second is 0 for a singleton. `composes`: NFC puts the two together again.
struct Decomposition {
  char32_t code;
  char32_t first;
  char32_t second;
  bool composes;
};

extern const char* const kUnicodeVersion;
/// Code point << 8 | value, wherever the value changes, from code point 0 on. Values: Category, combining class.
extern const std::span<const uint32_t> kCategoryRuns;
extern const std::span<const uint32_t> kCombiningRuns;
/// Sorted by code; Hangul syllables are left to arithmetic.
extern const std::span<const Decomposition> kDecompositions;

}  // namespace crest::text
