#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace crest::text::jinja {

/// strftime with English names whatever the locale. Unknown conversions stay as they are. Raises where the result gets
/// long.
std::string format_time(std::string_view format, const std::tm& time);

}  // namespace crest::text::jinja
