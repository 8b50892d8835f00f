#include "text/added_tokens.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "text/unicode.h"

namespace crest::text {
namespace {

/// The character that ends at `at`.
char32_t character_before(std::string_view text, size_t at) {
  for (size_t length = std::min<size_t>(at, 4); length > 1; --length) {
    const auto [code, bytes] = decode_character(text.substr(at - length));
    if (code < kRawByte && bytes == length) return code;
  }
  return decode_character(text.substr(at - 1, 1)).code;
}

bool is_word(char32_t code) {
  return is_word_character(code) || category(code) == Category::kNl || code == 0x200C || code == 0x200D;
}

bool touches_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && is_word(character_before(text, begin))) ||
         (end < text.size() && is_word(decode_character(text.substr(end)).code));
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<Entry> entries) {
  std::vector<size_t> order(entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::tie(entries[a].text, a) < std::tie(entries[b].text, b); });
  for (const size_t i : order) {
    if (entries_.empty() || entries_.back().text != entries[i].text) entries_.push_back(std::move(entries[i]));
  }
  for (const Entry& entry : entries_) starts_.set(static_cast<uint8_t>(entry.text[0]));
}

const AddedTokenFinder::Entry* AddedTokenFinder::longest_at(std::string_view text, size_t at) const {
  if (!starts_[static_cast<uint8_t>(text[at])]) return nullptr;
  // The entries that share the first `depth` bytes with the text are a range of the sorted list.
  auto low = entries_.begin(), high = entries_.end();
  const Entry* best = nullptr;
  for (size_t depth = 0; at + depth < text.size(); ++depth) {
    const auto byte = static_cast<uint8_t>(text[at + depth]);
    const auto byte_at = [depth](const Entry& entry) { return static_cast<uint8_t>(entry.text[depth]); };
    low = std::lower_bound(low, high, byte, [&](const Entry& entry, uint8_t b) { return byte_at(entry) < b; });
    high = std::upper_bound(low, high, byte, [&](uint8_t b, const Entry& entry) { return b < byte_at(entry); });
    if (low == high) break;
    if (low->text.size() != depth + 1) continue;
    best = &*low;
    if (++low == high) break;
  }
  return best;
}

bool AddedTokenFinder::is_allowed(const Entry& entry, std::string_view text, size_t at,
                                  std::pair<size_t, size_t> trusted) const {
  const size_t end = at + entry.text.size();
  if (entry.token.single_word && touches_word(text, at, end)) return false;
  if (trusted.first <= at) return !entry.is_control || end <= trusted.second;
  if (entry.is_control) return false;
  // Untrusted text must not take the start of a control token away from the trusted text behind it.
  for (size_t i = trusted.first; i < std::min(end, trusted.second); ++i) {
    const Entry* other = longest_at(text, i);
    if (other != nullptr && other->is_control && i + other->text.size() <= trusted.second) return false;
  }
  return true;
}

std::vector<Fragment> AddedTokenFinder::cut(std::string_view text, TrustedRanges trusted) const {
  std::vector<Fragment> fragments;
  size_t done = 0, range = 0;
  for (size_t i = 0; i < text.size();) {
    const Entry* entry = longest_at(text, i);
    if (entry == nullptr) {
      ++i;
      continue;
    }
    while (range < trusted.size() && trusted[range].second <= i) ++range;
    // The trusted range that `i` is in, or the next one.
    const auto near = range < trusted.size() ? trusted[range] : std::pair(text.size(), text.size());
    if (!is_allowed(*entry, text, i, near)) {
      // The whole match is plain text, but for what is trusted behind it.
      const size_t match_end = i + entry->text.size();
      i = near.first > i ? std::min(match_end, near.first) : std::min(match_end, near.second);
      continue;
    }
    size_t begin = i, end = i + entry->text.size();
    while (entry->token.lstrip && begin > done) {
      const char32_t code = character_before(text.substr(done), begin - done);
      if (!is_white_space(code)) break;
      std::string bytes;
      append_character(bytes, code);
      begin -= bytes.size();
    }
    while (entry->token.rstrip && end < text.size()) {
      const auto [code, length] = decode_character(text.substr(end));
      if (!is_white_space(code)) break;
      end += length;
    }
    if (begin > done) fragments.push_back({done, begin, kNoToken});
    fragments.push_back({begin, end, entry->token.id});
    i = done = end;
  }
  if (done < text.size()) fragments.push_back({done, text.size(), kNoToken});
  return fragments;
}

}  // namespace crest::text
