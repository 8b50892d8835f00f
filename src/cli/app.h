#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace CLI {
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace crest::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

/// Smallest and largest allowed value of a numeric option, both included.
template <typename T>
struct Range {
  T low;
  T high;
};

/// One sub-command and its options. Names are "-m,--model". A target must outlive the application's run; it keeps its
/// value (the default) when the option is not given. CLI11 stays behind this wall: it is slow to compile.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Command& flag(const std::string& names, bool& target, const std::string& help);
  Command& option(const std::string& names, std::string& target, const std::string& value_name,
                  const std::string& help);
  Command& option(const std::string& names, std::optional<std::string>& target, const std::string& value_name,
                  const std::string& help);
  Command& option(const std::string& names, int64_t& target, Range<int64_t> range, const std::string& help);
  Command& option(const std::string& names, std::optional<int64_t>& target, Range<int64_t> range,
                  const std::string& help);
  Command& option(const std::string& names, double& target, Range<double> range, const std::string& help);
  Command& option(const std::string& names, std::optional<double>& target, Range<double> range,
                  const std::string& help);
  /// May be given several times.
  Command& option(const std::string& names, std::vector<std::string>& target, const std::string& value_name,
                  const std::string& help);
  Command& choice(const std::string& names, std::string& target, const std::vector<std::string>& choices,
                  const std::string& help);
  Command& positional(const std::string& name, std::string& target, const std::string& help);
  Command& optional_positional(const std::string& name, std::string& target, const std::string& help);
  /// The option defined last must be given.
  Command& required();
  /// The option defined last may also come from this environment variable; the command line wins.
  Command& env(const std::string& variable);

 private:
  CLI::App* app_;
  CLI::Option* last_ = nullptr;
};

/// The whole command line. The tree of commands and options is the one option table: the parser, --help, the man page
/// and the completions are all read from it.
class Application {
 public:
  using Handler = std::function<Result<int>()>;

  Application();
  ~Application();
  int run(int argc, const char* const* argv);

  /// Adds `crest <name>`; examples are shown at the end of its help, one a line.
  Command add_command(const std::string& name, const std::string& summary, const std::vector<std::string>& examples,
                      Handler handler);

 private:
  int parse_error(const CLI::ParseError& error);
  int dispatch(CLI::App& command);

  std::unique_ptr<CLI::App> root_;
  std::vector<std::pair<CLI::App*, Handler>> handlers_;
};

/// A command's own complaint about its arguments: printed, exit code 2.
Error usage_error_text(const std::string& message);

template <typename... Args>
Error usage_error(fmt::format_string<Args...> format, Args&&... args) {
  return usage_error_text(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace crest::cli
