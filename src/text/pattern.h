#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "text/pattern_syntax.h"
#include "text/unicode.h"

struct pcre2_real_code_8;

namespace crest::text {

/// A text seen by a pattern: one class number per character.
using ClassText = std::span<const uint8_t>;

/// A compiled pattern. Code points that no set of the pattern tells apart share a class (at most 256 of them), and
/// PCRE2 (with its JIT where the system allows it) runs over one class number per character: byte bitmaps instead of
/// Unicode properties, whatever the script. Immutable; usable from several threads.
class Pattern {
 public:
  static Result<Pattern> compile(std::string_view pattern);
  static Result<Pattern> compile_literal(std::string_view text);

  /// Class of a code point or raw byte (see kRawByte).
  uint8_t class_of(char32_t code) const { return classes_[code]; }
  /// Class numbers of all characters of a text, appended to `classes`.
  void classify(std::string_view text, std::vector<uint8_t>& classes) const;

  struct Match {
    size_t begin = 0;
    size_t end = 0;
  };
  /// Calls on_match for each match, left to right, empty ones included but for those that touch the match before.
  /// Error: the pattern used up its budget of backtracking.
  template <typename OnMatch>
  Status for_each_match(ClassText text, OnMatch on_match) const {
    Match match;
    size_t start = 0, last_end = static_cast<size_t>(-1);
    while (start <= text.size()) {
      CREST_TRY(const bool found, find(text, start, match));
      if (!found) break;
      const bool empty = match.begin == match.end;
      if (!empty || match.end != last_end) on_match(match);
      last_end = match.end;
      start = empty ? match.end + 1 : match.end;
    }
    return {};
  }

 private:
  static Result<Pattern> build(const PatternSyntax& syntax, std::string_view source);
  Result<bool> find(ClassText text, size_t start, Match& match) const;

  std::shared_ptr<const pcre2_real_code_8> code_;
  CodeTable classes_;
  std::array<uint8_t, 128> ascii_classes_{};
};

}  // namespace crest::text
