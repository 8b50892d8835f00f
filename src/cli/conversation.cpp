#include "cli/conversation.h"

#include "cli/terminal.h"

namespace crest::cli {
namespace {

std::string token_name(const text::Tokenizer& tokenizer, int32_t id) {
  return tokenizer.is_valid(id) ? std::string(tokenizer.token_name(id)) : std::string();
}

}  // namespace

Conversation::Conversation(const engine::Engine& engine, text::ChatTemplate chat_template)
    : engine_(&engine), template_(std::move(chat_template)) {
  const text::Tokenizer& tokenizer = engine.tokenizer();
  for (text::OutputTag* tag : {&format_.open, &format_.close, &format_.tool_open}) {
    if (const auto id = tokenizer.find(tag->text)) tag->token = *id;
  }
}

Result<Conversation> Conversation::create(const engine::Engine& engine) {
  const std::string& source = engine.tokenizer().vocab().chat_template;
  const auto& file = engine.model().file();
  CREST_TRY(auto chat_template, text::ChatTemplate::for_model(source.empty() ? std::nullopt : std::optional(source), file.architecture(),
                                                              file.path().string() + ": chat template"));
  if (chat_template.built_in()) print_note(fmt::format("the model has no chat template; using the usual form of {} models", file.architecture()));
  return Conversation(engine, std::move(chat_template));
}

Result<Prompt> Conversation::prompt(const text::Json& messages, std::optional<bool> enable_thinking) const {
  const text::Tokenizer& tokenizer = engine_->tokenizer();
  text::ChatOptions options;
  options.enable_thinking = enable_thinking;
  options.bos_token = token_name(tokenizer, tokenizer.bos_id());
  options.eos_token = token_name(tokenizer, tokenizer.eos_id());
  CREST_TRY(const text::Json prepared, text::prepare_messages(messages));
  CREST_TRY(const auto segments, template_.render(prepared, options));
  Prompt prompt;
  prompt.text = text::join_segments(segments);
  prompt.start = text::reasoning_start(segments, format_, enable_thinking);
  CREST_TRY(prompt.ids, tokenizer.encode(segments, true));
  return prompt;
}

Result<Prompt> raw_prompt(const engine::Engine& engine, const std::string& text) {
  Prompt prompt{text, {}, text::ReasoningStart::kDisabled};
  CREST_TRY(prompt.ids, engine.tokenizer().encode(text, {.parse_special = true, .add_special = true}));
  return prompt;
}

}  // namespace crest::cli
