// Renders templates for the comparison with jinja2: one JSON object per line in, one out.
#include <iostream>

#include "text/chat_template.h"

namespace {

using crest::text::Json;

std::optional<std::tm> time_of(const Json& request) {
  if (!request.contains("now")) return std::nullopt;
  std::tm time{};
  if (strptime(request["now"].get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%S", &time) == nullptr) return std::nullopt;
  return time;
}

Json answer(const Json& request) {
  const auto fail = [](const crest::Error& error) { return Json{{"error", error.message}}; };
  auto chat = crest::text::ChatTemplate::parse(request["template"].get<std::string>(), "template");
  if (!chat.ok()) return fail(chat.error());
  crest::text::ChatOptions options;
  options.add_generation_prompt = request.value("add_generation_prompt", false);
  if (request.contains("enable_thinking")) options.enable_thinking = request["enable_thinking"].get<bool>();
  options.tools = request.value("tools", Json());
  options.extra = request.value("extra", Json::object());
  options.bos_token = request.value("bos_token", "");
  options.eos_token = request.value("eos_token", "");
  options.now = time_of(request);
  Json messages = request.value("messages", Json::array());
  if (request.value("prepare", false)) {
    auto prepared = crest::text::prepare_messages(messages, chat->accepts_parts());
    if (!prepared.ok()) return fail(prepared.error());
    messages = std::move(prepared).value();
  }
  const auto segments = chat->render(messages, options);
  if (!segments.ok()) return fail(segments.error());
  Json list = Json::array();
  for (const auto& segment : *segments) list.push_back({segment.text, segment.trusted});
  return {{"segments", list}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    const Json request = Json::parse(line, nullptr, false);
    if (request.is_discarded()) return 2;
    std::cout << answer(request).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  }
}
