#include "core/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace crest::core {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "not a regular file";
}

Error os_error(const std::filesystem::path& path, const char* verb) {
  const int code = errno;
  return make_error(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "{}: cannot {}: {}", path.string(), verb,
                    std::strerror(code));
}

// Opened without blocking, so that a named pipe is refused instead of waited for.
Result<int> open_regular(const std::filesystem::path& path, struct stat& info) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return os_error(path, "open");
  if (::fstat(fd, &info) != 0) {
    Error error = os_error(path, "stat");
    ::close(fd);
    return error;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    return make_error(ErrorCode::kInvalidFile, "{}: is {}, expected a regular file", path.string(),
                      kind_of(info.st_mode));
  }
  return fd;
}

}  // namespace

Result<std::shared_ptr<const FileMap>> FileMap::open(const std::filesystem::path& path) {
  struct stat info{};
  CREST_TRY(const int fd, open_regular(path, info));
  std::shared_ptr<FileMap> map(new FileMap);
  map->path_ = path;
  map->fd_ = fd;
  map->size_ = static_cast<uint64_t>(info.st_size);
  map->identity_ = {info.st_dev, info.st_ino};
  if (map->size_ > 0) {
    void* data = ::mmap(nullptr, map->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return os_error(path, "map");
    map->data_ = static_cast<const std::byte*>(data);
  }
  return std::shared_ptr<const FileMap>(map);
}

FileMap::~FileMap() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

Status FileMap::verify_size() const {
  struct stat info{};
  if (::fstat(fd_, &info) != 0) return os_error(path_, "stat");
  if (static_cast<uint64_t>(info.st_size) < size_) {
    return make_error(ErrorCode::kInvalidFile, "{}: was {} bytes when opened and is now {}", path_.string(), size_,
                      info.st_size);
  }
  return {};
}

namespace {
void advise(const std::byte* data, uint64_t size, uint64_t offset, uint64_t length, int advice) {
  constexpr uint64_t kPage = 4096;
  if (offset >= size) return;
  const uint64_t begin = offset & ~(kPage - 1);
  const uint64_t end = length > size - offset ? size : offset + length;
  ::madvise(const_cast<std::byte*>(data) + begin, end - begin, advice);
}
}  // namespace

void FileMap::advise_will_need(uint64_t offset, uint64_t length) const {
  advise(data_, size_, offset, length, MADV_WILLNEED);
}
void FileMap::advise_dont_need(uint64_t offset, uint64_t length) const {
  advise(data_, size_, offset, length, MADV_DONTNEED);
}

Result<std::pair<uint64_t, uint64_t>> file_identity(const std::filesystem::path& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return os_error(path, "stat");
  return std::pair<uint64_t, uint64_t>{info.st_dev, info.st_ino};
}

Result<std::string> read_file(const std::filesystem::path& path, uint64_t max_bytes) {
  struct stat info{};
  CREST_TRY(const int fd, open_regular(path, info));
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > max_bytes) {
    ::close(fd);
    return make_error(ErrorCode::kInvalidFile, "{}: {} bytes, at most {} are allowed here", path.string(), size,
                      max_bytes);
  }
  std::string text(size, '\0');
  uint64_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(fd, text.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      Error error = os_error(path, "read");
      ::close(fd);
      return error;
    }
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  ::close(fd);
  text.resize(done);
  return text;
}

}  // namespace crest::core
