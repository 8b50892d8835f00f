#include "text/output_tags.h"

#include <algorithm>

namespace crest::text {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

/// Longest end of the text that is a beginning of the tag, but not all of it.
size_t open_end(std::string_view text, std::string_view tag) {
  for (size_t size = std::min(text.size(), tag.empty() ? 0 : tag.size() - 1); size > 0; --size) {
    if (text.ends_with(tag.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

void TagBuffer::push(const OutputPiece& piece) {
  pieces_.push_back({text_.size(), piece.token});
  text_ += piece.text;
}

TagBuffer::Found TagBuffer::find(std::span<const OutputTag* const> tags, bool last) const {
  Found found;
  found.position = text_.size();
  size_t hold = 0;
  for (const OutputTag* tag : tags) {
    if (tag->token >= 0) {
      const auto piece =
          std::find_if(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return p.token == tag->token; });
      if (piece == pieces_.end() || (found.tag != nullptr && piece->begin >= found.position)) continue;
      const size_t end = piece + 1 == pieces_.end() ? text_.size() : (piece + 1)->begin;
      found = {tag, piece->begin, end - piece->begin, static_cast<size_t>(piece - pieces_.begin())};
    } else if (!tag->text.empty()) {
      const size_t at = text_.find(tag->text);
      if (at == std::string::npos) {
        hold = std::max(hold, open_end(text_, tag->text));
      } else if (found.tag == nullptr || at < found.position) {
        found = {tag, at, tag->text.size(), 0};
      }
    }
  }
  if (found.tag == nullptr && !last) found.position -= hold;
  return found;
}

TagBuffer::Lead TagBuffer::leads(const OutputTag& tag, Found& found) const {
  const size_t start = std::min(text_.find_first_not_of(kSpace), text_.size());
  const OutputTag* const tags[] = {&tag};
  found = find(tags, true);
  if (found.tag != nullptr) return found.position <= start ? Lead::kYes : Lead::kNo;
  if (start == text_.size()) return Lead::kMaybe;
  return tag.token < 0 && tag.text.starts_with(std::string_view(text_).substr(start)) ? Lead::kMaybe : Lead::kNo;
}

void TagBuffer::take(size_t bytes, std::vector<OutputPiece>& out) {
  size_t whole = 0;
  for (; whole < pieces_.size() && pieces_[whole].begin < bytes; ++whole) {
    const size_t begin = pieces_[whole].begin;
    const size_t end = whole + 1 == pieces_.size() ? text_.size() : pieces_[whole + 1].begin;
    if (end <= bytes) {
      out.push_back({text_.substr(begin, end - begin), pieces_[whole].token});
      continue;
    }
    // A piece that is cut is no token any more.
    out.push_back({text_.substr(begin, bytes - begin), -1});
    pieces_[whole] = {bytes, -1};
    break;
  }
  pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(whole));
  for (Piece& piece : pieces_) piece.begin -= bytes;
  text_.erase(0, bytes);
}

std::string TagBuffer::take(size_t bytes) {
  std::string taken = text_.substr(0, bytes);
  std::vector<OutputPiece> unused;
  take(bytes, unused);
  return taken;
}

void TagBuffer::drop(const Found& found) {
  if (found.tag->token >= 0) {
    // The piece of a token may have no text, so that bytes alone would not remove it.
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(found.piece) + 1);
    const size_t bytes = found.position + found.size;
    for (Piece& piece : pieces_) piece.begin -= bytes;
    text_.erase(0, bytes);
    return;
  }
  take(found.position + found.size);
}

void TagBuffer::drop_leading(std::string_view characters) {
  take(std::min(text_.find_first_not_of(characters), text_.size()));
}

}  // namespace crest::text
