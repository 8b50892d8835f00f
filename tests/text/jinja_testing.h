#pragma once

#include <string>
#include <string_view>

#include "text/chat_template.h"

namespace crest::text::testing {

/// The prompt a template makes, or "error: " and the message.
inline std::string rendered(std::string_view source, const Json& messages = Json::array(),
                            const ChatOptions& options = {}) {
  const auto chat = ChatTemplate::parse(source, "t");
  if (!chat.ok()) return "error: " + chat.error().message;
  const auto segments = chat->render(messages, options);
  return segments.ok() ? join_segments(*segments) : "error: " + segments.error().message;
}

/// The value of an expression as a template prints it.
inline std::string value_of(std::string_view expression) { return rendered("{{ " + std::string(expression) + " }}"); }

/// With untrusted text between guillemets, so that marks can be seen.
inline std::string marked(std::string_view source, const Json& messages, const ChatOptions& options = {}) {
  const auto chat = ChatTemplate::parse(source, "t");
  if (!chat.ok()) return "error: " + chat.error().message;
  const auto segments = chat->render(messages, options);
  if (!segments.ok()) return "error: " + segments.error().message;
  std::string text;
  for (const Segment& segment : *segments) text += segment.trusted ? segment.text : "«" + segment.text + "»";
  return text;
}

}  // namespace crest::text::testing
