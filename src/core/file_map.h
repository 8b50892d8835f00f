#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "core/result.h"

namespace crest::core {

/// A regular file mapped read-only. The size is taken once, at open; a file that shrinks afterwards is reported by
/// verify_size(), which loaders call before they touch the data for the first time.
class FileMap {
 public:
  static Result<std::shared_ptr<const FileMap>> open(const std::filesystem::path& path);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  uint64_t size() const { return size_; }
  /// Device and inode: two paths with the same identity are the same file.
  std::pair<uint64_t, uint64_t> identity() const { return identity_; }
  /// Error when the file is now shorter than it was at open.
  Status verify_size() const;
  /// Tells the kernel that the range will be read soon (or once, in order).
  void advise_will_need(uint64_t offset, uint64_t length) const;
  void advise_dont_need(uint64_t offset, uint64_t length) const;

 private:
  FileMap() = default;
  std::filesystem::path path_;
  int fd_ = -1;
  const std::byte* data_ = nullptr;
  uint64_t size_ = 0;
  std::pair<uint64_t, uint64_t> identity_;
};

/// Device and inode of a path that exists.
Result<std::pair<uint64_t, uint64_t>> file_identity(const std::filesystem::path& path);

/// Reads a whole regular file of at most max_bytes.
Result<std::string> read_file(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace crest::core
