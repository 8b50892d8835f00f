#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "core/result.h"

namespace crest::core {

/// Writes a file that appears under its name only when it is complete: temporary file in the same folder, fsync,
/// rename. Dropped without commit(), nothing is left behind.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  Status write_zeros(uint64_t count);
  /// Overwrites bytes written before, for headers whose content is known late.
  Status write_at(uint64_t offset, std::span<const std::byte> bytes);
  uint64_t offset() const { return offset_; }
  Status commit();

 private:
  AtomicFile() = default;
  Status flush();
  Status write_fully(const std::byte* data, uint64_t size, uint64_t offset);
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  uint64_t offset_ = 0;
  std::string buffer_;
};

}  // namespace crest::core
