#include "core/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <set>

#include "core/env.h"

namespace crest::core {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::warn;
}

spdlog::logger& logger() {
  static const auto instance = [] {
    const auto mode = env("NO_COLOR") ? spdlog::color_mode::never : spdlog::color_mode::automatic;
    auto made = std::make_shared<spdlog::logger>("crest", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
    made->set_pattern("%^%l%$: %v");
    made->set_level(spdlog::level::warn);
    if (const auto level = env("CREST_LOG")) made->set_level(spdlog::level::from_str(*level));
    return made;
  }();
  return *instance;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }
bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }
void log_line(LogLevel level, std::string_view text) { logger().log(to_spdlog(level), "{}", text); }

void warn_once(std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> seen;
  {
    std::lock_guard lock(mutex);
    if (seen.size() > 1000 || !seen.emplace(text).second) return;
  }
  log_line(LogLevel::kWarning, text);
}

}  // namespace crest::core
