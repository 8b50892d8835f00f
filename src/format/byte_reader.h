#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace crest::format {

/// Takes numbers and strings off the front of bytes that nobody has checked yet. Each read names its field.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  uint64_t offset() const { return offset_; }
  uint64_t left() const { return bytes_.size() - offset_; }

  template <typename T>
  Result<T> number(std::string_view field) {
    if (left() < sizeof(T)) return truncated(field, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  Result<std::string_view> bytes(std::string_view field, uint64_t count) {
    if (left() < count) return truncated(field, count);
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + offset_, count);
    offset_ += count;
    return text;
  }

  template <typename... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(code, "{}: {}", source_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  Error truncated(std::string_view field, uint64_t wanted) const {
    return error(ErrorCode::kInvalidFile, "{} needs {} bytes at offset {}, and {} are left (a file cut short?)", field,
                 wanted, offset_, left());
  }
  std::span<const std::byte> bytes_;
  std::string_view source_;
  uint64_t offset_ = 0;
};

}  // namespace crest::format
