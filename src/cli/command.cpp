#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "cli/app.h"

namespace crest::cli {
namespace {

/// Of "-s,--seed" the first long name: how messages call the option.
std::string first_flag(const std::string& names) {
  const size_t at = names.find("--") == std::string::npos ? 0 : names.find("--");
  return names.substr(at, names.find(',', at) - at);
}

template <typename T>
std::string parse_number(const std::string& text, const std::string& names, Range<T> range, T& value) {
  T parsed{};
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, parsed);
  bool good = code == std::errc() && stop == end && parsed >= range.low && parsed <= range.high;
  if constexpr (std::is_floating_point_v<T>) good = good && !std::isnan(parsed);
  if (!good) {
    return fmt::format("{} is '{}'; allowed: {} from {} to {}", first_flag(names), text,
                       std::is_floating_point_v<T> ? "a number" : "a whole number", range.low, range.high);
  }
  value = parsed;
  return {};
}

// CLI11's own number parsing would accept "1e3" for an integer or silently wrap; a check that also stores does not.
template <typename T, typename Target>
CLI::Option* add_number(CLI::App& app, const std::string& names, Target& target, Range<T> range,
                        const std::string& help) {
  CLI::Option* option = app.add_option_function<std::string>(
      names,
      [names, range, &target](const std::string& text) {
        T value{};
        if (const std::string complaint = parse_number(text, names, range, value); !complaint.empty())
          throw CLI::ValidationError(complaint);
        target = value;
      },
      help);
  return option->type_name("N");
}

template <typename T>
std::string with_default(const std::string& help, const T& value) {
  return fmt::format("{} (default: {})", help, value);
}

}  // namespace

Command& Command::flag(const std::string& names, bool& target, const std::string& help) {
  last_ = app_->add_flag(names, target, help);
  return *this;
}

Command& Command::option(const std::string& names, std::string& target, const std::string& value_name,
                         const std::string& help) {
  last_ = app_->add_option(names, target, help)->type_name(value_name);
  return *this;
}

Command& Command::option(const std::string& names, std::optional<std::string>& target, const std::string& value_name,
                         const std::string& help) {
  last_ = app_->add_option_function<std::string>(
                  names, [&target](const std::string& text) { target = text; }, help)
              ->type_name(value_name);
  return *this;
}

Command& Command::option(const std::string& names, int64_t& target, Range<int64_t> range, const std::string& help) {
  last_ = add_number(*app_, names, target, range, with_default(help, target));
  return *this;
}

Command& Command::option(const std::string& names, std::optional<int64_t>& target, Range<int64_t> range,
                         const std::string& help) {
  last_ = add_number(*app_, names, target, range, help);
  return *this;
}

Command& Command::option(const std::string& names, double& target, Range<double> range, const std::string& help) {
  last_ = add_number(*app_, names, target, range, with_default(help, target));
  return *this;
}

Command& Command::option(const std::string& names, std::optional<double>& target, Range<double> range,
                         const std::string& help) {
  last_ = add_number(*app_, names, target, range, help);
  return *this;
}

Command& Command::option(const std::string& names, std::vector<std::string>& target, const std::string& value_name,
                         const std::string& help) {
  // One value an occurrence: what follows may be a positional argument.
  last_ = app_->add_option(names, target, help)
              ->type_name(value_name)
              ->expected(1)
              ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Command& Command::choice(const std::string& names, std::string& target, const std::vector<std::string>& choices,
                         const std::string& help) {
  // No CLI::Validator: its messages name the option a second time.
  last_ = app_->add_option_function<std::string>(
                  names,
                  [names, choices, &target](const std::string& text) {
                    if (std::find(choices.begin(), choices.end(), text) == choices.end())
                      throw CLI::ValidationError(fmt::format("{} is '{}'; allowed are {}", first_flag(names), text,
                                                             fmt::join(choices, ", ")));
                    target = text;
                  },
                  with_default(help, target))
              ->type_name(fmt::format("{{{}}}", fmt::join(choices, ",")));
  return *this;
}

Command& Command::positional(const std::string& name, std::string& target, const std::string& help) {
  last_ = app_->add_option(name, target, help)->type_name("")->required();
  return *this;
}

Command& Command::optional_positional(const std::string& name, std::string& target, const std::string& help) {
  last_ = app_->add_option(name, target, help)->type_name("");
  return *this;
}

Command& Command::required() {
  last_->required();
  return *this;
}

Command& Command::env(const std::string& variable) {
  last_->envname(variable);
  return *this;
}

}  // namespace crest::cli
