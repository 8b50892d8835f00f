#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace crest::format {

/// Text from a file, made fit for a message: control characters and bytes that are not UTF-8 become \xNN, and it is cut
/// at about `limit` bytes.
std::string escaped(std::string_view text, size_t limit = 80);

/// Whether the text is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

}  // namespace crest::format
