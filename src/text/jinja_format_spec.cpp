#include <algorithm>
#include <cmath>

#include "text/jinja_format.h"
#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

bool is_align(char32_t c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Int parse_count(std::string_view text, size_t& position) {
  Int value = 0;
  while (position < text.size() && text[position] >= '0' && text[position] <= '9') {
    value = value * 10 + (text[position++] - '0');
    if (value > INT32_MAX) raise(Fault::kValue, "Too many decimal digits in format string");
  }
  return value;
}

/// Puts separators between groups of digits, from the right; pads with zeros to `width` characters.
std::string grouped(std::string_view digits, char separator, size_t group, size_t width) {
  std::string reversed;
  size_t count = 0;
  for (size_t i = digits.size(); i > 0 || reversed.size() < width; ++count) {
    if (separator != '\0' && count > 0 && count % group == 0) reversed += separator;
    reversed += i > 0 ? digits[--i] : '0';
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

std::string padded(Runtime& runtime, const std::string& text, const FormatSpec& spec, char default_align, Int length) {
  const Int missing = spec.width - length;
  if (missing <= 0) return text;
  std::string fill;
  append_char(fill, spec.fill);
  runtime.check_string(missing * static_cast<Int>(fill.size()) + static_cast<Int>(text.size()));
  const char align = spec.align == '\0' ? default_align : spec.align;
  const Int left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  runtime.tick_chars(static_cast<size_t>(missing));
  std::string out;
  for (Int i = 0; i < left; ++i) out += fill;
  out += text;
  for (Int i = left; i < missing; ++i) out += fill;
  return out;
}

/// The digits behind the sign, and where the part that is grouped ends.
struct Body {
  std::string prefix;
  std::string digits;
  size_t whole = 0;
};

Body integer_body(const Value& value, const FormatSpec& spec) {
  if (spec.precision) raise(Fault::kValue, "Precision not allowed in integer format specifier");
  const int base = spec.type == 'b' ? 2 : spec.type == 'o' ? 8 : spec.type == 'x' || spec.type == 'X' ? 16 : 10;
  Body body;
  body.digits = digits(value.as_integer(), base);
  if (spec.alternate && base != 10) body.prefix = std::string("0") + spec.type;
  if (spec.type == 'X') {
    std::transform(body.digits.begin(), body.digits.end(), body.digits.begin(),
                   [](char c) { return c >= 'a' ? c - 32 : c; });
  }
  body.whole = body.digits.size();
  return body;
}

Body real_body(double value, const FormatSpec& spec) {
  Body body;
  const Int wanted = spec.precision.value_or(6);
  if (wanted > kMaxPrecision)
    raise(Fault::kBudget, "a precision of {} is more than the {} allowed", integer_text(wanted), kMaxPrecision);
  const int precision = static_cast<int>(wanted);
  const double size = std::abs(value);
  if (spec.type == '\0' && !spec.precision) {
    body.digits = float_text(size);
  } else if (spec.type == '\0') {
    // As 'g', but a whole number keeps one digit behind the point.
    body.digits = format_double(size, 'g', std::max(precision, 1), spec.alternate);
    const std::string exact = format_double(size, 'e', std::max(precision, 1) - 1);
    const int exponent = std::isfinite(size) ? std::stoi(exact.substr(exact.find('e') + 1)) : 0;
    if (std::isfinite(size) && exponent == std::max(precision, 1) - 1) {
      body.digits = format_double(size, 'e', std::max(precision, 1) - 1);
      std::string mantissa = body.digits.substr(0, body.digits.find('e'));
      if (mantissa.find('.') != std::string::npos) {
        while (mantissa.ends_with('0')) mantissa.pop_back();
        if (mantissa.ends_with('.')) mantissa.pop_back();
      }
      body.digits = mantissa + body.digits.substr(body.digits.find('e'));
    } else if (std::isfinite(size) && body.digits.find_first_of(".e") == std::string::npos) {
      body.digits += ".0";
    }
  } else if (spec.type == '%') {
    body.digits = format_double(size * 100, 'f', precision, spec.alternate) + "%";
  } else {
    body.digits = format_double(size, spec.type == 'n' ? 'g' : spec.type, precision, spec.alternate);
  }
  body.whole = std::min(body.digits.find_first_not_of("0123456789"), body.digits.size());
  return body;
}

}  // namespace

FormatSpec parse_format_spec(std::string_view text) {
  FormatSpec spec;
  size_t position = 0;
  const auto accept = [&](char c) {
    if (position >= text.size() || text[position] != c) return false;
    ++position;
    return true;
  };
  if (!text.empty()) {
    size_t after = 0;
    const char32_t first = next_char(text, after);
    if (after < text.size() && is_align(static_cast<unsigned char>(text[after]))) {
      spec.fill = first;
      spec.align = text[after];
      position = after + 1;
    } else if (is_align(first)) {
      spec.align = text[0];
      position = 1;
    }
  }
  const bool fill_given = position > 1;
  if (position < text.size() && std::string_view("+- ").find(text[position]) != std::string_view::npos)
    spec.sign = text[position++];
  if (accept('z')) raise(Fault::kUnsupported, "the format option 'z' is not supported");
  spec.alternate = accept('#');
  if (!fill_given && accept('0')) {
    spec.zero = true;
    spec.fill = '0';
    if (spec.align == '\0') spec.align = '=';
  }
  spec.width = parse_count(text, position);
  if (position < text.size() && (text[position] == ',' || text[position] == '_')) spec.grouping = text[position++];
  if (accept('.')) {
    const size_t begin = position;
    spec.precision = parse_count(text, position);
    if (begin == position) raise(Fault::kValue, "Format specifier missing precision");
  }
  if (position < text.size()) spec.type = text[position++];
  if (position < text.size()) raise(Fault::kValue, "Invalid format specifier");
  return spec;
}

std::string format_number(Runtime& runtime, const Value& value, const FormatSpec& spec) {
  const bool integral = value.is_integer() && std::string_view("\0bdoxXn", 7).find(spec.type) != std::string_view::npos;
  const Body body = integral ? integer_body(value, spec) : real_body(value.as_real(), spec);
  const bool negative =
      value.is_integer() ? value.as_integer() < 0 : std::signbit(value.as_real()) && !std::isnan(value.as_real());
  std::string head = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  head += body.prefix;
  const std::string tail = body.digits.substr(body.whole);
  const size_t group =
      integral && std::string_view("boxX").find(spec.type) != std::string_view::npos && spec.type != '\0' ? 4 : 3;
  const bool fill_zeros = spec.fill == '0' && spec.align == '=' && body.whole > 0;
  runtime.check_string(spec.width);
  const Int room = fill_zeros ? spec.width - static_cast<Int>(head.size() + tail.size()) : 0;
  std::string whole = grouped(std::string_view(body.digits).substr(0, body.whole), spec.grouping, group,
                              room > 0 ? static_cast<size_t>(room) : 0);
  const std::string number = whole + tail;
  if (spec.align == '=') {
    FormatSpec inner = spec;
    inner.align = '>';
    inner.width = spec.width - static_cast<Int>(head.size());
    return head + padded(runtime, number, inner, '>', static_cast<Int>(number.size()));
  }
  return padded(runtime, head + number, spec, '>', static_cast<Int>(head.size() + number.size()));
}

Text format_value(Runtime& runtime, const Value& value, std::string_view text) {
  if (text.empty()) return runtime.str(value);
  if (value.undefined()) raise(Fault::kType, "unsupported format string passed to Undefined.__format__");
  const FormatSpec spec = parse_format_spec(text);
  const auto unknown = [&]() {
    raise(Fault::kValue, "Unknown format code '{}' for object of type '{}'", spec.type, type_name(value));
  };
  if (value.is_string()) {
    if (spec.type != '\0' && spec.type != 's') unknown();
    if (spec.sign != '-') raise(Fault::kValue, "Sign not allowed in string format specifier");
    if (spec.alternate) raise(Fault::kValue, "Alternate form (#) not allowed in string format specifier");
    if (spec.grouping != '\0') raise(Fault::kValue, "Cannot specify '{}' with 's'.", spec.grouping);
    if (spec.align == '=' && !spec.zero) raise(Fault::kValue, "'=' alignment not allowed in string format specifier");
    FormatSpec plain = spec;
    if (spec.zero && spec.align == '=') plain.align = '<';
    runtime.tick_chars(value.text().size());
    std::string shown = value.bytes();
    if (spec.precision) shown.resize(byte_position(shown, static_cast<size_t>(*spec.precision)));
    const Int length = static_cast<Int>(count_chars(shown));
    return value.text().derived(padded(runtime, shown, plain, '<', length));
  }
  if (!value.is_number()) raise(Fault::kType, "unsupported format string passed to {}.__format__", type_name(value));
  if (value.is(Kind::kBool) && spec.type == '\0') {
    // bool prints as an int as soon as there is a specification.
    return Text(format_number(runtime, Value::integer(value.as_integer()), spec));
  }
  const std::string_view integers = "bdoxXn";
  const std::string_view reals = "eEfFgGn%";
  if (spec.type == 'c' && value.is_integer()) {
    if (value.as_integer() < 0 || value.as_integer() > 0x10FFFF)
      raise(Fault::kOverflow, "%c arg not in range(0x110000)");
    std::string shown;
    append_char(shown, static_cast<char32_t>(value.as_integer()));
    return Text(padded(runtime, shown, spec, '<', 1));
  }
  const bool known = spec.type == '\0' || reals.find(spec.type) != std::string_view::npos ||
                     (value.is_integer() && integers.find(spec.type) != std::string_view::npos);
  if (!known) unknown();
  if (spec.grouping == ',' && std::string_view("boxXn").find(spec.type) != std::string_view::npos &&
      spec.type != '\0') {
    raise(Fault::kValue, "Cannot specify ',' with '{}'.", spec.type);
  }
  return Text(format_number(runtime, value, spec));
}

}  // namespace crest::text::jinja
