#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/segment.h"

namespace crest::text {

/// A piece of generated text: the text that one step added and the token it came from. `token` < 0: unknown.
struct OutputPiece {
  std::string text;
  int32_t token = -1;

  friend bool operator==(const OutputPiece&, const OutputPiece&) = default;
};

/// One tag of an output format. With `token` >= 0 only that token is the tag and its spelling is plain text; without,
/// its spelling is.
struct OutputTag {
  std::string text;
  int32_t token = -1;
};

struct ReasoningFormat {
  OutputTag open{"<think>"};
  OutputTag close{"</think>"};
  /// A call that begins inside an unfinished think block: reasoning if `close` follows, else (the answer ends) a call.
  OutputTag tool_open{"<tool_call>"};
};

/// How the prompt leaves the model: where its first token lands.
enum class ReasoningStart {
  kContent,   // no think block is open; one at the start of the output is recognised
  kInside,    // the prompt ends in an open think block
  kDisabled,  // thinking is off: all output is content, tags and all
};

/// From the rendered prompt: inside if its last open tag is not followed by a close tag.
ReasoningStart reasoning_start(const std::vector<Segment>& prompt, const ReasoningFormat& format,
                               std::optional<bool> enable_thinking);

/// Splits generated text into reasoning and content while it streams. Text that may become a tag, and white space that
/// a following tag would remove, is held back until decided.
class ReasoningParser {
 public:
  ReasoningParser(ReasoningFormat format, ReasoningStart start);

  struct Delta {
    std::string reasoning;
    /// Content keeps its pieces, so that a parser behind this one still knows the tokens.
    std::vector<OutputPiece> content;
  };

  Delta push(const OutputPiece& piece);
  /// End of the output: gives out what was held back.
  Delta finish();

  /// Inside the think block after what was pushed.
  bool inside() const { return state_ == State::kReasoning || state_ == State::kMaybeCall; }

 private:
  enum class State { kStart, kReasoning, kMaybeCall, kAfter, kContent };
  void step(Delta& delta, bool last);
  bool step_start(Delta& delta, bool last);
  bool step_reasoning(Delta& delta, bool last);
  bool step_maybe_call(Delta& delta, bool last);
  bool step_after(bool last);

  ReasoningFormat format_;
  State state_;
  bool explicit_open_ = false;
  bool any_reasoning_ = false;
  std::vector<OutputPiece> pending_;
  std::string held_space_;
};

/// Ends thinking after a number of tokens: models can think for ever.
class ReasoningBudget {
 public:
  /// `limit` reasoning tokens, then `closing` is forced (the ids of "</think>" or of a sentence that ends in it). limit
  /// < 0: no limit.
  ReasoningBudget(int64_t limit, std::vector<int32_t> closing, int32_t open, int32_t close, bool inside);

  /// Called with each token that was generated or forced. True: the block was just used up, append closing() now.
  bool observe(int32_t token);
  const std::vector<int32_t>& closing() const { return closing_; }

 private:
  int64_t limit_;
  int64_t used_ = 0;
  std::vector<int32_t> closing_;
  int32_t open_;
  int32_t close_;
  bool inside_;
};

}  // namespace crest::text
