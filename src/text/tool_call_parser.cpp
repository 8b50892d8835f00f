#include "text/tool_call_parser.h"

#include <utility>

namespace crest::text {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

ToolCallForm tool_call_form(std::string_view template_source) {
  const auto has = [&](std::string_view text) { return template_source.find(text) != std::string_view::npos; };
  if (!has("<tool_call>")) return ToolCallForm::kNone;
  if (has("<function=")) return ToolCallForm::kQwenXml;
  return has("\"arguments\"") || has("\\\"arguments\\\"") || has("'arguments'") ? ToolCallForm::kHermes
                                                                                : ToolCallForm::kNone;
}

ToolCallParser::ToolCallParser(ToolCallFormat format) : format_(std::move(format)) {
  // Without a form no tag exists, and all text passes.
  if (format_.form == ToolCallForm::kNone) format_.open = format_.close = {};
}

ToolCallParser::Delta ToolCallParser::push(const OutputPiece& piece) {
  buffer_.push(piece);
  return run(false);
}

ToolCallParser::Delta ToolCallParser::finish() {
  Delta delta = run(true);
  if (inside_) {
    std::vector<ToolCall> calls = parse_tool_calls(body_, format_, true);
    if (calls.empty()) {
      delta.content += std::exchange(held_space_, {}) + format_.open.text + body_;
    } else {
      held_space_.clear();
      for (ToolCall& call : calls) delta.calls.push_back(std::move(call));
    }
    inside_ = false;
    body_.clear();
  }
  delta.content += std::exchange(held_space_, {});
  return delta;
}

ToolCallParser::Delta ToolCallParser::run(bool last) {
  Delta delta;
  while (inside_ ? step_call(delta, last) : step_content(delta, last)) {
  }
  return delta;
}

void ToolCallParser::emit_content(Delta& delta, std::string_view text) {
  if (format_.form == ToolCallForm::kNone) {
    delta.content += text;
    return;
  }
  for (const char c : text) {
    if (kSpace.find(c) != std::string_view::npos) {
      if (!after_call_) held_space_ += c;
      continue;
    }
    delta.content += std::exchange(held_space_, {});
    delta.content += c;
    after_call_ = false;
  }
}

bool ToolCallParser::step_content(Delta& delta, bool last) {
  const OutputTag* const tags[] = {&format_.open};
  const TagBuffer::Found found = buffer_.find(tags, last);
  emit_content(delta, std::string_view(buffer_.text()).substr(0, found.position));
  if (found.tag == nullptr) {
    buffer_.take(found.position);
    return false;
  }
  buffer_.drop(found);
  inside_ = true;
  return true;
}

bool ToolCallParser::step_call(Delta& delta, bool last) {
  const OutputTag* const tags[] = {&format_.close};
  const TagBuffer::Found found = buffer_.find(tags, last);
  body_ += std::string_view(buffer_.text()).substr(0, found.position);
  if (found.tag == nullptr) {
    buffer_.take(found.position);
    return false;
  }
  buffer_.drop(found);
  inside_ = false;
  std::vector<ToolCall> calls = parse_tool_calls(body_, format_, false);
  if (calls.empty()) {
    // What cannot be read stays text.
    emit_content(delta, format_.open.text + std::exchange(body_, {}) + format_.close.text);
    return true;
  }
  for (ToolCall& call : calls) delta.calls.push_back(std::move(call));
  body_.clear();
  held_space_.clear();
  after_call_ = true;
  return true;
}

}  // namespace crest::text
