#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace crest::core {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// Messages go to standard error, one line each, through spdlog. CREST_LOG=debug|info|warning|error|off sets the level
/// (default: warning).
void set_log_level(LogLevel level);
bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view text);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

/// Tells every user once, whatever the number of times that it happens.
void warn_once(std::string_view text);

}  // namespace crest::core

namespace crest {
template <typename... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  core::log(core::LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  core::log(core::LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  core::log(core::LogLevel::kDebug, format, std::forward<Args>(args)...);
}
}  // namespace crest
