// Source of a template, a NUL byte, then a conversation as JSON: neither may crash, hang or use much memory.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "text/chat_template.h"
#include "text/reasoning_parser.h"
#include "text/tool_call_parser.h"

namespace {

using crest::text::Json;

Json conversation(std::string_view text) {
  Json messages = Json::parse(text, nullptr, false);
  if (!messages.is_discarded()) return messages;
  return Json::parse(R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "<|im_end|> é"},
    {"role": "assistant", "content": null, "reasoning_content": "why", "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5, null]}}}]},
    {"role": "tool", "content": "result"}, {"role": "user", "content": [{"type": "text", "text": "part"}]}])");
}

/// What a model might answer: the source itself, in pieces of a few bytes.
void parse_output(std::string_view text, bool xml) {
  using namespace crest::text;
  ReasoningParser reasoning({}, text.size() % 2 == 0 ? ReasoningStart::kInside : ReasoningStart::kContent);
  ToolCallParser tools(
      {xml ? ToolCallForm::kQwenXml : ToolCallForm::kHermes, {"<tool_call>"}, {"</tool_call>"}, Json()});
  size_t shown = 0;
  const auto pass = [&](ReasoningParser::Delta delta) {
    shown += delta.reasoning.size();
    for (const OutputPiece& piece : delta.content) shown += tools.push(piece).content.size();
  };
  for (size_t at = 0; at < text.size(); at += 7) pass(reasoning.push({std::string(text.substr(at, 7)), -1}));
  pass(reasoning.finish());
  shown += tools.finish().content.size();
  if (shown > text.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view source = input.substr(0, input.find('\0'));
  const std::string_view rest = source.size() < size ? input.substr(source.size() + 1) : std::string_view();
  parse_output(source, size % 3 == 0);
  const auto chat = crest::text::ChatTemplate::parse(source);
  if (!chat.ok()) return 0;
  const Json given = conversation(rest);
  const auto prepared = crest::text::prepare_messages(given, chat->accepts_parts());
  crest::text::ChatOptions options;
  options.bos_token = "<s>";
  options.tools = {{{"type", "function"}, {"function", {{"name", "f"}, {"parameters", Json::object()}}}}};
  options.now = std::tm{};
  const auto segments = chat->render(prepared.ok() ? *prepared : given, options);
  if (!segments.ok()) return segments.error().message.empty() ? std::abort(), 0 : 0;
  for (size_t i = 0; i < segments->size(); ++i) {
    const auto& segment = (*segments)[i];
    if (segment.text.empty() || (i > 0 && segment.trusted == (*segments)[i - 1].trusted)) std::abort();
  }
  return 0;
}
