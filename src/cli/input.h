#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace crest::cli {

/// The text of -p, of the file of -f ("-": standard input), or, with neither, of standard input. Both at once is a
/// usage error; so is neither on a terminal.
Result<std::string> input_text(const std::optional<std::string>& text, const std::optional<std::string>& file);

/// All of standard input, at most 256 MiB.
Result<std::string> read_standard_input();

}  // namespace crest::cli
