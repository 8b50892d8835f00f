#include "format/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "format/escape.h"

namespace crest::format {
namespace {

using nlohmann::json;

std::string shown(const json& value) { return escaped(value.dump(-1, ' ', false, json::error_handler_t::replace), 60); }

Result<int64_t> to_integer(const ConfigView& view, std::string_view key, const json& value, int64_t min, int64_t max) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  if (!fits || value.get<int64_t>() < min || value.get<int64_t>() > max)
    return view.error(ErrorCode::kInvalidFile, "{} is {}, expected an integer from {} to {}", key, shown(value), min,
                      max);
  return value.get<int64_t>();
}

}  // namespace

Result<json> parse_json(std::string_view text, std::string_view source, int max_depth) {
  bool too_deep = false;
  const auto callback = [&](int depth, json::parse_event_t, json&) {
    if (depth > max_depth) too_deep = true;
    return !too_deep;
  };
  json value;
  try {
    value = json::parse(text, callback);
  } catch (const json::exception& exception) {
    return make_error(ErrorCode::kInvalidFile, "{}: not valid JSON: {}", source, escaped(exception.what(), 200));
  }
  if (too_deep) return make_error(ErrorCode::kInvalidFile, "{}: JSON nested deeper than {} levels", source, max_depth);
  return value;
}

Result<ConfigView> ConfigView::create(const nlohmann::json& value, std::string source) {
  if (!value.is_object()) return make_error(ErrorCode::kInvalidFile, "{}: is not a JSON object", source);
  return ConfigView(value, std::move(source));
}

const nlohmann::json* ConfigView::find(std::string_view key) const {
  const auto at = json_->find(key);
  return at == json_->end() || at->is_null() ? nullptr : &*at;
}

Result<const nlohmann::json*> ConfigView::require(std::string_view key) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return error(ErrorCode::kNotFound, "{} is missing", key);
  return value;
}

Result<int64_t> ConfigView::integer(std::string_view key, int64_t min, int64_t max) const {
  CREST_TRY(const nlohmann::json* value, require(key));
  return to_integer(*this, key, *value, min, max);
}

Result<int64_t> ConfigView::integer_or(std::string_view key, int64_t otherwise, int64_t min, int64_t max) const {
  return has(key) ? integer(key, min, max) : otherwise;
}

Result<double> ConfigView::number(std::string_view key, double min, double max) const {
  CREST_TRY(const nlohmann::json* value, require(key));
  if (!value->is_number() || !(value->get<double>() >= min && value->get<double>() <= max))
    return error(ErrorCode::kInvalidFile, "{} is {}, expected a number from {} to {}", key, shown(*value), min, max);
  return value->get<double>();
}

Result<double> ConfigView::number_or(std::string_view key, double otherwise, double min, double max) const {
  return has(key) ? number(key, min, max) : otherwise;
}

Result<bool> ConfigView::boolean_or(std::string_view key, bool otherwise) const {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean())
    return error(ErrorCode::kInvalidFile, "{} is {}, expected true or false", key, shown(*value));
  return value->get<bool>();
}

Result<std::string> ConfigView::string(std::string_view key) const {
  CREST_TRY(const nlohmann::json* value, require(key));
  if (!value->is_string()) return error(ErrorCode::kInvalidFile, "{} is {}, expected a string", key, shown(*value));
  return value->get<std::string>();
}

Result<std::string> ConfigView::string_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? string(key) : std::string(otherwise);
}

Result<std::vector<std::string>> ConfigView::strings(std::string_view key) const {
  CREST_TRY(const nlohmann::json* value, require(key));
  std::vector<std::string> result;
  if (!value->is_array()) return error(ErrorCode::kInvalidFile, "{} is {}, expected a list", key, shown(*value));
  for (const auto& item : *value) {
    if (!item.is_string())
      return error(ErrorCode::kInvalidFile, "{}[{}] is {}, expected a string", key, result.size(), shown(item));
    result.push_back(item.get<std::string>());
  }
  return result;
}

Result<std::vector<int64_t>> ConfigView::integers(std::string_view key, int64_t min, int64_t max) const {
  CREST_TRY(const nlohmann::json* value, require(key));
  if (!value->is_array()) return error(ErrorCode::kInvalidFile, "{} is {}, expected a list", key, shown(*value));
  std::vector<int64_t> result;
  for (const auto& item : *value) {
    CREST_TRY(const int64_t number, to_integer(*this, key, item, min, max));
    result.push_back(number);
  }
  return result;
}

Result<ConfigView> ConfigView::object(std::string_view key) const {
  CREST_TRY(const nlohmann::json* value, require(key));
  return create(*value, fmt::format("{}: {}", source_, key));
}

}  // namespace crest::format
