#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/reasoning_parser.h"

namespace crest::cli {

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
  text::ReasoningStart start = text::ReasoningStart::kContent;
};

/// Turns messages into prompts with the model's own chat template.
class Conversation {
 public:
  /// Says on standard error when the model has no template and the architecture's form is used. Errors: no template.
  static Result<Conversation> create(const engine::Engine& engine);

  Result<Prompt> prompt(const text::Json& messages, std::optional<bool> enable_thinking) const;
  const text::ReasoningFormat& reasoning_format() const { return format_; }

 private:
  Conversation(const engine::Engine& engine, text::ChatTemplate chat_template);
  const engine::Engine* engine_;
  text::ChatTemplate template_;
  text::ReasoningFormat format_;
};

/// The text as it is: control tokens spelled in it are control tokens, and what the model wants in front is added.
Result<Prompt> raw_prompt(const engine::Engine& engine, const std::string& text);

}  // namespace crest::cli
