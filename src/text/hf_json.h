#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"

namespace crest::text {

namespace json = simdjson::dom;

/// Parses a file's text; errors name the file. The parser owns what the element refers to.
Result<json::element> parse_json(json::parser& parser, std::string_view text, std::string_view file);

/// A member of an object; nothing when the element is no object, has no such member, or the member is null.
std::optional<json::element> member(json::element object, std::string_view key);
std::optional<json::element> member(const std::optional<json::element>& object, std::string_view key);

/// A member's value where it has the type, else nothing.
std::optional<std::string_view> string_member(json::element object, std::string_view key);
std::optional<bool> bool_member(json::element object, std::string_view key);

/// A member that must be of the type where it exists. `path` is what errors call the object.
Result<std::string> string_or(json::element object, std::string_view key, std::string_view path,
                              std::string_view fallback);
Result<bool> bool_or(json::element object, std::string_view key, std::string_view path, bool fallback);

std::string_view type_name(json::element element);

}  // namespace crest::text
