#include "text/unicode.h"

#include <algorithm>

#include "text/unicode_data.h"

namespace crest::text {
namespace {

constexpr std::array<std::string_view, 30> kCategoryNames = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};

CodeTable table_of(std::span<const uint32_t> packed) {
  std::vector<std::pair<char32_t, uint8_t>> runs;
  runs.reserve(packed.size());
  for (const uint32_t run : packed) runs.emplace_back(run >> 8, static_cast<uint8_t>(run & 0xFF));
  return CodeTable(runs);
}

/// Calls add(first, last) for each run of categories that `wanted` accepts.
template <typename Wanted, typename Add>
void for_each_category_run(Wanted wanted, Add add) {
  for (size_t i = 0; i < kCategoryRuns.size(); ++i) {
    const char32_t first = kCategoryRuns[i] >> 8;
    const char32_t last = i + 1 < kCategoryRuns.size() ? (kCategoryRuns[i + 1] >> 8) - 1 : kLastCodePoint;
    if (wanted(static_cast<Category>(kCategoryRuns[i] & 0xFF))) add(first, last);
  }
}

bool is_separator(Category value) { return value >= Category::kZs && value <= Category::kZp; }

bool is_continuation(std::string_view text, size_t index, uint8_t low = 0x80, uint8_t high = 0xBF) {
  if (index >= text.size()) return false;
  const auto byte = static_cast<uint8_t>(text[index]);
  return byte >= low && byte <= high;
}

}  // namespace

DecodedCharacter decode_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const DecodedCharacter raw{kRawByte + lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return raw;
  if (lead < 0xE0) {
    if (!is_continuation(text, 1)) return raw;
    return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  }
  if (lead < 0xF0) {
    const uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : 0xBF;
    if (!is_continuation(text, 1, low, high) || !is_continuation(text, 2)) return raw;
    return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  const uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
  if (!is_continuation(text, 1, low, high) || !is_continuation(text, 2) || !is_continuation(text, 3)) return raw;
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

void append_character(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<uint8_t>(byte))); };
  if (code >= kRawByte) {
    put(code - kRawByte);
  } else if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

std::vector<char32_t> decode_characters(std::string_view text) {
  std::vector<char32_t> codes;
  for (size_t i = 0; i < text.size();) {
    const auto [code, length] = decode_character(text.substr(i));
    codes.push_back(code);
    i += length;
  }
  return codes;
}

CodeTable::CodeTable(std::span<const std::pair<char32_t, uint8_t>> runs) {
  const auto value_at = [&](char32_t code) {
    const auto next =
        std::upper_bound(runs.begin(), runs.end(), code, [](char32_t c, const auto& run) { return c < run.first; });
    return std::prev(next)->second;
  };
  std::array<int, 256> uniform;
  uniform.fill(-1);
  const uint8_t raw = value_at(0xFFFD);
  size_t run = 0;
  for (char32_t start = 0; start < kCodeSpace; start += kMask + 1) {
    std::array<uint8_t, kMask + 1> block;
    for (char32_t i = 0; i <= kMask; ++i) {
      while (run + 1 < runs.size() && runs[run + 1].first <= start + i) ++run;
      block[i] = start >= kRawByte ? raw : runs[run].second;
    }
    const bool is_uniform = std::all_of(block.begin(), block.end(), [&](uint8_t value) { return value == block[0]; });
    if (is_uniform && uniform[block[0]] >= 0) {
      blocks_.push_back(static_cast<uint16_t>(uniform[block[0]]));
      continue;
    }
    const auto index = static_cast<uint16_t>(values_.size() >> kShift);
    if (is_uniform) uniform[block[0]] = index;
    blocks_.push_back(index);
    values_.insert(values_.end(), block.begin(), block.end());
  }
}

Category category(char32_t code) {
  static const CodeTable table = table_of(kCategoryRuns);
  return static_cast<Category>(table[code]);
}

uint8_t combining_class(char32_t code) {
  static const CodeTable table = table_of(kCombiningRuns);
  return table[code];
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0D);
  return code == 0x85 || is_separator(category(code));
}

bool is_word_character(char32_t code) {
  const Category value = category(code);
  return (value >= Category::kLu && value <= Category::kNd) || value == Category::kPc;
}

CodeSet::CodeSet(std::vector<Range> ranges) : ranges_(std::move(ranges)) { normalize(); }

void CodeSet::add(char32_t first, char32_t last) {
  ranges_.emplace_back(first, last);
  normalize();
}

void CodeSet::add(const CodeSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  normalize();
}

void CodeSet::normalize() {
  std::sort(ranges_.begin(), ranges_.end());
  std::vector<Range> merged;
  for (const Range& range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  ranges_ = std::move(merged);
}

CodeSet CodeSet::complement() const {
  CodeSet result;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) result.ranges_.emplace_back(next, range.first - 1);
    next = range.second + 1;
  }
  if (next <= kLastCodePoint) result.ranges_.emplace_back(next, kLastCodePoint);
  return result;
}

bool CodeSet::contains(char32_t code) const {
  const auto next = std::upper_bound(ranges_.begin(), ranges_.end(), code,
                                     [](char32_t c, const Range& range) { return c < range.first; });
  return next != ranges_.begin() && std::prev(next)->second >= code;
}

std::optional<CodeSet> category_set(std::string_view name) {
  std::array<bool, 30> wanted{};
  bool known = false;
  for (size_t i = 0; i < kCategoryNames.size(); ++i) {
    const std::string_view candidate = kCategoryNames[i];
    wanted[i] = name == candidate || (name.size() == 1 && name[0] == candidate[0]);
    known |= wanted[i];
  }
  if (!known) return std::nullopt;
  std::vector<CodeSet::Range> ranges;
  for_each_category_run([&](Category value) { return wanted[static_cast<size_t>(value)]; },
                        [&](char32_t first, char32_t last) { ranges.emplace_back(first, last); });
  return CodeSet(std::move(ranges));
}

const CodeSet& white_space_set() {
  static const CodeSet set = [] {
    std::vector<CodeSet::Range> ranges = {{0x09, 0x0D}, {0x85, 0x85}};
    for_each_category_run(is_separator, [&](char32_t first, char32_t last) { ranges.emplace_back(first, last); });
    return CodeSet(std::move(ranges));
  }();
  return set;
}

const CodeSet& word_set() {
  static const CodeSet set = [] {
    std::vector<CodeSet::Range> ranges;
    for_each_category_run(
        [](Category value) { return (value >= Category::kLu && value <= Category::kNd) || value == Category::kPc; },
        [&](char32_t first, char32_t last) { ranges.emplace_back(first, last); });
    return CodeSet(std::move(ranges));
  }();
  return set;
}

}  // namespace crest::text
