#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crest::text {

/// General categories, in the order of the generated table.
enum class Category : uint8_t {
  // clang-format off
  kCn, kLu, kLl, kLt, kLm, kLo, kMn, kMc, kMe, kNd, kNl, kNo, kPc, kPd, kPs, kPe, kPi, kPf, kPo, kSm, kSc, kSk, kSo,
  kZs, kZl, kZp, kCc, kCf, kCs, kCo,
  // clang-format on
};

inline constexpr char32_t kLastCodePoint = 0x10FFFF;
/// A byte b that is not part of a UTF-8 character is carried as the code kRawByte + b.
inline constexpr char32_t kRawByte = 0x110000;
inline constexpr char32_t kCodeSpace = kRawByte + 256;

struct DecodedCharacter {
  char32_t code = 0;
  uint32_t length = 0;  ///< in bytes
};

/// First character of a text that is not empty; a byte that does not start well-formed UTF-8 (overlong forms,
/// surrogates and values above 10FFFF included) is a character of its own.
DecodedCharacter decode_character(std::string_view text);
/// UTF-8 of a code point, or the byte of a raw one.
void append_character(std::string& out, char32_t code);
std::vector<char32_t> decode_characters(std::string_view text);

/// Value per code (code points and raw bytes) in two stages; blocks of one value take no room.
class CodeTable {
 public:
  CodeTable() = default;
  /// The values of runs (first code, value), sorted, starting at 0. Raw bytes get the value of U+FFFD.
  explicit CodeTable(std::span<const std::pair<char32_t, uint8_t>> runs);
  uint8_t operator[](char32_t code) const {
    return values_[(uint32_t{blocks_[code >> kShift]} << kShift) + (code & kMask)];
  }

 private:
  static constexpr uint32_t kShift = 7;
  static constexpr uint32_t kMask = (1u << kShift) - 1;
  std::vector<uint16_t> blocks_;
  std::vector<uint8_t> values_;
};

Category category(char32_t code);
uint8_t combining_class(char32_t code);
/// The property White_Space.
bool is_white_space(char32_t code);
/// \w of a pattern: letters, marks, decimal digits, connector punctuation.
bool is_word_character(char32_t code);

/// A set of code points as sorted, disjoint, non-adjacent closed ranges.
class CodeSet {
 public:
  using Range = std::pair<char32_t, char32_t>;
  CodeSet() = default;
  explicit CodeSet(std::vector<Range> ranges);
  void add(char32_t first, char32_t last);
  void add(const CodeSet& other);
  CodeSet complement() const;
  bool contains(char32_t code) const;
  std::span<const Range> ranges() const { return ranges_; }
  bool operator==(const CodeSet&) const = default;

 private:
  void normalize();
  std::vector<Range> ranges_;
};

/// \p{name} for a general category ("L", "Lu", "Nd", ...); nothing for another property.
std::optional<CodeSet> category_set(std::string_view name);
const CodeSet& white_space_set();
const CodeSet& word_set();

}  // namespace crest::text
