#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace crest::text::jinja {

std::string integer_text(Int value);
/// repr(float): the shortest text that reads back, "1e+20", "1.0", "inf", "nan".
std::string float_text(double value);

/// int(text, base) of Python: sign, white space around, underscores between digits, prefixes for base 0, 2, 8, 16.
/// Nothing if it is no integer; raises if it does not fit.
std::optional<Int> parse_integer(std::string_view text, int base);
/// float(text) of Python.
std::optional<double> parse_float(std::string_view text);

/// int(double): towards zero; raises for nan, infinities and what does not fit.
Int integer_from(double value);

enum class Order { kLess, kEqual, kGreater, kUnordered };
/// Exact comparison of any two numbers, as Python's.
Order compare_numbers(const Value& a, const Value& b);

/// Digits of |value| in a base up to 16, lower case.
std::string digits(Int value, int base);
/// printf of a double with a conversion of "eEfFgG" and the precision given.
std::string format_double(double value, char conversion, int precision, bool alternate = false);

}  // namespace crest::text::jinja
