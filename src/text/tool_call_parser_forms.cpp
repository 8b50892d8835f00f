#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "text/tool_call_parser.h"

namespace crest::text {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kSpace = " \t\r\n";
constexpr size_t kNone = std::string_view::npos;
constexpr int kMaxJsonDepth = 256;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == kNone ? std::string_view() : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

/// A document that is not nested beyond reason: the library's writer recurses.
Json parse_json(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (depth > kMaxJsonDepth) return Json(Json::value_t::discarded);
  }
  return Json::parse(text, nullptr, false);
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

constexpr unsigned kBoolean = 1, kInteger = 2, kNumber = 4, kArray = 8, kObject = 16, kString = 32;

unsigned type_of_name(std::string_view name) {
  if (name.starts_with("bool")) return kBoolean;
  if (name.starts_with("int")) return kInteger;
  if (name.starts_with("num") || name.starts_with("float") || name.starts_with("double")) return kNumber;
  if (name.starts_with("arr") || name.starts_with("list")) return kArray;
  if (name.starts_with("obj") || name.starts_with("dict")) return kObject;
  return name.starts_with("str") ? kString : 0;
}

unsigned type_of_value(const Json& value) {
  if (value.is_boolean()) return kBoolean;
  if (value.is_number_integer()) return kInteger;
  if (value.is_number()) return kNumber;
  if (value.is_array()) return kArray;
  if (value.is_object()) return kObject;
  return value.is_string() ? kString : 0;
}

/// All types a schema allows, unions included.
unsigned allowed_types(const Json& schema, int depth = 0) {
  if (!schema.is_object() || depth > 16) return 0;
  unsigned types = 0;
  const auto add_name = [&](const Json& name) {
    if (name.is_string()) types |= type_of_name(lower(name.get_ref<const std::string&>()));
  };
  if (schema.contains("type")) {
    const Json& type = schema["type"];
    if (type.is_array()) {
      for (const Json& one : type) add_name(one);
    } else {
      add_name(type);
    }
  }
  for (const char* key : {"anyOf", "oneOf", "allOf"}) {
    if (!schema.contains(key) || !schema[key].is_array()) continue;
    for (const Json& one : schema[key]) types |= allowed_types(one, depth + 1);
  }
  if (types == 0 && schema.contains("enum") && schema["enum"].is_array()) {
    for (const Json& one : schema["enum"]) types |= type_of_value(one);
  }
  if (types == 0 && schema.contains("const")) types = type_of_value(schema["const"]);
  return types;
}

std::optional<Json> as_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return Json(value);
  uint64_t large = 0;
  const auto [large_end, large_error] = std::from_chars(text.data(), text.data() + text.size(), large);
  if (large_error == std::errc() && large_end == text.data() + text.size()) return Json(large);
  return std::nullopt;
}

std::optional<Json> as_number(std::string_view text) {
  if (auto integer = as_integer(text)) return integer;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return Json(value);
}

const Json* find_schema(const Json& tools, std::string_view function, std::string_view parameter) {
  if (!tools.is_array()) return nullptr;
  for (const Json& tool : tools) {
    if (!tool.is_object()) continue;
    const Json& body = tool.contains("function") ? tool["function"] : tool;
    if (!body.is_object() || !body.contains("name") || body["name"] != function || !body.contains("parameters"))
      continue;
    const Json& parameters = body["parameters"];
    if (!parameters.is_object() || !parameters.contains("properties") || !parameters["properties"].is_object())
      continue;
    const auto found = parameters["properties"].find(std::string(parameter));
    if (found != parameters["properties"].end()) return &*found;
  }
  return nullptr;
}

/// Walks over one <function=…> of Qwen's form.
class XmlReader {
 public:
  XmlReader(std::string_view text, const ToolCallFormat& format, bool cut) : text_(text), format_(format), cut_(cut) {}

  std::vector<ToolCall> run() {
    std::vector<ToolCall> calls;
    while ((position_ = text_.find(kFunction, position_)) != kNone) {
      position_ += kFunction.size();
      const size_t end = text_.find_first_of(">\n", position_);
      if (end == kNone) break;
      const std::string name(trimmed(text_.substr(position_, end - position_)));
      position_ = end + 1;
      if (name.empty()) continue;
      calls.push_back({name, dump(arguments(name))});
    }
    return calls;
  }

 private:
  static constexpr std::string_view kFunction = "<function=";
  static constexpr std::string_view kFunctionEnd = "</function>";
  static constexpr std::string_view kParameter = "<parameter=";
  static constexpr std::string_view kParameterEnd = "</parameter>";

  Json arguments(const std::string& function) {
    Json arguments = Json::object();
    while (true) {
      const size_t parameter = text_.find(kParameter, position_);
      const size_t end = text_.find(kFunctionEnd, position_);
      const size_t next = text_.find(kFunction, position_);
      if (parameter == kNone || end < parameter || next < parameter) {
        position_ = end < next ? end + kFunctionEnd.size() : std::min(next, text_.size());
        return arguments;
      }
      position_ = parameter + kParameter.size();
      const size_t key_end = text_.find_first_of(">\n", position_);
      if (key_end == kNone) {
        position_ = text_.size();
        return arguments;
      }
      const std::string key(trimmed(text_.substr(position_, key_end - position_)));
      const auto value = parameter_value(key_end + 1);
      if (!value) return arguments;
      const Json* schema = find_schema(format_.tools, function, key);
      arguments[key] = typed_argument(*value, schema != nullptr ? *schema : Json());
    }
  }

  /// Whether a tag that may follow a parameter, or the end, follows at `at`; closing tags written twice are forgiven.
  /// `at` moves to where that was decided.
  bool parameter_may_end(size_t& at) const {
    while (true) {
      at = std::min(text_.find_first_not_of(kSpace, at), text_.size());
      const std::string_view rest = text_.substr(at);
      if (rest.empty() || rest.starts_with(kParameter) || rest.starts_with(kFunctionEnd)) return true;
      if (!rest.starts_with(kParameterEnd)) return false;
      at += kParameterEnd.size();
    }
  }

  /// The text up to the end of the parameter, which a value may quote. Nothing: it was cut off.
  std::optional<std::string_view> parameter_value(size_t begin) {
    const size_t first = text_.find(kParameterEnd, begin);
    if (first == kNone) {
      if (cut_) {
        position_ = text_.size();
        return std::nullopt;
      }
      // Never closed: the value goes on to the next tag.
      position_ = std::min({text_.find(kParameter, begin), text_.find(kFunctionEnd, begin), text_.size()});
      return text_.substr(begin, position_ - begin);
    }
    size_t end = first;
    for (size_t after = first; end != kNone; end = text_.find(kParameterEnd, after)) {
      after = end + kParameterEnd.size();
      if (parameter_may_end(after)) break;
    }
    if (end == kNone) end = first;
    position_ = end + kParameterEnd.size();
    return text_.substr(begin, end - begin);
  }

  std::string_view text_;
  const ToolCallFormat& format_;
  bool cut_;
  size_t position_ = 0;
};

std::vector<ToolCall> parse_hermes(std::string_view body) {
  const Json call = parse_json(trimmed(body));
  if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return {};
  const char* key = call.contains("arguments") ? "arguments" : "parameters";
  Json arguments = call.contains(key) ? call[key] : Json::object();
  if (arguments.is_string()) arguments = parse_json(arguments.get<std::string>());
  if (arguments.is_null()) arguments = Json::object();
  if (!arguments.is_object()) return {};
  return {{call["name"].get<std::string>(), dump(arguments)}};
}

}  // namespace

std::vector<ToolCall> parse_tool_calls(std::string_view body, const ToolCallFormat& format, bool cut) {
  switch (format.form) {
    case ToolCallForm::kQwenXml:
      return XmlReader(body, format, cut).run();
    case ToolCallForm::kHermes:
      return parse_hermes(body);
    case ToolCallForm::kNone:
      break;
  }
  return {};
}

Json typed_argument(std::string_view text, const Json& schema) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::string_view bare = trimmed(text);
  const std::string word = bare.size() <= 8 ? lower(bare) : std::string();
  if (word == "null") return nullptr;
  const unsigned types = allowed_types(schema);
  if ((types & kBoolean) != 0 && (word == "true" || word == "false")) return word == "true";
  if ((types & kInteger) != 0) {
    if (auto value = as_integer(bare)) return *value;
  }
  if ((types & kNumber) != 0) {
    if (auto value = as_number(bare)) return *value;
  }
  if ((types & (kArray | kObject)) != 0) {
    Json value = parse_json(bare);
    if (((types & kArray) != 0 && value.is_array()) || ((types & kObject) != 0 && value.is_object())) return value;
  }
  return std::string(text);
}

}  // namespace crest::text
