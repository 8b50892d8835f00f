#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja_runtime.h"

namespace crest::text::jinja {

/// Python's format specification: [[fill]align][sign][z][#][0][width][grouping][.precision][type].
struct FormatSpec {
  char32_t fill = ' ';
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  Int width = 0;
  char grouping = '\0';
  std::optional<Int> precision;
  char type = '\0';
};

/// Raises ValueError for what is no specification.
FormatSpec parse_format_spec(std::string_view text);

/// format(value, spec). Raises for types that do not fit the value.
Text format_value(Runtime& runtime, const Value& value, std::string_view spec);

/// Digits of an integer or float with sign, grouping and padding.
std::string format_number(Runtime& runtime, const Value& value, const FormatSpec& spec);

constexpr int kMaxPrecision = 4096;

}  // namespace crest::text::jinja
