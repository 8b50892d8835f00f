#include "text/pretokenizer.h"

#include "text/unicode.h"

namespace crest::text {
namespace {

/// Characters [begin, end).
struct Piece {
  uint32_t begin;
  uint32_t end;
};

/// Puts stretches that match and stretches that do not together to pieces.
class Joiner {
 public:
  Joiner(SplitBehavior behavior, std::vector<Piece>& out) : behavior_(behavior), out_(out), first_(out.size()) {}

  void add(uint32_t begin, uint32_t end, bool is_match) {
    const bool joins = out_.size() > first_ && [&] {
      switch (behavior_) {
        case SplitBehavior::kMergedWithPrevious:
          return is_match && !last_is_match_;
        case SplitBehavior::kMergedWithNext:
          return !is_match && last_is_match_;
        case SplitBehavior::kContiguous:
          return is_match == last_is_match_;
        default:
          return false;
      }
    }();
    last_is_match_ = is_match;
    if (behavior_ == SplitBehavior::kRemoved && is_match) return;
    if (joins) {
      out_.back().end = end;
    } else if (begin != end) {
      out_.push_back({begin, end});
    }
  }

 private:
  SplitBehavior behavior_;
  std::vector<Piece>& out_;
  size_t first_;
  bool last_is_match_ = false;
};

/// Byte offset of every character and of the end; empty when every character is one byte.
std::vector<uint32_t> character_offsets(std::string_view text, size_t characters) {
  std::vector<uint32_t> offsets;
  if (characters == text.size()) return offsets;
  offsets.reserve(characters + 1);
  for (size_t i = 0; i < text.size();) {
    offsets.push_back(static_cast<uint32_t>(i));
    i += decode_character(text.substr(i)).length;
  }
  offsets.push_back(static_cast<uint32_t>(text.size()));
  return offsets;
}

}  // namespace

Result<PreTokenizer> PreTokenizer::create(std::span<const SplitStep> steps) {
  PreTokenizer result;
  for (const SplitStep& step : steps) {
    CREST_TRY(auto pattern, step.is_regex ? Pattern::compile(step.pattern) : Pattern::compile_literal(step.pattern));
    result.steps_.push_back({std::move(pattern), step.behavior, step.invert});
  }
  return result;
}

Result<std::vector<std::string_view>> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> result;
  if (text.empty()) return result;
  if (steps_.empty()) return std::vector<std::string_view>{text};
  std::vector<Piece> pieces, next;
  std::vector<uint8_t> classes;
  for (const Step& step : steps_) {
    classes.clear();
    step.pattern.classify(text, classes);
    if (pieces.empty()) pieces.push_back({0, static_cast<uint32_t>(classes.size())});
    next.clear();
    for (const Piece piece : pieces) {
      Joiner joiner(step.behavior, next);
      const ClassText part = ClassText(classes).subspan(piece.begin, piece.end - piece.begin);
      uint32_t done = 0;
      CREST_RETURN_IF_ERROR(step.pattern.for_each_match(part, [&](Pattern::Match match) {
        const auto begin = static_cast<uint32_t>(match.begin), end = static_cast<uint32_t>(match.end);
        if (begin < done || end < begin) return;
        if (begin > done) joiner.add(piece.begin + done, piece.begin + begin, step.invert);
        joiner.add(piece.begin + begin, piece.begin + end, !step.invert);
        done = end;
      }));
      if (done < part.size()) joiner.add(piece.begin + done, piece.end, step.invert);
    }
    pieces.swap(next);
    if (pieces.empty()) return result;
  }
  const auto offsets = character_offsets(text, classes.size());
  result.reserve(pieces.size());
  for (const Piece piece : pieces) {
    const uint32_t begin = offsets.empty() ? piece.begin : offsets[piece.begin];
    const uint32_t end = offsets.empty() ? piece.end : offsets[piece.end];
    result.push_back(text.substr(begin, end - begin));
  }
  return result;
}

}  // namespace crest::text
