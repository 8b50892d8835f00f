#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/terminal.h"
#include "core/cpu_features.h"
#include "core/version.h"

namespace crest::cli {
namespace {

// Puts usage errors apart from other invalid arguments without a second error type.
constexpr std::string_view kUsageMark = "\x01";

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) best_distance = distance, best = candidate;
  }
  return best;
}

std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) words.push_back("--" + name);
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) words.push_back(command->get_name());
  return words;
}

CLI::App& deepest_parsed(CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest_parsed(*parsed.front());
}

}  // namespace

Error usage_error_text(const std::string& message) {
  return Error{ErrorCode::kInvalidArgument, std::string(kUsageMark) + message};
}

Application::~Application() = default;

Application::Application()
    : root_(std::make_unique<CLI::App>(
          "Run large language models: prompts, chat, conversion, quantisation and measurement.", "crest")) {
  root_->set_help_flag("-h,--help", "Print this help and exit");
  root_->require_subcommand(0, 1);
  root_->get_formatter()->column_width(34);
  root_->footer(
      "Exit codes: 0 success, 1 run-time error, 2 wrong usage, 130 interrupted.\nEach command has its own --help with "
      "examples.");
  add_all_commands(*this);
  add_manual_options(*root_);
  root_->add_flag_callback("--version", [] {}, "Print the version and exit");
}

Command Application::add_command(const std::string& name, const std::string& summary,
                                 const std::vector<std::string>& examples, Handler handler) {
  CLI::App* command = root_->add_subcommand(name, summary);
  command->set_help_flag("-h,--help", "Print this help and exit");
  std::string footer = "Examples:";
  for (const std::string& example : examples) footer += "\n  " + example;
  command->footer(footer);
  handlers_.emplace_back(command, std::move(handler));
  return Command(*command);
}

int Application::parse_error(const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    const auto parsed = root_->get_subcommands();
    const bool ok = write_stdout(parsed.empty() ? root_->help() : parsed.front()->help("crest")) && flush_stdout();
    return ok ? kExitOk : kExitError;
  }
  CLI::App& command = deepest_parsed(*root_);
  const std::string name = &command == root_.get() ? "crest" : "crest " + command.get_name();
  std::string message = error.what();
  // A misspelt option is the cause, a required one that is missing only the consequence.
  const auto unknown = command.remaining();
  if (!unknown.empty()) {
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    message = fmt::format("unknown {} '{}'",
                          word.starts_with('-') ? "option" : (&command == root_.get() ? "command" : "argument"), word);
    if (const std::string hint = nearest(word, known_words(command)); !hint.empty())
      message += fmt::format("; did you mean '{}'?", hint);
  }
  print_error(message);
  print_stderr(fmt::format("Try '{} --help'.\n", name));
  return kExitUsage;
}

int Application::dispatch(CLI::App& command) {
  for (const auto& [app, handler] : handlers_) {
    if (app != &command) continue;
    const Result<int> result = handler();
    if (result.ok()) return *result == kExitOk && !flush_stdout() ? kExitError : *result;
    const Error& error = result.error();
    flush_stdout();
    if (error.code == ErrorCode::kCancelled) return kExitInterrupted;
    if (error.message.starts_with(kUsageMark)) {
      print_error(error.message.substr(kUsageMark.size()));
      print_stderr(fmt::format("Try 'crest {} --help'.\n", command.get_name()));
      return kExitUsage;
    }
    print_error(error.message);
    return kExitError;
  }
  return kExitUsage;
}

int Application::run(int argc, const char* const* argv) {
  secure_standard_streams();
  try {
    root_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parse_error(error);
  }
  if (root_->count("--version") > 0) {
    return write_stdout(fmt::format("crest {}\n", kVersion)) && flush_stdout() ? kExitOk : kExitError;
  }
  if (const auto text = requested_manual(*root_)) return write_stdout(*text) && flush_stdout() ? kExitOk : kExitError;
  const auto parsed = root_->get_subcommands();
  if (parsed.empty()) {
    print_stderr(root_->help());
    return kExitUsage;
  }
  if (const Status status = core::cpu_override_status(); !status.ok()) {
    print_error(status.error().message);
    return kExitUsage;
  }
  return dispatch(*parsed.front());
}

}  // namespace crest::cli
