#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result.h"

namespace crest::format {

/// Value types of GGUF metadata, numbered as in the file.
enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// "u32", "string", …
std::string_view name(ValueType type);
/// Bytes of a value in a file; 0 for strings and arrays.
size_t value_bytes(ValueType type);
bool is_integer(ValueType type);

/// One metadata value: a number, a boolean, a string, or an array of one of these. Numbers are kept as they lie in the
/// file and converted, range-checked, when they are read: nothing is ever reinterpreted.
class Value {
 public:
  static Value u32(uint32_t value) { return number(ValueType::kU32, &value, 1, false); }
  static Value i32(int32_t value) { return number(ValueType::kI32, &value, 1, false); }
  static Value u16(uint16_t value) { return number(ValueType::kU16, &value, 1, false); }
  static Value u64(uint64_t value) { return number(ValueType::kU64, &value, 1, false); }
  static Value f32(float value) { return number(ValueType::kF32, &value, 1, false); }
  static Value boolean(bool value);
  static Value string(std::string value);
  static Value strings(std::vector<std::string> values);
  static Value i32s(std::span<const int32_t> values) {
    return number(ValueType::kI32, values.data(), values.size(), true);
  }
  static Value f32s(std::span<const float> values) {
    return number(ValueType::kF32, values.data(), values.size(), true);
  }
  static Value bools(const std::vector<bool>& values);
  /// Little-endian bytes as they stand in a file: `count` numbers or booleans of `type`.
  static Value raw(ValueType type, std::string bytes, bool array);

  bool is_array() const { return array_; }
  /// Type of the value, or of the elements of an array.
  ValueType type() const { return type_; }
  /// 1 for a scalar.
  size_t count() const { return count_; }
  /// "u32", "array of string"
  std::string type_name() const;

  /// Element `index` when it is an integer or boolean that fits; nothing otherwise.
  std::optional<int64_t> as_integer(size_t index = 0) const;
  /// As above for the upper half of u64.
  std::optional<uint64_t> as_unsigned(size_t index = 0) const;
  /// Element `index` when it is a number.
  std::optional<double> as_double(size_t index = 0) const;
  std::optional<bool> as_bool(size_t index = 0) const;
  /// The text of a scalar string.
  std::optional<std::string_view> as_string() const;
  /// Elements of an array of strings; empty for anything else.
  std::span<const std::string> as_strings() const { return strings_; }
  /// Numbers and booleans as they stand in a file.
  std::string_view raw_bytes() const { return bytes_; }
  /// For people: at most `limit` elements or characters.
  std::string to_text(size_t limit = 60) const;

 private:
  static Value number(ValueType type, const void* data, size_t count, bool array);
  ValueType type_ = ValueType::kU8;
  bool array_ = false;
  size_t count_ = 0;
  std::string bytes_;                 // numbers, booleans, or the text of a scalar string
  std::vector<std::string> strings_;  // array of strings
};

/// Lets maps of strings be searched by views.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

/// Keys and values in file order. Getters convert between integer widths when the value fits, and say key, found and
/// wanted type when it does not. Messages start with the source's name.
class Metadata {
 public:
  explicit Metadata(std::string source = {}) : source_(std::move(source)) {}

  const std::string& source() const { return source_; }
  std::span<const std::pair<std::string, Value>> entries() const { return entries_; }
  const Value* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// Adds or replaces.
  void set(std::string_view key, Value value);
  void erase(std::string_view key);
  /// Adds; false when the key is there already.
  bool add(std::string key, Value value);

  Result<int64_t> integer(std::string_view key, int64_t min, int64_t max) const;
  Result<int64_t> integer_or(std::string_view key, int64_t otherwise, int64_t min, int64_t max) const;
  /// Finite number.
  Result<double> number(std::string_view key, double min = std::numeric_limits<double>::lowest(),
                        double max = std::numeric_limits<double>::max()) const;
  Result<double> number_or(std::string_view key, double otherwise, double min = std::numeric_limits<double>::lowest(),
                           double max = std::numeric_limits<double>::max()) const;
  Result<bool> boolean_or(std::string_view key, bool otherwise) const;
  Result<std::string> string(std::string_view key) const;
  Result<std::string> string_or(std::string_view key, std::string_view otherwise) const;
  /// Array of integers (or booleans), each within [min, max].
  Result<std::vector<int64_t>> integers(std::string_view key, int64_t min, int64_t max) const;
  Result<std::vector<float>> numbers(std::string_view key) const;
  Result<std::span<const std::string>> strings(std::string_view key) const;
  /// `count` values: an array of that length, or one scalar repeated (files write head counts either way).
  Result<std::vector<int64_t>> integer_per_layer(std::string_view key, int64_t count, int64_t min, int64_t max) const;

  /// An error about a key, with the source's name.
  template <typename... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(code, "{}: {}", source_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  Result<const Value*> require(std::string_view key) const;
  Result<int64_t> checked_integer(std::string_view key, const Value& value, size_t index, int64_t min,
                                  int64_t max) const;
  std::string source_;
  std::vector<std::pair<std::string, Value>> entries_;
  std::unordered_map<std::string, size_t, StringHash, std::equal_to<>> index_;
};

}  // namespace crest::format
