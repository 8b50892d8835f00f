#pragma once

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace crest::cli {

/// Adds --completion SHELL and --man to the root.
void add_manual_options(CLI::App& root);

/// The completion script or man page that the command line asked for.
std::optional<std::string> requested_manual(const CLI::App& root);

std::string bash_completion(const CLI::App& root);
std::string zsh_completion(const CLI::App& root);
std::string fish_completion(const CLI::App& root);
std::string man_page(const CLI::App& root);

}  // namespace crest::cli
