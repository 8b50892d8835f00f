#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/segment.h"

namespace crest::text::jinja {

/// A string that remembers which of its bytes came from the conversation rather than from the template.
class Text {
 public:
  Text() = default;
  explicit Text(std::string bytes, bool trusted = true);

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  /// No byte came from the conversation.
  bool trusted() const { return untrusted_.empty(); }

  void append(std::string_view bytes, bool trusted = true);
  void append(const Text& other);
  void append(const Text& other, size_t begin, size_t end);
  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  Text slice(size_t begin, size_t end) const;

  /// A text computed from this one in a way that does not tell which byte came from where: untrusted as a whole if any
  /// byte was.
  Text derived(std::string bytes) const { return Text(std::move(bytes), trusted()); }
  std::vector<Segment> segments() const;

 private:
  struct Range {
    size_t begin;
    size_t end;
  };
  void mark(size_t begin, size_t end);

  std::string bytes_;
  std::vector<Range> untrusted_;  // sorted, not empty, not touching
};

}  // namespace crest::text::jinja
