#include "cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/env.h"

namespace crest::cli {
namespace {

constexpr auto kFirstDraw = std::chrono::milliseconds(300);
constexpr auto kRedraw = std::chrono::milliseconds(100);

bool terminal_has_escapes() {
  const auto term = core::env("TERM");
  return term && *term != "dumb";
}

bool colour_allowed() { return !core::env("NO_COLOR") && terminal_has_escapes(); }

bool stdout_failed = false;

bool stdout_error() {
  if (!stdout_failed) print_error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  stdout_failed = true;
  return false;
}

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f)) {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", byte);
    }
  }
  return out;
}

std::string duration_text(double seconds) {
  if (seconds < 0 || seconds > 359999) return "--:--";
  const auto s = static_cast<int64_t>(seconds + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

}  // namespace

void secure_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    // Read-only for the output streams: writing to them then fails, as it should.
    if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

bool stderr_is_terminal() { return ::isatty(2) == 1; }
bool stdout_is_terminal() { return ::isatty(1) == 1; }
bool colour_on_stderr() { return stderr_is_terminal() && colour_allowed(); }
bool colour_on_stdout() { return stdout_is_terminal() && colour_allowed(); }

int terminal_width() {
  winsize size{};
  if (::ioctl(2, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool write_stdout(std::string_view text) {
  if (stdout_failed) return false;
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() || stdout_error();
}

bool flush_stdout() {
  if (stdout_failed) return false;
  return std::fflush(stdout) == 0 || stdout_error();
}

void print_stderr(std::string_view text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

void print_error(std::string_view message) {
  const bool colour = colour_on_stderr();
  print_stderr(
      fmt::format("crest: {}error:{} {}\n", colour ? "\x1b[1;31m" : "", colour ? "\x1b[0m" : "", printable(message)));
}

void print_note(std::string_view message) { print_stderr(fmt::format("crest: {}\n", printable(message))); }

std::string human_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

ProgressBar::ProgressBar(std::string label, Unit unit)
    : label_(std::move(label)),
      unit_(unit),
      enabled_(stderr_is_terminal() && terminal_has_escapes()),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(uint64_t done, uint64_t total) {
  if (!enabled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - start_ < kFirstDraw || (drawn_ && now - last_ < kRedraw)) return;
  draw(done, total, now);
}

void ProgressBar::draw(uint64_t done, uint64_t total, std::chrono::steady_clock::time_point now) {
  const double fraction = total == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const std::string counts = unit_ == Unit::kBytes ? fmt::format("{} / {}", human_bytes(done), human_bytes(total))
                                                   : fmt::format("{} / {}", done, total);
  const std::string left = fraction > 0 ? duration_text(elapsed / fraction - elapsed) : "--:--";
  const std::string tail = fmt::format(" {:3.0f}% {} ETA {}", 100 * fraction, counts, left);
  const int width = std::clamp(terminal_width() - static_cast<int>(label_.size() + tail.size()) - 4, 0, 40);
  const int filled = static_cast<int>(fraction * width);
  std::string line = fmt::format("{} [{}{}]{}", label_, std::string(static_cast<size_t>(filled), '#'),
                                 std::string(static_cast<size_t>(width - filled), '.'), tail);
  line.resize(std::min(line.size(), static_cast<size_t>(std::max(1, terminal_width() - 1))));
  print_stderr("\r\x1b[K" + line);
  drawn_ = true;
  last_ = now;
}

void ProgressBar::finish() {
  if (drawn_) print_stderr("\r\x1b[K");
  drawn_ = false;
  enabled_ = false;
}

}  // namespace crest::cli
