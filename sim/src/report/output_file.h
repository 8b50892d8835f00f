// Files that are replaced as a whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "crest_sim/result.h"

namespace crest_sim {

/// Through a temporary file beside it: a reader sees the old file or the whole new one.
Status write_file(const std::string& path, std::span<const uint8_t> bytes);

}  // namespace crest_sim
