#include "cli/manual.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "core/version.h"

namespace crest::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& root) {
  return root.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<const CLI::Option*> named_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Choices are written as the type name {a,b,c}; anything else that takes a value may be a file.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type.size() < 2 || type.front() != '{' || type.back() != '}') return {};
  return CLI::detail::split(type.substr(1, type.size() - 2), ',');
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const auto& name : option.get_snames()) flags.push_back("-" + name);
  for (const auto& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string single_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + out + "'";
}

std::string roff(std::string text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\n')
      out += "\n.br\n";
    else
      out += c;
  }
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string man_options(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : named_options(app)) {
    std::string flags = joined(flags_of(*option), ", ");
    if (takes_value(*option)) flags += " " + option->get_type_name();
    text += fmt::format(".TP\n.B {}\n{}\n", roff(flags), roff(option->get_description()));
  }
  return text;
}

}  // namespace

void add_manual_options(CLI::App& root) {
  root.add_option("--completion", "Print a completion script for the shell and exit")
      ->type_name("{bash,zsh,fish}")
      ->check([](const std::string& shell) {
        return shell == "bash" || shell == "zsh" || shell == "fish"
                   ? std::string()
                   : "shell is '" + shell + "'; allowed are bash, zsh, fish";
      });
  root.add_flag_callback("--man", [] {}, "Print the manual page (roff) and exit");
}

std::optional<std::string> requested_manual(const CLI::App& root) {
  if (root.count("--man") > 0) return man_page(root);
  if (root.count("--completion") == 0) return std::nullopt;
  const auto shell = root["--completion"]->as<std::string>();
  if (shell == "bash") return bash_completion(root);
  if (shell == "zsh") return zsh_completion(root);
  return fish_completion(root);
}

std::string bash_completion(const CLI::App& root) {
  std::string values, words;
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(root)) {
    names.push_back(command->get_name());
    std::vector<std::string> flags;
    for (const CLI::Option* option : named_options(*command)) {
      for (const auto& flag : flags_of(*option)) {
        flags.push_back(flag);
        if (!takes_value(*option)) continue;
        const auto choices = choices_of(*option);
        values += fmt::format("    {}:{}) {} ;;\n", command->get_name(), flag,
                              choices.empty() ? "COMPREPLY=($(compgen -f -- \"$word\")); return"
                                              : fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return",
                                                            joined(choices, " ")));
      }
    }
    words += fmt::format("    {}) words=\"{}\" ;;\n", command->get_name(), joined(flags, " "));
  }
  return fmt::format(
      "# bash completion for crest\n_crest() {{\n  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" "
      "before=\"${{COMP_WORDS[COMP_CWORD-1]}}\" command=\"${{COMP_WORDS[1]}}\" words=\"\"\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W \"{} --help --version --completion --man\" -- "
      "\"$word\")); return; fi\n"
      "  case \"$command:$before\" in\n{}  esac\n  case \"$command\" in\n{}  esac\n"
      "  case \"$word\" in\n    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n    *) COMPREPLY=($(compgen "
      "-f -- \"$word\")) ;;\n  esac\n}}\ncomplete -F _crest crest\n",
      joined(names, " "), values, words);
}

std::string zsh_completion(const CLI::App& root) {
  const auto escaped = [](std::string text) {
    std::string out;
    for (const char c : text) {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      if (c != '\n') out += c;
    }
    return out;
  };
  std::string cases, names;
  for (const CLI::App* command : commands_of(root)) {
    names += fmt::format("    {}\n", single_quoted(command->get_name() + ":" + escaped(command->get_description())));
    cases += fmt::format("    {})\n      _arguments -s", command->get_name());
    for (const CLI::Option* option : named_options(*command)) {
      const auto choices = choices_of(*option);
      std::string value;
      if (takes_value(*option))
        value = choices.empty() ? ":" + escaped(option->get_type_name()) + ":_files"
                                : ":value:(" + joined(choices, " ") + ")";
      for (const auto& flag : flags_of(*option))
        cases += " \\\n        " + single_quoted("*" + flag + "[" + escaped(option->get_description()) + "]" + value);
    }
    cases += " \\\n        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(
      "#compdef crest\n_crest() {{\n  local -a commands\n  commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n    _describe 'command' commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n{}  esac\n}}\n_crest \"$@\"\n",
      names, cases);
}

std::string fish_completion(const CLI::App& root) {
  std::string text = "# fish completion for crest\n";
  for (const CLI::App* command : commands_of(root)) {
    text += fmt::format("complete -c crest -n __fish_use_subcommand -f -a {} -d {}\n", command->get_name(),
                        single_quoted(command->get_description()));
    for (const CLI::Option* option : named_options(*command)) {
      std::string line = fmt::format("complete -c crest -n '__fish_seen_subcommand_from {}'", command->get_name());
      for (const auto& name : option->get_snames()) line += " -s " + name;
      for (const auto& name : option->get_lnames()) line += " -l " + name;
      const auto choices = choices_of(*option);
      if (takes_value(*option))
        line += choices.empty() ? " -r -F" : fmt::format(" -x -a {}", single_quoted(joined(choices, " ")));
      text += fmt::format("{} -d {}\n", line, single_quoted(option->get_description()));
    }
  }
  return text;
}

std::string man_page(const CLI::App& root) {
  std::string text = fmt::format(
      ".TH CREST 1 \"\" \"crest {}\" \"User Commands\"\n.SH NAME\ncrest \\- run large language models\n", kVersion);
  text += ".SH SYNOPSIS\n.B crest\n.I command\n[options]\n.SH DESCRIPTION\n" + roff(root.get_description()) +
          "\n.SH OPTIONS\n" + man_options(root);
  text += ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(root)) {
    text += fmt::format(".SS crest {}\n{}\n{}", command->get_name(), roff(command->get_description()),
                        man_options(*command));
    if (const std::string footer = command->get_footer(); !footer.empty())
      text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(footer));
  }
  return text + ".SH EXIT STATUS\n0 success, 1 run\\-time error, 2 wrong usage, 130 interrupted.\n";
}

}  // namespace crest::cli
