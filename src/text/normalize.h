#pragma once

#include <string>
#include <string_view>

namespace crest::text {

/// Normalisation forms C and D (Unicode Standard Annex 15) in the Unicode version of the generated tables. Bytes that
/// are not UTF-8 stay where they are and take part in nothing. Linear but for sorting within a run of combining marks.
std::string normalize_nfc(std::string_view text);
std::string normalize_nfd(std::string_view text);

}  // namespace crest::text
