#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace crest::text::jinja {

/// What Python's str methods ask of a character.
enum CharClass : uint32_t {
  kAlpha = 1,
  kDecimal = 2,
  kDigit = 4,
  kNumeric = 8,
  kLower = 16,
  kUpper = 32,
  kTitle = 64,
  kSpace = 128,
  kPrintable = 256,
  kCased = 512,
  kCaseIgnorable = 1024,
};
uint32_t char_class(char32_t c);
inline bool is_space(char32_t c) {
  return c < 0x80 ? (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= ' ') : (char_class(c) & kSpace) != 0;
}
inline bool is_alnum(char32_t c) { return (char_class(c) & (kAlpha | kDecimal | kDigit | kNumeric)) != 0; }

/// Length in bytes of the character that starts at `position` (1 for a byte that starts none).
size_t char_size(std::string_view text, size_t position);
/// The character at `position`, which moves behind it. A byte that belongs to no character is 0xDC00 + byte.
char32_t next_char(std::string_view text, size_t& position);
/// Where the character begins that ends at `end` > 0.
size_t char_before(std::string_view text, size_t end);
/// Writes a character; 0xDC80…0xDCFF become the single byte they stand for.
void append_char(std::string& text, char32_t c);
size_t count_chars(std::string_view text);
/// Byte position of the character with this index.
size_t byte_position(std::string_view text, size_t index);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string to_casefold(std::string_view text);
std::string to_capitalized(std::string_view text);
std::string swap_case(std::string_view text);

/// One row of a case table: characters from `first` to `last` in steps of `stride` move by `delta`.
struct CaseRun {
  uint32_t first;
  uint32_t last;
  uint32_t stride;
  int32_t delta;
};
/// A character that becomes several.
struct CaseExpansion {
  uint32_t from;
  uint32_t to[3];  // 0: no more
};
template <typename T>
struct TableView {
  const T* begin_;
  size_t size_;
  const T* begin() const { return begin_; }
  const T* end() const { return begin_ + size_; }
};
struct CaseTable {
  TableView<CaseRun> runs;
  TableView<CaseExpansion> expansions;
};
extern const CaseTable kUpperTable, kLowerTable, kTitleTable, kFoldTable;
/// First character of a run << 11 | its classes, sorted.
extern const TableView<uint32_t> kClassRuns;

}  // namespace crest::text::jinja
