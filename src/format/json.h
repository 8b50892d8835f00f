#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace crest::format {

/// JSON text of a file, at most max_depth levels deep. `source` names it in messages.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view source, int max_depth = 64);

/// An object of a configuration file, with getters that check type and range and name the field when it is wrong. A
/// field that is null counts as absent. Refers to JSON that must outlive it.
class ConfigView {
 public:
  /// Error when `json` is not an object. `source` is the file, with the path to the object behind it.
  static Result<ConfigView> create(const nlohmann::json& json, std::string source);

  const nlohmann::json& json() const { return *json_; }
  const std::string& source() const { return source_; }
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Null when absent.
  const nlohmann::json* find(std::string_view key) const;

  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max) const;
  Result<int64_t> integer_or(std::string_view key, int64_t otherwise, int64_t min, int64_t max) const;
  Result<double> number(std::string_view key, double min, double max) const;
  Result<double> number_or(std::string_view key, double otherwise, double min, double max) const;
  Result<bool> boolean_or(std::string_view key, bool otherwise) const;
  Result<std::string> string(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string_view otherwise) const;
  Result<std::vector<std::string>> strings(std::string_view key) const;
  Result<std::vector<int64_t>> integers(std::string_view key, int64_t min, int64_t max) const;
  Result<ConfigView> object(std::string_view key) const;

  template <typename... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(code, "{}: {}", source_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  ConfigView(const nlohmann::json& json, std::string source) : json_(&json), source_(std::move(source)) {}
  Result<const nlohmann::json*> require(std::string_view key) const;
  const nlohmann::json* json_;
  std::string source_;
};

}  // namespace crest::format
