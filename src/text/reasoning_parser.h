#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/output_tags.h"
#include "text/segment.h"

namespace crest::text {

struct ReasoningFormat {
  OutputTag open{"<think>"};
  OutputTag close{"</think>"};
  /// A call that begins inside an unfinished think block: reasoning if `close` follows, else (the answer ends) a call.
  /// Leave it empty where no tools are offered.
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
  Delta run(bool last);
  bool step_start(bool last);
  bool step_reasoning(Delta& delta, bool last);
  bool step_maybe_call(Delta& delta, bool last);
  void emit_reasoning(Delta& delta, std::string_view text);

  ReasoningFormat format_;
  State state_;
  bool may_open_again_ = false;
  bool any_reasoning_ = false;
  TagBuffer buffer_;
  std::vector<OutputPiece> held_;  // of a call inside the block
  std::string held_space_;
};

/// Ends thinking after a number of tokens: models can think for ever.
class ReasoningBudget {
 public:
  /// limit < 0: none.
  explicit ReasoningBudget(int64_t limit) : limit_(limit) {}

  /// Asked before the first token and after each one; `inside` as ReasoningParser::inside() says. True: the tokens that
  /// close the block
  /// ("</think>", or a sentence that ends in it) must be appended now, and the question is not asked while they are.
  bool must_close(bool inside);

 private:
  int64_t limit_;
  int64_t used_ = -1;  // the question that finds the block open comes before its first token
};

}  // namespace crest::text
