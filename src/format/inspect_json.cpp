#include <nlohmann/json.hpp>

#include "format/inspect.h"

namespace crest::format {
namespace {

using nlohmann::ordered_json;

constexpr size_t kWholeArray = 64;
constexpr size_t kPartOfArray = 8;

ordered_json element(const Value& value, size_t index) {
  if (value.type() == ValueType::kString)
    return value.is_array() ? value.as_strings()[index] : std::string(*value.as_string());
  if (value.type() == ValueType::kBool) return value.as_bool(index).value_or(false);
  if (value.type() == ValueType::kF32) {
    // The shortest decimal of the float, not of the double that it becomes.
    const auto number = static_cast<float>(value.as_double(index).value_or(0));
    return ordered_json::parse(fmt::format("{}", number), nullptr, false);
  }
  if (value.type() == ValueType::kF64) return value.as_double(index).value_or(0);
  if (const auto number = value.as_integer(index)) return *number;
  return value.as_unsigned(index).value_or(0);
}

ordered_json value_json(const Value& value) {
  if (!value.is_array()) {
    ordered_json scalar = element(value, 0);
    return scalar.is_discarded() ? ordered_json(nullptr) : scalar;
  }
  const size_t shown = value.count() > kWholeArray ? kPartOfArray : value.count();
  ordered_json items = ordered_json::array();
  for (size_t i = 0; i < shown; ++i) {
    ordered_json item = element(value, i);
    items.push_back(item.is_discarded() ? ordered_json(nullptr) : std::move(item));
  }
  if (shown == value.count()) return items;
  return {{"count", value.count()}, {"first", std::move(items)}};
}

}  // namespace

std::string to_json(const InspectReport& report) {
  ordered_json json;
  json["kind"] = name(report.kind);
  json["path"] = report.path;
  json["architecture"] = report.architecture;
  if (report.kind == InspectReport::Kind::kGguf) {
    json["gguf_version"] = report.gguf_version;
    json["alignment"] = report.alignment;
  }
  json["n_files"] = report.files.size();
  json["n_tensors"] = report.tensors.size();
  json["parameters"] = report.parameters;
  json["tensor_bytes"] = report.tensor_bytes;
  json["vocab_size"] = report.vocab_size;
  json["chat_template"] = report.chat_template;
  json["packed_linears"] = report.packed_linears;
  json["notes"] = report.notes;
  json["files"] = ordered_json::array();
  for (const auto& file : report.files)
    json["files"].push_back({{"path", file.path}, {"bytes", file.bytes}, {"tensors", file.tensors}});
  json["types"] = ordered_json::array();
  for (const auto& type : report.types)
    json["types"].push_back(
        {{"dtype", type.dtype}, {"tensors", type.tensors}, {"elements", type.elements}, {"bytes", type.bytes}});
  json["metadata"] = ordered_json::object();
  for (const auto& [key, value] : report.metadata)
    json["metadata"][key] = {{"type", value.type_name()}, {"value", value_json(value)}};
  json["tensors"] = ordered_json::array();
  for (const auto& tensor : report.tensors)
    json["tensors"].push_back({{"name", tensor.name},
                               {"dtype", tensor.dtype},
                               {"shape", tensor.shape},
                               {"bytes", tensor.bytes},
                               {"offset", tensor.offset},
                               {"file", tensor.file}});
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace crest::format
