#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "text/unicode.h"

namespace crest::text {

/// A regular expression as tokenizer.json files contain it (Oniguruma's syntax), taken apart: every literal, class,
/// escape,
/// '.', '^', '$' and '\b' is a set of code points, all else is structure. The sets come from our Unicode tables, so the
/// engine below needs to know nothing of Unicode.
struct PatternSyntax {
  /// Structure that PCRE2 reads as it is ("(?:", "|", "+", "{1,3}"), or a reference to a set.
  struct Item {
    std::string text;
    int set = -1;  ///< index into sets, or -1: text
  };
  std::vector<Item> items;
  std::vector<CodeSet> sets;  ///< distinct
};

/// Known: groups, look-around, alternatives, quantifiers (greedy, lazy, possessive), (?i), classes, \p{general
/// category},
/// \s \d \w \b and the usual escapes. Anything else is an error that names it.
Result<PatternSyntax> parse_pattern(std::string_view pattern);
/// A pattern that matches exactly this text.
Result<PatternSyntax> literal_pattern(std::string_view text);

}  // namespace crest::text
