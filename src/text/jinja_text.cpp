#include "text/jinja_text.h"

#include <algorithm>

namespace crest::text::jinja {

Text::Text(std::string bytes, bool trusted) : bytes_(std::move(bytes)) {
  if (!trusted) mark(0, bytes_.size());
}

void Text::mark(size_t begin, size_t end) {
  if (begin == end) return;
  if (!untrusted_.empty() && untrusted_.back().end == begin) {
    untrusted_.back().end = end;
  } else {
    untrusted_.push_back({begin, end});
  }
}

void Text::append(std::string_view bytes, bool trusted) {
  const size_t begin = bytes_.size();
  bytes_.append(bytes);
  if (!trusted) mark(begin, bytes_.size());
}

void Text::append(const Text& other) { append(other, 0, other.size()); }

void Text::append(const Text& other, size_t begin, size_t end) {
  const size_t base = bytes_.size();
  auto range = std::partition_point(other.untrusted_.begin(), other.untrusted_.end(),
                                    [begin](const Range& r) { return r.end <= begin; });
  bytes_.append(other.bytes_, begin, end - begin);
  for (; range != other.untrusted_.end() && range->begin < end; ++range) {
    mark(base + std::max(range->begin, begin) - begin, base + std::min(range->end, end) - begin);
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text part;
  part.append(*this, begin, end);
  return part;
}

std::vector<Segment> Text::segments() const {
  std::vector<Segment> segments;
  size_t position = 0;
  const auto add = [&](size_t end, bool trusted) {
    if (end > position) segments.push_back({bytes_.substr(position, end - position), trusted});
    position = end;
  };
  for (const Range& range : untrusted_) {
    add(range.begin, true);
    add(range.end, false);
  }
  add(bytes_.size(), true);
  return segments;
}

}  // namespace crest::text::jinja
