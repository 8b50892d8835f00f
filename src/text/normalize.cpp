#include "text/normalize.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "text/unicode.h"
#include "text/unicode_data.h"

namespace crest::text {
namespace {

constexpr char32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28, kSCount = kLCount * kVCount * kTCount;

const Decomposition* find_decomposition(char32_t code) {
  const auto at = std::lower_bound(kDecompositions.begin(), kDecompositions.end(), code,
                                   [](const Decomposition& entry, char32_t c) { return entry.code < c; });
  return at != kDecompositions.end() && at->code == code ? &*at : nullptr;
}

enum Inertness : uint8_t {
  kInert = 0,          // NFC and NFD keep it, whatever comes before it
  kChangesInNfd = 1,   // decomposes, but is fine in NFC
  kChangesInBoth = 2,  // a mark, a character that NFC replaces, or one that may combine with what comes before it
};

const CodeTable& inertness() {
  static const CodeTable table = [] {
    std::vector<std::pair<char32_t, uint8_t>> values;  // one entry per code that is not inert
    for (const Decomposition& entry : kDecompositions) {
      values.emplace_back(entry.code, entry.composes ? kChangesInNfd : kChangesInBoth);
      if (entry.composes) values.emplace_back(entry.second, kChangesInBoth);
    }
    for (char32_t i = 0; i < kSCount; ++i) values.emplace_back(kSBase + i, kChangesInNfd);
    for (char32_t i = 0; i < kVCount; ++i) values.emplace_back(kVBase + i, kChangesInBoth);
    for (char32_t i = 1; i < kTCount; ++i) values.emplace_back(kTBase + i, kChangesInBoth);
    for (char32_t code = 0; code <= kLastCodePoint; ++code) {
      if (combining_class(code) != 0) values.emplace_back(code, kChangesInBoth);
    }
    std::sort(values.begin(), values.end());
    std::vector<std::pair<char32_t, uint8_t>> runs = {{0, kInert}};
    for (size_t i = 0; i < values.size(); ++i) {
      const auto [code, value] = values[i];
      if (i + 1 < values.size() && values[i + 1].first == code) continue;  // the strongest comes last
      if (runs.back().first == code) {
        runs.back().second = value;
      } else {
        runs.emplace_back(code, value);
      }
      runs.emplace_back(code + 1, kInert);
    }
    return CodeTable(runs);
  }();
  return table;
}

void append_decomposition(std::vector<char32_t>& out, char32_t code) {
  if (code >= kSBase && code < kSBase + kSCount) {
    const char32_t index = code - kSBase;
    out.push_back(kLBase + index / (kVCount * kTCount));
    out.push_back(kVBase + index / kTCount % kVCount);
    if (index % kTCount != 0) out.push_back(kTBase + index % kTCount);
    return;
  }
  const Decomposition* entry = find_decomposition(code);
  if (entry == nullptr) {
    out.push_back(code);
    return;
  }
  append_decomposition(out, entry->first);
  if (entry->second != 0) append_decomposition(out, entry->second);
}

void order_marks(std::vector<char32_t>& codes) {
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < codes.size();) {
    if (combining_class(codes[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < codes.size() && combining_class(codes[end]) != 0) ++end;
    // Stable by class: class, place and code in one number.
    keys.clear();
    for (size_t k = i; k < end; ++k)
      keys.push_back(uint64_t{combining_class(codes[k])} << 56 | (k - i) << 24 | codes[k]);
    std::sort(keys.begin(), keys.end());
    for (size_t k = i; k < end; ++k) codes[k] = static_cast<char32_t>(keys[k - i] & 0xFFFFFF);
    i = end;
  }
}

/// The composite of two characters, or 0.
char32_t compose(char32_t first, char32_t second) {
  if (first >= kLBase && first < kLBase + kLCount && second >= kVBase && second < kVBase + kVCount) {
    return kSBase + ((first - kLBase) * kVCount + (second - kVBase)) * kTCount;
  }
  if (first >= kSBase && first < kSBase + kSCount && (first - kSBase) % kTCount == 0 && second > kTBase &&
      second < kTBase + kTCount) {
    return first + (second - kTBase);
  }
  static const std::unordered_map<uint64_t, char32_t> pairs = [] {
    std::unordered_map<uint64_t, char32_t> map;
    for (const Decomposition& entry : kDecompositions) {
      if (entry.composes) map.emplace(uint64_t{entry.first} << 32 | entry.second, entry.code);
    }
    return map;
  }();
  const auto found = pairs.find(uint64_t{first} << 32 | second);
  return found == pairs.end() ? 0 : found->second;
}

void compose_all(std::vector<char32_t>& codes) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t starter = kNone, out = 0;
  int last_class = -1;  // of the character kept last behind the starter; -1: none
  for (const char32_t code : codes) {
    const int mark = combining_class(code);
    if (starter != kNone && last_class < mark) {
      if (const char32_t composite = compose(codes[starter], code); composite != 0) {
        codes[starter] = composite;
        continue;
      }
    }
    if (mark == 0) {
      starter = out;
      last_class = -1;
    } else {
      last_class = mark;
    }
    codes[out++] = code;
  }
  codes.resize(out);
}

std::string normalize(std::string_view text, bool composed) {
  const CodeTable& table = inertness();
  const uint8_t threshold = composed ? kChangesInBoth : kChangesInNfd;
  std::string out;
  std::vector<char32_t> region;
  size_t copied = 0;    // text before this is in `out`
  size_t previous = 0;  // start of the last inert character
  for (size_t i = 0; i < text.size();) {
    if (static_cast<uint8_t>(text[i]) < 0x80) {
      previous = i++;
      continue;
    }
    auto current = decode_character(text.substr(i));
    if (table[current.code] < threshold) {
      previous = i;
      i += current.length;
      continue;
    }
    const size_t begin = std::max(copied, previous);
    if (out.empty()) out.reserve(text.size());
    out.append(text.substr(copied, begin - copied));
    region.clear();
    size_t end = begin;
    while (end < text.size()) {
      current = decode_character(text.substr(end));
      if (end > i && table[current.code] < threshold) break;
      append_decomposition(region, current.code);
      end += current.length;
    }
    order_marks(region);
    if (composed) compose_all(region);
    for (const char32_t code : region) append_character(out, code);
    i = copied = previous = end;
  }
  if (copied == 0) return std::string(text);
  return out.append(text.substr(copied));
}

}  // namespace

std::string normalize_nfc(std::string_view text) { return normalize(text, true); }
std::string normalize_nfd(std::string_view text) { return normalize(text, false); }

}  // namespace crest::text
