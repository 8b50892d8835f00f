#include "core/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace crest::core {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

Error write_error(const std::filesystem::path& path, const char* verb) {
  const int code = errno;
  return make_error(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "{}: cannot {}: {}", path.string(), verb,
                    std::strerror(code));
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

}  // namespace

Result<AtomicFile> AtomicFile::create(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    return make_error(ErrorCode::kInvalidArgument, "{}: is a directory, expected a file name", path.string());
  // The rename would put a file in the place of a device or a pipe.
  if (std::filesystem::exists(path, code) && !std::filesystem::is_regular_file(path, code))
    return make_error(ErrorCode::kInvalidArgument, "{}: is a {}, which cannot be replaced by a file", path.string(),
                      std::filesystem::is_fifo(path, code) || std::filesystem::is_socket(path, code) ? "pipe or socket"
                                                                                                       : "device");
  AtomicFile file;
  // A symbolic link keeps pointing where it did: its target is replaced.
  file.path_ = std::filesystem::is_symlink(path, code) ? std::filesystem::weakly_canonical(path, code) : path;
  std::string name = (folder_of(file.path_) / fmt::format(".{}.XXXXXX", file.path_.filename().string())).string();
  file.fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file.fd_ < 0) return write_error(path, "create");
  file.temporary_ = name;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file.fd_, 0666 & ~mask);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept { *this = std::move(other); }

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  std::swap(offset_, other.offset_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Status AtomicFile::write_fully(const std::byte* data, uint64_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t done = ::pwrite(fd_, data, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return write_error(path_, "write");
    data += done;
    offset += static_cast<uint64_t>(done);
    size -= static_cast<uint64_t>(done);
  }
  return {};
}

Status AtomicFile::flush() {
  CREST_RETURN_IF_ERROR(
      write_fully(reinterpret_cast<const std::byte*>(buffer_.data()), buffer_.size(), offset_ - buffer_.size()));
  buffer_.clear();
  return {};
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  offset_ += bytes.size();
  if (bytes.size() < kBufferBytes) {
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return buffer_.size() >= kBufferBytes ? flush() : Status{};
  }
  offset_ -= bytes.size();
  CREST_RETURN_IF_ERROR(flush());
  offset_ += bytes.size();
  return write_fully(bytes.data(), bytes.size(), offset_ - bytes.size());
}

Status AtomicFile::write_zeros(uint64_t count) {
  static constexpr std::byte kZeros[4096] = {};
  while (count > 0) {
    const uint64_t part = std::min<uint64_t>(count, sizeof kZeros);
    CREST_RETURN_IF_ERROR(write(std::span(kZeros, part)));
    count -= part;
  }
  return {};
}

Status AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  CREST_CHECK(offset + bytes.size() <= offset_, "write_at behind the end");
  CREST_RETURN_IF_ERROR(flush());
  return write_fully(bytes.data(), bytes.size(), offset);
}

Status AtomicFile::commit() {
  CREST_RETURN_IF_ERROR(flush());
  if (::fsync(fd_) != 0) return write_error(path_, "sync");
  if (::close(std::exchange(fd_, -1)) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    Error error = write_error(path_, "rename into place");
    ::unlink(temporary_.c_str());
    return error;
  }
  // The name itself is durable only once the folder is synced.
  if (const int folder = ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

}  // namespace crest::core
