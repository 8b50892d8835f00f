#pragma once

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/atomic_file.h"
#include "core/file_map.h"
#include "core/result.h"
#include "core/sha256.h"

namespace crest::engine {

using Digest = std::array<uint8_t, 32>;

/// A saved session: magic, version, fingerprint of model and cache format, content, SHA-256 of all that goes before.
/// Little-endian; arrays have their length (u64) in front. The file appears under its name when it is complete.
class SessionWriter {
 public:
  static Result<SessionWriter> create(const std::filesystem::path& path, const Digest& fingerprint);

  Status number(uint64_t value);
  Status bytes(std::span<const std::byte> bytes);
  template <typename T>
  Status values(std::span<const T> values) {
    CREST_RETURN_IF_ERROR(number(values.size()));
    return bytes(std::as_bytes(values));
  }
  Status commit();

 private:
  explicit SessionWriter(core::AtomicFile file) : file_(std::move(file)) {}
  core::AtomicFile file_;
  core::Sha256 hash_;
};

/// Reads a saved session. The checksum is verified before anything else is believed, and no length is: each is bounded
/// by the bytes that are left.
class SessionReader {
 public:
  /// Errors: not a session file, another version, another model or cache format, damaged.
  static Result<SessionReader> open(const std::filesystem::path& path, const Digest& fingerprint);

  Result<uint64_t> number(std::string_view what);
  Result<std::span<const std::byte>> bytes(uint64_t count, std::string_view what);
  template <typename T>
  Result<std::vector<T>> values(std::string_view what) {
    CREST_TRY(const uint64_t count, number(what));
    if (count > left_.size() / sizeof(T)) {
      return error("{} has {} values, but only {} bytes are left", what, count, left_.size());
    }
    CREST_TRY(const auto raw, bytes(count * sizeof(T), what));
    std::vector<T> result(count);
    if (count > 0) std::memcpy(result.data(), raw.data(), raw.size());
    return result;
  }
  /// Error when bytes are left.
  Status finish() const;

  template <typename... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::kInvalidFile, "{}: {}", map_->path().string(),
                      fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  SessionReader() = default;
  std::shared_ptr<const core::FileMap> map_;
  std::span<const std::byte> left_;
};

}  // namespace crest::engine
