// Raw and .npy files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/values.h"
#include "report/output_file.h"

namespace crest_sim::cli {

Result<std::vector<uint8_t>> read_file(const std::string& path);

struct Array {
  std::vector<uint8_t> bytes;
  std::optional<Type> type;  ///< of .npy files
};

/// A .npy file (recognised by its content) or raw bytes.
Result<Array> read_array(const std::string& path);
/// As .npy if the name ends so, otherwise raw. numpy has no bf16 and fp8: they are written as u16 and u8.
Status write_array(const std::string& path, Format format, std::span<const uint8_t> bytes);

}  // namespace crest_sim::cli
