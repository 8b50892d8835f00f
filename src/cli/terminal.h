#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace crest::cli {

/// Opens whatever of the three standard streams is closed, so that no later file takes its number and gets our output.
void secure_standard_streams();

bool stderr_is_terminal();
bool stdout_is_terminal();
/// Colour on a terminal unless NO_COLOR is set or TERM is dumb.
bool colour_on_stderr();
bool colour_on_stdout();
int terminal_width();

/// Text for standard output, buffered; false (and one message) when it cannot be written.
bool write_stdout(std::string_view text);
bool flush_stdout();

void print_stderr(std::string_view text);
/// "crest: error: ..." on standard error; control characters from files are shown escaped.
void print_error(std::string_view message);
void print_note(std::string_view message);

/// One line on standard error that redraws itself, on a terminal only, and not before the work has taken a moment.
class ProgressBar {
 public:
  enum class Unit { kBytes, kItems };
  ProgressBar(std::string label, Unit unit);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(uint64_t done, uint64_t total);
  void finish();

 private:
  void draw(uint64_t done, uint64_t total, std::chrono::steady_clock::time_point now);
  std::string label_;
  Unit unit_;
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

/// 1536 -> "1.5 KiB".
std::string human_bytes(uint64_t bytes);

}  // namespace crest::cli
