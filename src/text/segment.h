#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace crest::text {

/// A piece of a prompt. Neighbouring segments are one text: words and merges may span them. The mark says only where
/// the spelling of a control token is that token: a control token is found where every byte of its spelling is trusted.
struct Segment {
  std::string text;
  bool trusted = false;

  friend bool operator==(const Segment&, const Segment&) = default;
};

/// The text of all segments.
inline std::string join_segments(const std::vector<Segment>& segments) {
  std::string joined;
  for (const Segment& segment : segments) joined += segment.text;
  return joined;
}

}  // namespace crest::text
