#pragma once

#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "text/segment.h"

namespace crest::text {

/// Messages, tools and template arguments keep the order of their keys: templates print them.
using Json = nlohmann::ordered_json;

/// What a chat template is given beside the messages.
struct ChatOptions {
  bool add_generation_prompt = true;
  /// Not set: the variable does not exist and the template decides.
  std::optional<bool> enable_thinking;
  /// Array of tools as OpenAI writes them ({"type": "function", "function": {...}}); null or empty: the model is
  /// offered none.
  Json tools;
  /// Further template variables ("chat_template_kwargs"), an object. They replace variables of the same name.
  Json extra = Json::object();
  std::string bos_token;
  std::string eos_token;
  /// Spellings of further special tokens by variable name ("pad_token", "unk_token").
  std::map<std::string, std::string> special_tokens;
  /// Local time seen by strftime_now; not set: the clock.
  std::optional<std::tm> now;
};

namespace jinja {
class Template;
}

/// A model's chat template: Jinja with the environment of transformers (trim_blocks, lstrip_blocks, loop controls,
/// immutable sandbox, `tojson` = json.dumps(ensure_ascii=False), `raise_exception`, `strftime_now`, `{% generation
/// %}`).
class ChatTemplate {
 public:
  /// `name` is used in messages ("model.gguf: tokenizer.chat_template"). Errors: a syntax error, with its line.
  static Result<ChatTemplate> parse(std::string_view source, std::string_view name = "chat template");

  /// The template of a model file: its own if it has one, else the built-in form of the architecture (Gemma and Qwen
  /// have one), else an error that asks for a template or raw prompts. Never a guess.
  static Result<ChatTemplate> for_model(const std::optional<std::string>& source, std::string_view architecture,
                                        std::string_view name = "chat template");

  /// Renders a conversation. Text written by the template is trusted, text that came from messages, tools or extra
  /// variables is not. Messages are given to the template as they are: see prepare_messages. Errors: what the template
  /// raises (the message holds its text), a wrong operation, a budget used up.
  Result<std::vector<Segment>> render(const Json& messages, const ChatOptions& options) const;

  /// Whether message content may be a list of parts; templates that cannot take it want its text (see
  /// prepare_messages).
  bool accepts_parts() const;

  /// Whether the source mentions a name ("tools", "enable_thinking", "reasoning_content").
  bool mentions(std::string_view name) const;
  const std::string& source() const { return source_; }
  /// True where for_model used the built-in form: worth a word on stderr.
  bool built_in() const { return built_in_; }

 private:
  std::string source_;
  std::string name_;
  bool built_in_ = false;
  std::shared_ptr<const jinja::Template> template_;
};

/// Brings messages of a client into the form that templates expect: role "developer" becomes "system", all system
/// messages are merged into one at the front, missing content becomes "", `arguments` of tool calls that are JSON text
/// become objects, keys whose value is null are dropped, "reasoning" and "thinking" are copied to "reasoning_content".
/// Unless `keep_parts`, content given as a list of parts becomes their text, one line each. Errors (the index of the
/// message is named): not an array of objects, no messages, role missing or unknown, content that is neither text nor
/// text parts, tool calls without a name, arguments that are not a JSON object.
Result<Json> prepare_messages(const Json& messages, bool keep_parts = true);

/// Whether a prompt begins with the spelling of a token ("<bos>"): then the tokenizer must not add it again.
bool begins_with_token(const std::vector<Segment>& segments, std::string_view token);

}  // namespace crest::text
