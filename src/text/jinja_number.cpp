#include "text/jinja_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace crest::text::jinja {
namespace {

constexpr Int kIntMax = ~(static_cast<Int>(1) << 127);
constexpr Int kIntMin = -kIntMax - 1;
constexpr double kIntLimit = 170141183460469231731687303715884105728.0;  // 2^127

bool ascii_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f'); }

std::string_view strip(std::string_view text) {
  while (!text.empty() && ascii_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && ascii_space(text.back())) text.remove_suffix(1);
  return text;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

/// Removes underscores that stand between two digits; nothing if one stands elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string clean;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      clean += text[i];
    } else if (i == 0 || i + 1 == text.size() || digit_value(text[i - 1]) > 9 || digit_value(text[i + 1]) > 9) {
      return std::nullopt;
    }
  }
  return clean;
}

}  // namespace

std::string digits(Int value, int base) {
  unsigned __int128 rest = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  std::string text;
  do {
    text += "0123456789abcdef"[static_cast<int>(rest % static_cast<unsigned>(base))];
    rest /= static_cast<unsigned>(base);
  } while (rest != 0);
  std::reverse(text.begin(), text.end());
  return text;
}

std::string integer_text(Int value) {
  std::string text(value < 0 ? "-" : "");
  return text.append(digits(value, 10));
}

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  // Python writes an exponent where it is below -4 or above 15.
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view scientific(buffer, static_cast<size_t>(end - buffer));
  const size_t e = scientific.find('e');
  int exponent = 0;
  const char* first = scientific.data() + e + 1;
  if (*first == '+') ++first;
  std::from_chars(first, end, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(scientific);
  end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr;
  std::string fixed(buffer, end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

std::optional<Int> parse_integer(std::string_view text, int base) {
  text = strip(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const auto prefix = [&](char letter, int meaning) {
    if ((base != 0 && base != meaning) || text.size() < 2 || text[0] != '0' || (text[1] | 0x20) != letter) return false;
    text.remove_prefix(2);
    if (!text.empty() && text.front() == '_') text.remove_prefix(1);
    base = meaning;
    return true;
  };
  if (!prefix('x', 16) && !prefix('o', 8) && !prefix('b', 2) && base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
  }
  Int value = 0;
  char previous = '_';
  for (const char c : text) {
    if (c == '_') {
      if (previous == '_') return std::nullopt;
    } else {
      const int digit = digit_value(c);
      if (digit >= base) return std::nullopt;
      if (__builtin_mul_overflow(value, base, &value) || __builtin_sub_overflow(value, digit, &value)) {
        raise(Fault::kOverflow, "integer too large: {}…", text.substr(0, 24));
      }
    }
    previous = c;
  }
  if (previous == '_') return std::nullopt;
  if (negative) return value;
  if (value == kIntMin) raise(Fault::kOverflow, "integer too large: {}…", text.substr(0, 24));
  return -value;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip(text);
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const auto clean = without_underscores(text);
  if (!clean || clean->empty()) return std::nullopt;
  std::string lower = *clean;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  double value = 0;
  if (lower == "inf" || lower == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (lower == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (lower.find_first_not_of("0123456789.e+-") != std::string::npos || lower.front() == '-') return std::nullopt;
    const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), value);
    if (end != lower.data() + lower.size() || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      // A wider type tells underflow from overflow; beyond that only the sign of the exponent is left.
      long double wide = 0;
      const auto again = std::from_chars(lower.data(), lower.data() + lower.size(), wide).ec;
      const bool tiny = again != std::errc() && lower.find("e-") != std::string::npos;
      value = again == std::errc() ? static_cast<double>(wide) : tiny ? 0.0 : std::numeric_limits<double>::infinity();
    }
  }
  return negative ? -value : value;
}

Int integer_from(double value) {
  if (std::isnan(value)) raise(Fault::kValue, "cannot convert float NaN to integer");
  if (std::isinf(value)) raise(Fault::kOverflow, "cannot convert float infinity to integer");
  if (value >= kIntLimit || value < -kIntLimit) raise(Fault::kOverflow, "integer too large: {}", float_text(value));
  return static_cast<Int>(value);
}

Order compare_numbers(const Value& a, const Value& b) {
  const auto order = [](auto x, auto y) { return x < y ? Order::kLess : y < x ? Order::kGreater : Order::kEqual; };
  const bool a_real = a.is(Kind::kFloat);
  const bool b_real = b.is(Kind::kFloat);
  if (!a_real && !b_real) return order(a.as_integer(), b.as_integer());
  if (std::isnan(a.as_real()) || std::isnan(b.as_real())) return Order::kUnordered;
  if (a_real && b_real) return order(a.as_real(), b.as_real());
  if (a_real) {
    const Order reversed = compare_numbers(b, a);
    return reversed == Order::kLess ? Order::kGreater : reversed == Order::kGreater ? Order::kLess : Order::kEqual;
  }
  const double y = b.as_real();
  if (y >= kIntLimit) return Order::kLess;
  if (y < -kIntLimit) return Order::kGreater;
  const Int whole = static_cast<Int>(y);
  if (a.as_integer() != whole) return order(a.as_integer(), whole);
  return order(0.0, y - static_cast<double>(whole));
}

std::string format_double(double value, char conversion, int precision, bool alternate) {
  const bool upper = conversion >= 'A' && conversion <= 'Z';
  const char kind = static_cast<char>(conversion | 0x20);
  std::string text;
  if (!std::isfinite(value)) {
    text = float_text(value);
  } else {
    std::string buffer(static_cast<size_t>(precision) + 400, '\0');
    const auto print = [&](std::chars_format format, int digits_after) {
      return buffer.substr(
          0, static_cast<size_t>(
                 std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, digits_after).ptr -
                 buffer.data()));
    };
    if (kind == 'e') text = print(std::chars_format::scientific, precision);
    if (kind == 'f') text = print(std::chars_format::fixed, precision);
    if (kind == 'g') {
      precision = std::max(precision, 1);
      text = print(std::chars_format::general, precision);
      if (alternate) {  // keeps the zeros that %g drops
        text = print(std::chars_format::scientific, precision - 1);
        const int exponent = std::stoi(text.substr(text.find('e') + 1));
        if (exponent >= -4 && exponent < precision) text = print(std::chars_format::fixed, precision - 1 - exponent);
      }
    }
    if (alternate && text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), 1, '.');
  }
  if (upper)
    std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
  return text;
}

}  // namespace crest::text::jinja
