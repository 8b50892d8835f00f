#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"

namespace crest::format {
class ModelFile;
}

namespace crest::cli {

/// The text of -p, of the file of -f ("-": standard input), or, with neither, of standard input. Both at once is a
/// usage error; so is neither on a terminal.
Result<std::string> input_text(const std::optional<std::string>& text, const std::optional<std::string>& file);

/// All of standard input, at most 256 MiB.
Result<std::string> read_standard_input();

/// An error where writing one of `outputs` would replace a file of the model, one of the other inputs, or another
/// output. Empty names are skipped.
Status refuse_overwriting(std::span<const std::filesystem::path> outputs, const format::ModelFile& model,
                          std::span<const std::filesystem::path> other_inputs);

}  // namespace crest::cli
