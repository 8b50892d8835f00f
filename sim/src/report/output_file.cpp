#include "report/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace crest_sim {

Status write_file(const std::string& path, std::span<const uint8_t> bytes) {
  auto failed = [&](const std::string& name) {
    int reason = errno;
    unlink(name.c_str());
    return Error{fmt::format("{}: cannot be written ({})", path, std::strerror(reason))};
  };
  std::string temporary = fmt::format("{}.{}.part", path, getpid());
  int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return failed(temporary);
  for (size_t at = 0; at < bytes.size();) {
    ssize_t n = write(file, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return close(file), failed(temporary);
    at += static_cast<size_t>(n);
  }
  if (fsync(file) != 0 && errno != EINVAL) return close(file), failed(temporary);
  if (close(file) != 0 || rename(temporary.c_str(), path.c_str()) != 0) return failed(temporary);
  return Unit{};
}

}  // namespace crest_sim
