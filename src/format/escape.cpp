#include "format/escape.h"

#include <fmt/format.h>

#include <cstdint>

namespace crest::format {
namespace {

// Length of the well-formed UTF-8 sequence at the start of the text (Unicode 15, table 3-7), 0 when there is none.
size_t sequence_length(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const auto tail = [&](size_t i) { return (at(i) & 0xc0) == 0x80; };
  const uint8_t first = at(0);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (!tail(1) || !tail(2) || (first == 0xe0 && at(1) < 0xa0) || (first == 0xed && at(1) > 0x9f)) return 0;
    return 3;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3) || (first == 0xf0 && at(1) < 0x90) || (first == 0xf4 && at(1) > 0x8f))
      return 0;
    return 4;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string escaped(std::string_view text, size_t limit) {
  std::string result;
  while (!text.empty()) {
    if (result.size() >= limit) return result + "…";
    const size_t length = sequence_length(text);
    const auto first = static_cast<uint8_t>(text[0]);
    if (length == 0 || first < 0x20 || first == 0x7f) {
      result += first == '\n' ? "\\n" : fmt::format("\\x{:02x}", first);
      text.remove_prefix(1);
    } else {
      result += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return result;
}

}  // namespace crest::format
