#include "text/reasoning_parser.h"

#include <algorithm>
#include <utility>

namespace crest::text {

ReasoningStart reasoning_start(const std::vector<Segment>& prompt, const ReasoningFormat& format,
                               std::optional<bool> enable_thinking) {
  if (enable_thinking == false) return ReasoningStart::kDisabled;
  // Only what the template wrote opens a block: tags quoted in messages do not.
  std::string written;
  for (const Segment& segment : prompt) written += segment.trusted ? segment.text : std::string(1, '\0');
  const size_t open = written.rfind(format.open.text);
  if (open == std::string::npos) return ReasoningStart::kContent;
  return written.find(format.close.text, open) == std::string::npos ? ReasoningStart::kInside
                                                                    : ReasoningStart::kContent;
}

ReasoningParser::ReasoningParser(ReasoningFormat format, ReasoningStart start)
    : format_(std::move(format)), may_open_again_(start == ReasoningStart::kInside) {
  switch (start) {
    case ReasoningStart::kContent:
      state_ = State::kStart;
      break;
    case ReasoningStart::kInside:
      state_ = State::kReasoning;
      break;
    case ReasoningStart::kDisabled:
      state_ = State::kContent;
      break;
  }
}

ReasoningParser::Delta ReasoningParser::push(const OutputPiece& piece) {
  buffer_.push(piece);
  return run(false);
}

ReasoningParser::Delta ReasoningParser::finish() {
  Delta delta = run(true);
  // The block never ended: what began like a call is one.
  for (OutputPiece& piece : held_) delta.content.push_back(std::move(piece));
  held_.clear();
  return delta;
}

ReasoningParser::Delta ReasoningParser::run(bool last) {
  Delta delta;
  for (bool again = true; again;) {
    switch (state_) {
      case State::kStart:
        again = step_start(last);
        break;
      case State::kReasoning:
        again = step_reasoning(delta, last);
        break;
      case State::kMaybeCall:
        again = step_maybe_call(delta, last);
        break;
      case State::kAfter:
        buffer_.drop_leading("\r\n");
        again = !buffer_.text().empty() || (last && !buffer_.empty());
        if (again) state_ = State::kContent;
        break;
      case State::kContent:
        // One byte more than there is: pieces without text go, too.
        buffer_.take(buffer_.text().size() + 1, delta.content);
        again = false;
        break;
    }
  }
  return delta;
}

/// Before anything but white space came: an open tag starts a block, other text is content.
bool ReasoningParser::step_start(bool last) {
  TagBuffer::Found found;
  const TagBuffer::Lead lead = buffer_.leads(format_.open, found);
  if (lead == TagBuffer::Lead::kMaybe && !last) return false;
  if (lead == TagBuffer::Lead::kYes) buffer_.drop(found);
  state_ = lead == TagBuffer::Lead::kYes ? State::kReasoning : State::kContent;
  return true;
}

/// White space around the reasoning is not part of it.
void ReasoningParser::emit_reasoning(Delta& delta, std::string_view text) {
  for (const char c : text) {
    if (std::string_view(" \t\r\n").find(c) != std::string_view::npos) {
      held_space_ += c;
      continue;
    }
    if (any_reasoning_) delta.reasoning += held_space_;
    held_space_.clear();
    any_reasoning_ = true;
    delta.reasoning += c;
  }
}

bool ReasoningParser::step_reasoning(Delta& delta, bool last) {
  if (may_open_again_) {
    // The prompt opened the block; some models write the tag once more.
    TagBuffer::Found found;
    const TagBuffer::Lead lead = buffer_.leads(format_.open, found);
    if (lead == TagBuffer::Lead::kMaybe && !last) return false;
    if (lead == TagBuffer::Lead::kYes) buffer_.drop(found);
    may_open_again_ = false;
  }
  const OutputTag* const tags[] = {&format_.close, &format_.tool_open};
  const TagBuffer::Found found = buffer_.find(tags, last);
  if (found.tag == &format_.tool_open) {
    emit_reasoning(delta, buffer_.take(found.position));
    // The tag stays with what is held: it is needed if this is a call.
    held_.push_back({found.tag->text, found.tag->token});
    buffer_.drop(buffer_.find(tags, last));
    state_ = State::kMaybeCall;
    return true;
  }
  emit_reasoning(delta, std::string_view(buffer_.text()).substr(0, found.position));
  if (found.tag == nullptr) {
    buffer_.take(found.position);
    return false;
  }
  buffer_.drop(found);
  held_space_.clear();
  state_ = State::kAfter;
  return true;
}

/// Holds a call that began inside the block until it is known whether the block ends behind it.
bool ReasoningParser::step_maybe_call(Delta& delta, bool last) {
  const OutputTag* const tags[] = {&format_.close};
  const TagBuffer::Found found = buffer_.find(tags, last);
  buffer_.take(found.position, held_);
  if (found.tag == nullptr) return false;
  for (const OutputPiece& piece : held_) emit_reasoning(delta, piece.text);
  held_.clear();
  state_ = State::kReasoning;
  return true;
}

bool ReasoningBudget::must_close(bool inside) {
  if (!inside || limit_ < 0) return false;
  used_ = std::min(used_ + 1, limit_);
  return used_ == limit_;
}

}  // namespace crest::text
