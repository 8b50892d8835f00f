#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace crest::cli {

/// "1,2,3", "1 2 3", or a JSON array or {"ids": [...]}; each id must be below vocab_size.
Result<std::vector<int32_t>> parse_id_list(std::string_view text, int64_t vocab_size);

}  // namespace crest::cli
