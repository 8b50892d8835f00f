#include <algorithm>
#include <cstring>

#include "text/jinja_methods.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {

size_t find_bytes(std::string_view text, std::string_view needle, size_t begin) {
  if (begin > text.size()) return std::string_view::npos;
  // memmem is linear whatever the needle; std::string::find is not.
  const void* found = memmem(text.data() + begin, text.size() - begin, needle.data(), needle.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t rfind_bytes(std::string_view text, std::string_view needle) {
  if (needle.empty()) return text.size();
  const std::string backwards(text.rbegin(), text.rend());
  const std::string reversed(needle.rbegin(), needle.rend());
  const size_t found = find_bytes(backwards, reversed);
  return found == std::string_view::npos ? found : text.size() - found - needle.size();
}

Text strip_text(Runtime& runtime, const Text& text, const Value& chars, bool left, bool right) {
  const std::string& bytes = text.bytes();
  std::u32string set;
  if (!chars.none_or_missing()) {
    if (!chars.is_string()) raise(Fault::kType, "strip arg must be None or str, not {}", type_name(chars));
    for (size_t i = 0; i < chars.bytes().size();) set += next_char(chars.bytes(), i);
    runtime.tick_chars(8 * set.size());
    std::sort(set.begin(), set.end());
  }
  const auto wanted = [&](char32_t c) {
    return chars.none_or_missing() ? is_space(c) : std::binary_search(set.begin(), set.end(), c);
  };
  size_t begin = 0;
  while (left && begin < bytes.size()) {
    size_t after = begin;
    if (!wanted(next_char(bytes, after))) break;
    begin = after;
  }
  size_t end = bytes.size();
  while (right && end > begin) {
    const size_t start = char_before(bytes, end);
    size_t cursor = start;
    if (!wanted(next_char(bytes, cursor))) break;
    end = start;
  }
  runtime.tick_chars(bytes.size() - (end - begin));
  return text.slice(begin, end);
}

std::vector<Value> split_text(Runtime& runtime, const Value& self, const Value& separator, Int limit) {
  const Text& text = self.text();
  const std::string& bytes = text.bytes();
  if (separator.none_or_missing()) runtime.tick_chars(bytes.size());
  runtime.tick_bytes(bytes.size());
  std::vector<Value> parts;
  const auto add = [&](size_t begin, size_t end) {
    parts.push_back(runtime.string(text.slice(begin, end), self.string().markup));
  };
  if (limit < 0) limit = static_cast<Int>(bytes.size()) + 1;
  if (!separator.none_or_missing()) {
    if (!separator.is_string()) raise(Fault::kType, "must be str or None, not {}", type_name(separator));
    if (separator.text().empty()) raise(Fault::kValue, "empty separator");
    size_t begin = 0;
    for (size_t at = 0; limit > 0 && (at = find_bytes(bytes, separator.bytes(), begin)) != std::string::npos; --limit) {
      add(begin, at);
      begin = at + separator.bytes().size();
    }
    add(begin, bytes.size());
    return parts;
  }
  for (size_t position = 0; position < bytes.size();) {
    size_t after = position;
    if (is_space(next_char(bytes, after))) {
      position = after;
      continue;
    }
    if (limit-- == 0) {
      add(position, bytes.size());
      break;
    }
    const size_t begin = position;
    while (position < bytes.size()) {
      after = position;
      if (is_space(next_char(bytes, after))) break;
      position = after;
    }
    add(begin, position);
  }
  return parts;
}

namespace {

/// Ranges between separators, from the right, in the order of the text.
std::vector<std::pair<size_t, size_t>> rsplit_ranges(const std::string& bytes, const std::string& separator,
                                                     Int limit) {
  const std::string backwards(bytes.rbegin(), bytes.rend());
  const std::string reversed(separator.rbegin(), separator.rend());
  std::vector<std::pair<size_t, size_t>> ranges;
  size_t begin = 0;
  for (size_t at = 0; limit > 0 && (at = find_bytes(backwards, reversed, begin)) != std::string::npos; --limit) {
    ranges.emplace_back(bytes.size() - at, bytes.size() - begin);
    begin = at + separator.size();
  }
  ranges.emplace_back(0, bytes.size() - begin);
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

/// The last `limit` words and what is in front of them.
std::vector<std::pair<size_t, size_t>> rsplit_words(const std::string& bytes, Int limit) {
  std::vector<std::pair<size_t, size_t>> ranges;
  const auto space_before = [&](size_t end) {
    size_t cursor = char_before(bytes, end);
    return is_space(next_char(bytes, cursor));
  };
  for (size_t end = bytes.size(); true; --limit) {
    while (end > 0 && space_before(end)) end = char_before(bytes, end);
    if (end == 0) break;
    size_t begin = limit > 0 ? end : 0;
    while (begin > 0 && !space_before(begin)) begin = char_before(bytes, begin);
    ranges.emplace_back(begin, end);
    end = begin;
  }
  std::reverse(ranges.begin(), ranges.end());
  return ranges;
}

}  // namespace

std::vector<Value> rsplit_text(Runtime& runtime, const Value& self, const Value& separator, Int limit) {
  const Text& text = self.text();
  runtime.tick_chars(text.size());
  if (limit < 0) limit = static_cast<Int>(text.size()) + 1;
  if (!separator.none_or_missing()) {
    if (!separator.is_string()) raise(Fault::kType, "must be str or None, not {}", type_name(separator));
    if (separator.text().empty()) raise(Fault::kValue, "empty separator");
  }
  const auto ranges = separator.none_or_missing() ? rsplit_words(text.bytes(), limit)
                                                  : rsplit_ranges(text.bytes(), separator.bytes(), limit);
  std::vector<Value> parts;
  for (const auto& [begin, end] : ranges) parts.push_back(runtime.string(text.slice(begin, end), self.string().markup));
  return parts;
}

std::vector<Text> split_lines(Runtime& runtime, const Text& text, bool keep_ends) {
  const std::string& bytes = text.bytes();
  runtime.tick_chars(bytes.size());
  std::vector<Text> lines;
  const auto is_break = [](char32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  size_t begin = 0;
  for (size_t position = 0; position < bytes.size();) {
    const size_t at = position;
    const char32_t c = next_char(bytes, position);
    if (!is_break(c)) continue;
    if (c == '\r' && position < bytes.size() && bytes[position] == '\n') ++position;
    lines.push_back(text.slice(begin, keep_ends ? position : at));
    runtime.tick();
    begin = position;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

Text replace_text(Runtime& runtime, const Text& text, const Text& from, const Text& to, Int limit) {
  const std::string& bytes = text.bytes();
  runtime.tick_bytes(bytes.size());
  if (limit < 0) limit = static_cast<Int>(bytes.size()) + 1;
  Text out;
  size_t done = 0;
  const auto insert = [&](size_t at) {
    out.append(text, done, at);
    runtime.check_string(static_cast<Int>(out.size() + to.size()));
    runtime.tick_bytes(to.size() + at - done);
    out.append(to);
  };
  if (from.empty()) {
    for (size_t position = 0; limit > 0; --limit) {
      insert(position);
      done = position;
      if (position >= bytes.size()) break;
      next_char(bytes, position);
    }
  } else {
    for (size_t at = 0; limit > 0 && (at = find_bytes(bytes, from.bytes(), done)) != std::string::npos; --limit) {
      insert(at);
      done = at + from.size();
    }
  }
  out.append(text, done, bytes.size());
  return out;
}

void append_repeated(Runtime& runtime, Text& out, const Text& text, Int count) {
  if (count <= 0 || text.empty()) return;
  runtime.tick_bytes(text.size() * static_cast<size_t>(count));
  // By doubling: few appends, however many times.
  Text block = text;
  for (; true; count >>= 1) {
    if ((count & 1) != 0) out.append(block);
    if (count == 1) return;
    block.append(Text(block));
  }
}

Text center_text(Runtime& runtime, const StringObject& self, Int width, const Text& fill) {
  const Int missing = width - runtime.text_length(self);
  if (missing <= 0) return self.text;
  runtime.check_string(missing * static_cast<Int>(fill.size()) + static_cast<Int>(self.text.size()));
  // CPython's rule for who gets the odd one.
  const Int left = missing / 2 + (missing & width & 1);
  Text out;
  append_repeated(runtime, out, fill, left);
  out.append(self.text);
  append_repeated(runtime, out, fill, missing - left);
  return out;
}

bool is_lower_text(std::string_view text) {
  bool cased = false;
  for (size_t position = 0; position < text.size();) {
    const uint32_t c = char_class(next_char(text, position));
    if ((c & (kUpper | kTitle)) != 0) return false;
    cased = cased || (c & kLower) != 0;
  }
  return cased;
}

bool is_upper_text(std::string_view text) {
  bool cased = false;
  for (size_t position = 0; position < text.size();) {
    const uint32_t c = char_class(next_char(text, position));
    if ((c & (kLower | kTitle)) != 0) return false;
    cased = cased || (c & kUpper) != 0;
  }
  return cased;
}

}  // namespace crest::text::jinja
