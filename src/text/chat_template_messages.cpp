#include <algorithm>
#include <array>

#include "text/chat_template.h"

namespace crest::text {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};

template <typename... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kInvalidArgument, format, std::forward<Args>(args)...);
}

std::string shortened(const std::string& text) {
  constexpr size_t kLongest = 60;
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u) --end;
  return text.substr(0, end) + "…";
}

constexpr int kMaxDepth = 100;

bool nested_within(const Json& json, int depth) {
  if (!json.is_structured()) return true;
  return depth > 0 &&
         std::all_of(json.begin(), json.end(), [&](const Json& item) { return nested_within(item, depth - 1); });
}

Status check_parts(const Json& parts, size_t index) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const Json& part = parts[i];
    if (part.is_string()) continue;
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string()) {
      return invalid("messages[{}].content[{}]: expected text or an object with a type", index, i);
    }
    const auto& type = part["type"].get_ref<const std::string&>();
    if (type != "text") {
      return make_error(ErrorCode::kUnsupported,
                        "messages[{}].content[{}]: parts of type '{}' are not supported, only 'text'", index, i,
                        shortened(type));
    }
    if (!part.contains("text") || !part["text"].is_string()) {
      return invalid("messages[{}].content[{}]: a text part needs the string 'text'", index, i);
    }
  }
  return {};
}

std::string text_of(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  for (const Json& part : content) {
    if (!text.empty()) text += '\n';
    text += part.is_string() ? part.get_ref<const std::string&>() : part["text"].get_ref<const std::string&>();
  }
  return text;
}

Status prepare_arguments(Json& function, size_t index, size_t call) {
  if (!function.contains("arguments")) return {};
  Json& arguments = function["arguments"];
  if (arguments.is_string()) {
    const std::string text = arguments.get<std::string>();
    const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
    arguments = blank ? Json::object() : Json::parse(text, nullptr, false);
    if (arguments.is_discarded()) {
      return invalid("messages[{}].tool_calls[{}]: arguments are not JSON: {}", index, call, shortened(text));
    }
  }
  if (!nested_within(arguments, kMaxDepth)) {
    return invalid("messages[{}].tool_calls[{}]: arguments are nested deeper than {}", index, call, kMaxDepth);
  }
  if (!arguments.is_object()) {
    return invalid("messages[{}].tool_calls[{}]: arguments are of type {}, expected an object", index, call,
                   arguments.type_name());
  }
  return {};
}

Status prepare_calls(Json& message, size_t index) {
  if (!message.contains("tool_calls")) return {};
  Json& calls = message["tool_calls"];
  if (!calls.is_array())
    return invalid("messages[{}].tool_calls is of type {}, expected an array", index, calls.type_name());
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i].is_object()) return invalid("messages[{}].tool_calls[{}]: expected an object", index, i);
    const bool wrapped = calls[i].contains("function");
    Json& function = wrapped ? calls[i]["function"] : calls[i];
    if (!function.is_object() || !function.contains("name") || !function["name"].is_string()) {
      return invalid("messages[{}].tool_calls[{}]: the function needs the string 'name'", index, i);
    }
    CREST_RETURN_IF_ERROR(prepare_arguments(function, index, i));
  }
  return {};
}

Result<Json> prepare_message(const Json& given, size_t index, bool keep_parts) {
  if (!given.is_object()) return invalid("messages[{}] is of type {}, expected an object", index, given.type_name());
  if (!nested_within(given, kMaxDepth)) return invalid("messages[{}] is nested deeper than {}", index, kMaxDepth);
  Json message = Json::object();
  for (const auto& item : given.items()) {
    if (!item.value().is_null()) message[item.key()] = item.value();
  }
  if (!message.contains("role") || !message["role"].is_string())
    return invalid("messages[{}]: the string 'role' is missing", index);
  const std::string role = message["role"].get<std::string>();
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    return invalid("messages[{}]: role '{}' is unknown, expected one of {}", index, shortened(role),
                   fmt::join(kRoles, ", "));
  }
  if (role == "developer") message["role"] = "system";
  if (!message.contains("content")) {
    if (role != "assistant") return invalid("messages[{}]: content is missing", index);
    message["content"] = "";
  }
  Json& content = message["content"];
  if (content.is_array()) {
    CREST_RETURN_IF_ERROR(check_parts(content, index));
    if (!keep_parts) content = text_of(content);
  } else if (!content.is_string()) {
    return invalid("messages[{}]: content is of type {}, expected text or an array of parts", index,
                   content.type_name());
  }
  for (const char* name : {"reasoning", "thinking"}) {
    if (!message.contains("reasoning_content") && message.contains(name)) message["reasoning_content"] = message[name];
  }
  CREST_RETURN_IF_ERROR(prepare_calls(message, index));
  return message;
}

}  // namespace

Result<Json> prepare_messages(const Json& messages, bool keep_parts) {
  if (!messages.is_array()) return invalid("messages are of type {}, expected an array", messages.type_name());
  if (messages.empty()) return invalid("messages: there is none, expected at least one");
  Json prepared = Json::array();
  size_t systems = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    CREST_TRY(Json message, prepare_message(messages[i], i, keep_parts));
    if (message["role"] != "system") {
      prepared.push_back(std::move(message));
    } else if (systems++ == 0) {
      prepared.insert(prepared.begin(), std::move(message));
    } else {
      Json& front = prepared[0]["content"];
      front = text_of(front) + "\n\n" + text_of(message["content"]);
    }
  }
  return prepared;
}

}  // namespace crest::text
