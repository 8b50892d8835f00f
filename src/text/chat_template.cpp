#include "text/chat_template.h"

#include <algorithm>
#include <initializer_list>

#include "text/jinja_template.h"

namespace crest::text {
namespace {

/// Gemma's own turn form, for files that lost their template. The system message has no turn: it leads the first
/// user's.
constexpr std::string_view kGemmaForm = R"({{- bos_token }}
{%- set state = namespace(lead='', turns=0) %}
{%- macro text_of(content) %}
    {%- if content is string %}
        {{- content | trim }}
    {%- elif content is iterable %}
        {%- for part in content %}
            {%- if part.type != 'text' %}{{ raise_exception('Gemma\'s built-in form takes text only.') }}{% endif %}
            {{- part.text | trim }}
        {%- endfor %}
    {%- endif %}
{%- endmacro %}
{%- for message in messages %}
    {%- if message.role == 'system' and loop.first %}
        {%- set state.lead = text_of(message.content) ~ '\n\n' %}
    {%- elif message.role != ('user' if state.turns % 2 == 0 else 'assistant') %}
        {{- raise_exception('Gemma\'s built-in form needs user and assistant turns in alternation, got role \'' ~ message.role ~ '\'.') }}
    {%- else %}
        {{- '<start_of_turn>' ~ ('user' if message.role == 'user' else 'model') ~ '\n' }}
        {{- state.lead ~ text_of(message.content) ~ '<end_of_turn>\n' }}
        {%- set state.lead = '' %}
        {%- set state.turns = state.turns + 1 %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %})";

/// Qwen's own turn form. The hybrids of Qwen 3.5 and later expect a think block in every answer; without a template
/// nothing says that the model was taught to fill it, so it stays empty.
constexpr std::string_view kQwenForm = R"({%- for message in messages %}
    {%- if message.role not in ['system', 'user', 'assistant'] %}
        {{- raise_exception('Qwen\'s built-in form knows system, user and assistant turns, got role \'' ~ message.role ~ '\'.') }}
    {%- endif %}
    {{- '<|im_start|>' ~ message.role ~ '\n' }}
    {%- if think_block and message.role == 'assistant' %}{{ '<think>\n\n</think>\n\n' }}{% endif %}
    {{- message.content ~ '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if think_block %}{{ '<think>\n\n</think>\n\n' }}{% endif %}
{%- endif %})";
constexpr std::string_view kQwenThinkBlock = "{%- set think_block = true %}";
constexpr std::string_view kQwenNoThinkBlock = "{%- set think_block = false %}";

/// The form of an architecture whose files always spoke it; empty where there is none.
std::string built_in_form(std::string_view architecture) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), architecture) != names.end();
  };
  if (is({"gemma", "gemma2", "gemma3"})) return std::string(kGemmaForm);
  if (is({"qwen35", "qwen35moe"})) return std::string(kQwenThinkBlock) + std::string(kQwenForm);
  if (is({"qwen2", "qwen3", "qwen3moe"})) return std::string(kQwenNoThinkBlock) + std::string(kQwenForm);
  return {};
}

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, std::string_view name) {
  auto parsed = jinja::Template::parse(source);
  if (!parsed.ok()) return std::move(parsed).error().with_context(name);
  ChatTemplate chat;
  chat.source_ = source;
  chat.name_ = name;
  chat.template_ = std::make_shared<const jinja::Template>(std::move(parsed).value());
  return chat;
}

Result<ChatTemplate> ChatTemplate::for_model(const std::optional<std::string>& source, std::string_view architecture,
                                             std::string_view name) {
  if (source) return parse(*source, name);
  const std::string form = built_in_form(architecture);
  if (form.empty()) {
    return make_error(
        ErrorCode::kNotFound,
        "{}: the model has no chat template and Crest knows no built-in form for architecture '{}'; give a template "
        "or use --raw to pass the prompt as it is",
        name, architecture);
  }
  CREST_TRY(ChatTemplate chat, parse(form, fmt::format("built-in form of {}", architecture)));
  chat.built_in_ = true;
  return chat;
}

Result<std::vector<Segment>> ChatTemplate::render(const Json& messages, const ChatOptions& options) const {
  const Json generation = options.add_generation_prompt;
  const Json thinking = options.enable_thinking.value_or(false);
  const Json nothing;
  jinja::Inputs inputs;
  inputs.now = options.now;
  inputs.tokens = options.special_tokens;
  if (!options.bos_token.empty()) inputs.tokens["bos_token"] = options.bos_token;
  if (!options.eos_token.empty()) inputs.tokens["eos_token"] = options.eos_token;
  inputs.variables = {{"messages", &messages},
                      {"tools", options.tools.empty() ? &nothing : &options.tools},
                      {"documents", &nothing},
                      {"add_generation_prompt", &generation}};
  if (options.enable_thinking) inputs.variables.emplace_back("enable_thinking", &thinking);
  if (!options.extra.is_object() && !options.extra.is_null()) {
    return make_error(ErrorCode::kInvalidArgument, "template arguments are of type {}, expected an object",
                      options.extra.type_name());
  }
  for (const auto& item : options.extra.items()) inputs.variables.emplace_back(item.key(), &item.value());
  auto segments = template_->render(inputs);
  if (!segments.ok()) return std::move(segments).error().with_context(name_);
  return segments;
}

bool ChatTemplate::accepts_parts() const {
  constexpr std::string_view kProbe = "the text of a part";
  const Json messages = {{{"role", "user"}, {"content", {{{"type", "text"}, {"text", kProbe}}}}}};
  const auto rendered = render(messages, {});
  if (!rendered.ok()) return false;
  const std::string text = join_segments(*rendered);
  // A list that is printed as such shows its keys.
  return text.find(kProbe) != std::string::npos && text.find("'text'") == std::string::npos &&
         text.find("\"text\"") == std::string::npos;
}

bool ChatTemplate::mentions(std::string_view name) const {
  for (size_t at = source_.find(name); at != std::string::npos; at = source_.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !word_char(source_[at - 1])) && (end == source_.size() || !word_char(source_[end]))) return true;
  }
  return false;
}

bool begins_with_token(const std::vector<Segment>& segments, std::string_view token) {
  std::string lead;
  for (const Segment& segment : segments) {
    if (!segment.trusted || lead.size() >= token.size()) break;
    lead += segment.text;
  }
  return !token.empty() && lead.starts_with(token);
}

}  // namespace crest::text
