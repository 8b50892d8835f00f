#include "text/hf_json.h"

namespace crest::text {
namespace {

constexpr size_t kMaxDepth = 64;

}  // namespace

Result<json::element> parse_json(json::parser& parser, std::string_view text, std::string_view file) {
  if (text.size() >= (uint64_t{1} << 31)) {
    return make_error(ErrorCode::kInvalidFile, "{}: {} bytes long, at most 2 GiB are read", file, text.size());
  }
  json::element root;
  auto error = parser.allocate(text.size() + 1, kMaxDepth);
  if (error == simdjson::SUCCESS) error = parser.parse(text.data(), text.size()).get(root);
  if (error != simdjson::SUCCESS) {
    return make_error(ErrorCode::kInvalidFile, "{}: not valid JSON: {}", file, simdjson::error_message(error));
  }
  if (!root.is_object())
    return make_error(ErrorCode::kInvalidFile, "{}: holds {}, expected an object", file, type_name(root));
  return root;
}

std::optional<json::element> member(json::element object, std::string_view key) {
  json::object members;
  if (object.get(members) != simdjson::SUCCESS) return std::nullopt;
  for (const auto& [name, value] : members) {
    if (name == key) return value.is_null() ? std::nullopt : std::optional<json::element>(value);
  }
  return std::nullopt;
}

std::optional<json::element> member(const std::optional<json::element>& object, std::string_view key) {
  return object ? member(*object, key) : std::nullopt;
}

std::optional<std::string_view> string_member(json::element object, std::string_view key) {
  std::string_view text;
  const auto value = member(object, key);
  if (!value || value->get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

std::optional<bool> bool_member(json::element object, std::string_view key) {
  bool flag = false;
  const auto value = member(object, key);
  if (!value || value->get(flag) != simdjson::SUCCESS) return std::nullopt;
  return flag;
}

Result<std::string> string_or(json::element object, std::string_view key, std::string_view path,
                              std::string_view fallback) {
  const auto value = member(object, key);
  if (!value) return std::string(fallback);
  std::string_view text;
  if (value->get(text) != simdjson::SUCCESS) {
    return make_error(ErrorCode::kInvalidFile, "{}.{} is {}, expected a string", path, key, type_name(*value));
  }
  return std::string(text);
}

Result<bool> bool_or(json::element object, std::string_view key, std::string_view path, bool fallback) {
  const auto value = member(object, key);
  if (!value) return fallback;
  bool flag = false;
  if (value->get(flag) != simdjson::SUCCESS) {
    return make_error(ErrorCode::kInvalidFile, "{}.{} is {}, expected true or false", path, key, type_name(*value));
  }
  return flag;
}

std::string_view type_name(json::element element) {
  switch (element.type()) {
    case json::element_type::ARRAY:
      return "an array";
    case json::element_type::OBJECT:
      return "an object";
    case json::element_type::STRING:
      return "a string";
    case json::element_type::BOOL:
      return "a boolean";
    case json::element_type::NULL_VALUE:
      return "null";
    default:
      return "a number";
  }
}

}  // namespace crest::text
