#pragma once

#include <optional>
#include <string>

namespace crest::core {

/// Value of an environment variable; nothing when it is unset or empty.
std::optional<std::string> env(const char* name);

}  // namespace crest::core
