#include "text/jinja_unicode.h"

#include <algorithm>
#include <array>

namespace crest::text::jinja {
namespace {

constexpr char32_t kLoneByte = 0xDC00;

/// Bytes of the character that starts with `lead`, 0 if none does.
size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

void append_mapped(std::string& out, char32_t c, const CaseTable& table) {
  if (c < 0x80) {
    const bool up = &table == &kUpperTable || &table == &kTitleTable;
    const char32_t first = up ? 'a' : 'A';
    out += static_cast<char>(c >= first && c < first + 26 ? c ^ 0x20 : c);
    return;
  }
  const auto* expansion = std::partition_point(table.expansions.begin(), table.expansions.end(),
                                               [c](const CaseExpansion& e) { return e.from < c; });
  if (expansion != table.expansions.end() && expansion->from == c) {
    for (const uint32_t to : expansion->to) {
      if (to != 0) append_char(out, to);
    }
    return;
  }
  const auto* run =
      std::partition_point(table.runs.begin(), table.runs.end(), [c](const CaseRun& r) { return r.last < c; });
  if (run != table.runs.end() && run->first <= c && (c - run->first) % run->stride == 0) {
    c = static_cast<char32_t>(static_cast<int64_t>(c) + run->delta);
  }
  append_char(out, c);
}

std::string map_all(std::string_view text, const CaseTable& table) {
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) append_mapped(out, next_char(text, position), table);
  return out;
}

/// A capital sigma that ends a word is lowered to another letter than one inside it.
bool final_sigma(std::string_view text, size_t begin, size_t end) {
  bool letter_before = false;
  while (begin > 0) {
    size_t position = begin = char_before(text, begin);
    const uint32_t c = char_class(next_char(text, position));
    if ((c & kCaseIgnorable) != 0) continue;
    letter_before = (c & kCased) != 0;
    break;
  }
  if (!letter_before) return false;
  while (end < text.size()) {
    const uint32_t c = char_class(next_char(text, end));
    if ((c & kCaseIgnorable) == 0) return (c & kCased) == 0;
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, size_t& position) {
  constexpr char32_t kCapitalSigma = 0x3A3;
  constexpr char32_t kFinalSigma = 0x3C2;
  const size_t begin = position;
  const char32_t c = next_char(text, position);
  if (c == kCapitalSigma && final_sigma(text, begin, position)) {
    append_char(out, kFinalSigma);
  } else {
    append_mapped(out, c, kLowerTable);
  }
}

}  // namespace

uint32_t char_class(char32_t c) {
  const auto look_up = [](char32_t wanted) {
    constexpr uint32_t kMask = 2047;
    const uint32_t key = static_cast<uint32_t>(wanted) << 11 | kMask;
    return *(std::upper_bound(kClassRuns.begin(), kClassRuns.end(), key) - 1) & kMask;
  };
  static const auto ascii = [&look_up] {
    std::array<uint32_t, 128> classes{};
    for (uint32_t i = 0; i < classes.size(); ++i) classes[i] = look_up(i);
    return classes;
  }();
  return c < ascii.size() ? ascii[c] : look_up(c);
}

size_t char_size(std::string_view text, size_t position) {
  size_t end = position;
  next_char(text, end);
  return end - position;
}

size_t char_before(std::string_view text, size_t end) {
  for (size_t size = std::min<size_t>(4, end); size > 1; --size) {
    if (char_size(text, end - size) == size) return end - size;
  }
  return end - 1;
}

char32_t next_char(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(position);
  const size_t size = sequence_length(lead);
  if (size == 1) return byte(position++);
  const char32_t lone = kLoneByte + lead;
  if (size == 0 || position + size > text.size()) return ++position, lone;
  char32_t c = lead & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(position + i) & 0xC0u) != 0x80u) return ++position, lone;
    c = c << 6 | (byte(position + i) & 0x3Fu);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kSmallest[size] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return ++position, lone;
  position += size;
  return c;
}

void append_char(std::string& text, char32_t c) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (c >= kLoneByte + 0x80 && c <= kLoneByte + 0xFF) {
    add(c - kLoneByte);
  } else if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | c >> 6);
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3F));
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

size_t count_chars(std::string_view text) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (ascii) return text.size();
  size_t count = 0;
  for (size_t position = 0; position < text.size(); ++count) next_char(text, position);
  return count;
}

size_t byte_position(std::string_view text, size_t index) {
  size_t position = 0;
  while (index-- > 0 && position < text.size()) next_char(text, position);
  return position;
}

std::string to_upper(std::string_view text) { return map_all(text, kUpperTable); }
std::string to_casefold(std::string_view text) { return map_all(text, kFoldTable); }

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) append_lower(out, text, position);
  return out;
}

std::string to_title(std::string_view text) {
  std::string out;
  bool inside_word = false;
  for (size_t position = 0; position < text.size();) {
    size_t after = position;
    const char32_t c = next_char(text, after);
    if (inside_word) {
      append_lower(out, text, position);
    } else {
      append_mapped(out, c, kTitleTable);
      position = after;
    }
    inside_word = (char_class(c) & kCased) != 0;
  }
  return out;
}

std::string to_capitalized(std::string_view text) {
  if (text.empty()) return {};
  std::string out;
  size_t position = 0;
  append_mapped(out, next_char(text, position), kTitleTable);
  while (position < text.size()) append_lower(out, text, position);
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (size_t position = 0; position < text.size();) {
    size_t after = position;
    const char32_t c = next_char(text, after);
    const uint32_t classes = char_class(c);
    if ((classes & kUpper) != 0) {
      append_lower(out, text, position);
      continue;
    }
    if ((classes & kLower) != 0) {
      append_mapped(out, c, kUpperTable);
    } else {
      append_char(out, c);
    }
    position = after;
  }
  return out;
}

}  // namespace crest::text::jinja
