#include "format/metadata.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "format/escape.h"

namespace crest::format {
namespace {

static_assert(std::endian::native == std::endian::little, "values are kept as they stand in little-endian files");

template <typename T>
T load(std::string_view bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

std::string_view name(ValueType type) {
  switch (type) {
    case ValueType::kU8:
      return "u8";
    case ValueType::kI8:
      return "i8";
    case ValueType::kU16:
      return "u16";
    case ValueType::kI16:
      return "i16";
    case ValueType::kU32:
      return "u32";
    case ValueType::kI32:
      return "i32";
    case ValueType::kF32:
      return "f32";
    case ValueType::kBool:
      return "bool";
    case ValueType::kString:
      return "string";
    case ValueType::kArray:
      return "array";
    case ValueType::kU64:
      return "u64";
    case ValueType::kI64:
      return "i64";
    case ValueType::kF64:
      return "f64";
  }
  return "unknown";
}

size_t value_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      return 0;
  }
  return 0;
}

bool is_integer(ValueType type) {
  return value_bytes(type) != 0 && type != ValueType::kF32 && type != ValueType::kF64 && type != ValueType::kBool;
}

Value Value::number(ValueType type, const void* data, size_t count, bool array) {
  return raw(type, std::string(static_cast<const char*>(data), count * value_bytes(type)), array);
}

Value Value::boolean(bool value) { return raw(ValueType::kBool, std::string(1, value ? '\1' : '\0'), false); }

Value Value::bools(const std::vector<bool>& values) {
  std::string bytes;
  for (const bool value : values) bytes.push_back(value ? '\1' : '\0');
  return raw(ValueType::kBool, std::move(bytes), true);
}

Value Value::raw(ValueType type, std::string bytes, bool array) {
  CREST_CHECK(value_bytes(type) != 0 && bytes.size() % value_bytes(type) == 0, "{} bytes of {}", bytes.size(),
              format::name(type));
  Value value;
  value.type_ = type;
  value.array_ = array;
  value.count_ = bytes.size() / value_bytes(type);
  value.bytes_ = std::move(bytes);
  return value;
}

Value Value::string(std::string text) {
  Value value;
  value.type_ = ValueType::kString;
  value.count_ = 1;
  value.bytes_ = std::move(text);
  return value;
}

Value Value::strings(std::vector<std::string> values) {
  Value value;
  value.type_ = ValueType::kString;
  value.array_ = true;
  value.count_ = values.size();
  value.strings_ = std::move(values);
  return value;
}

std::string Value::type_name() const {
  return array_ ? fmt::format("array of {} {}", count_, format::name(type_)) : std::string(format::name(type_));
}

std::optional<int64_t> Value::as_integer(size_t index) const {
  if (index >= count_) return std::nullopt;
  switch (type_) {
    case ValueType::kU8:
    case ValueType::kBool:
      return load<uint8_t>(bytes_, index);
    case ValueType::kI8:
      return load<int8_t>(bytes_, index);
    case ValueType::kU16:
      return load<uint16_t>(bytes_, index);
    case ValueType::kI16:
      return load<int16_t>(bytes_, index);
    case ValueType::kU32:
      return load<uint32_t>(bytes_, index);
    case ValueType::kI32:
      return load<int32_t>(bytes_, index);
    case ValueType::kI64:
      return load<int64_t>(bytes_, index);
    case ValueType::kU64: {
      const auto value = load<uint64_t>(bytes_, index);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<uint64_t> Value::as_unsigned(size_t index) const {
  if (type_ == ValueType::kU64 && index < count_) return load<uint64_t>(bytes_, index);
  const auto value = as_integer(index);
  if (!value || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<double> Value::as_double(size_t index) const {
  if (index >= count_) return std::nullopt;
  if (type_ == ValueType::kF32) return load<float>(bytes_, index);
  if (type_ == ValueType::kF64) return load<double>(bytes_, index);
  if (type_ == ValueType::kBool) return std::nullopt;
  if (type_ == ValueType::kU64) return static_cast<double>(load<uint64_t>(bytes_, index));
  const auto value = as_integer(index);
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

std::optional<bool> Value::as_bool(size_t index) const {
  const auto value = as_integer(index);
  if (!value || (*value != 0 && *value != 1)) return std::nullopt;
  return *value == 1;
}

std::optional<std::string_view> Value::as_string() const {
  if (type_ != ValueType::kString || array_) return std::nullopt;
  return bytes_;
}

std::string Value::to_text(size_t limit) const {
  if (!array_ && type_ == ValueType::kString) return escaped(bytes_, limit);
  std::string text = array_ ? "[" : "";
  for (size_t i = 0; i < count_; ++i) {
    if (i > 0) text += ", ";
    if (i >= 1 && text.size() >= limit) {
      text += "…";
      break;
    }
    if (type_ == ValueType::kString) {
      text += '"' + escaped(strings_[i], limit) + '"';
    } else if (type_ == ValueType::kBool) {
      text += as_bool(i).value_or(false) ? "true" : "false";
    } else if (type_ == ValueType::kF32) {
      text += fmt::format("{}", load<float>(bytes_, i));
    } else if (type_ == ValueType::kF64) {
      text += fmt::format("{}", load<double>(bytes_, i));
    } else if (type_ == ValueType::kU64) {
      text += fmt::format("{}", load<uint64_t>(bytes_, i));
    } else {
      text += fmt::format("{}", as_integer(i).value_or(0));
    }
  }
  return array_ ? text + "]" : text;
}

const Value* Metadata::find(std::string_view key) const {
  const auto at = index_.find(key);
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

bool Metadata::add(std::string key, Value value) {
  if (!index_.emplace(key, entries_.size()).second) return false;
  entries_.emplace_back(std::move(key), std::move(value));
  return true;
}

void Metadata::set(std::string_view key, Value value) {
  if (const auto at = index_.find(key); at != index_.end()) {
    entries_[at->second].second = std::move(value);
  } else {
    add(std::string(key), std::move(value));
  }
}

void Metadata::erase(std::string_view key) {
  const auto at = index_.find(key);
  if (at == index_.end()) return;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at->second));
  index_.clear();
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].first, i);
}

Result<const Value*> Metadata::require(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return error(ErrorCode::kNotFound, "metadata key {} is missing", key);
  return value;
}

Result<int64_t> Metadata::checked_integer(std::string_view key, const Value& value, size_t index, int64_t min,
                                          int64_t max) const {
  if (!is_integer(value.type()) && value.type() != ValueType::kBool)
    return error(ErrorCode::kInvalidFile, "{} is {}, expected an integer", key, value.type_name());
  const auto number = value.as_integer(index);
  if (!number || *number < min || *number > max) {
    const std::string place = value.is_array() ? fmt::format("[{}]", index) : "";
    return error(ErrorCode::kInvalidFile, "{}{} is {}, allowed is {} to {}", key, place,
                 number ? fmt::format("{}", *number) : "above 2^63", min, max);
  }
  return *number;
}

Result<int64_t> Metadata::integer(std::string_view key, int64_t min, int64_t max) const {
  CREST_TRY(const Value* value, require(key));
  if (value->is_array())
    return error(ErrorCode::kInvalidFile, "{} is {}, expected an integer", key, value->type_name());
  return checked_integer(key, *value, 0, min, max);
}

Result<int64_t> Metadata::integer_or(std::string_view key, int64_t otherwise, int64_t min, int64_t max) const {
  return contains(key) ? integer(key, min, max) : otherwise;
}

Result<double> Metadata::number(std::string_view key, double min, double max) const {
  CREST_TRY(const Value* value, require(key));
  const auto number = value->is_array() ? std::nullopt : value->as_double();
  if (!number) return error(ErrorCode::kInvalidFile, "{} is {}, expected a number", key, value->type_name());
  if (!std::isfinite(*number) || *number < min || *number > max)
    return error(ErrorCode::kInvalidFile, "{} is {}, allowed is {} to {}", key, *number, min, max);
  return *number;
}

Result<double> Metadata::number_or(std::string_view key, double otherwise, double min, double max) const {
  return contains(key) ? number(key, min, max) : otherwise;
}

Result<bool> Metadata::boolean_or(std::string_view key, bool otherwise) const {
  const Value* value = find(key);
  if (value == nullptr) return otherwise;
  const auto boolean = value->is_array() ? std::nullopt : value->as_bool();
  if (!boolean) return error(ErrorCode::kInvalidFile, "{} is {}, expected a boolean", key, value->type_name());
  return *boolean;
}

Result<std::string> Metadata::string(std::string_view key) const {
  CREST_TRY(const Value* value, require(key));
  const auto text = value->as_string();
  if (!text) return error(ErrorCode::kInvalidFile, "{} is {}, expected a string", key, value->type_name());
  return std::string(*text);
}

Result<std::string> Metadata::string_or(std::string_view key, std::string_view otherwise) const {
  return contains(key) ? string(key) : std::string(otherwise);
}

Result<std::vector<int64_t>> Metadata::integers(std::string_view key, int64_t min, int64_t max) const {
  CREST_TRY(const Value* value, require(key));
  if (!value->is_array())
    return error(ErrorCode::kInvalidFile, "{} is {}, expected an array of integers", key, value->type_name());
  std::vector<int64_t> numbers(value->count());
  for (size_t i = 0; i < numbers.size(); ++i) {
    CREST_TRY(numbers[i], checked_integer(key, *value, i, min, max));
  }
  return numbers;
}

Result<std::vector<float>> Metadata::numbers(std::string_view key) const {
  CREST_TRY(const Value* value, require(key));
  std::vector<float> numbers(value->count());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto number = value->is_array() ? value->as_double(i) : std::nullopt;
    if (!number)
      return error(ErrorCode::kInvalidFile, "{} is {}, expected an array of numbers", key, value->type_name());
    numbers[i] = static_cast<float>(*number);
  }
  return numbers;
}

Result<std::span<const std::string>> Metadata::strings(std::string_view key) const {
  CREST_TRY(const Value* value, require(key));
  if (!value->is_array() || value->type() != ValueType::kString)
    return error(ErrorCode::kInvalidFile, "{} is {}, expected an array of strings", key, value->type_name());
  return value->as_strings();
}

Result<std::vector<int64_t>> Metadata::integer_per_layer(std::string_view key, int64_t count, int64_t min,
                                                         int64_t max) const {
  CREST_TRY(const Value* value, require(key));
  if (!value->is_array()) {
    CREST_TRY(const int64_t number, integer(key, min, max));
    return std::vector<int64_t>(static_cast<size_t>(count), number);
  }
  if (value->count() != static_cast<size_t>(count))
    return error(ErrorCode::kInvalidFile, "{} has {} elements, expected one for each of {} blocks", key, value->count(),
                 count);
  return integers(key, min, max);
}

}  // namespace crest::format
