#include <cmath>

#include "text/jinja_methods.h"
#include "text/jinja_number.h"
#include "text/jinja_runtime.h"

namespace crest::text::jinja {
namespace {

/// Undefined values raise what they lack; other operands give Python's TypeError.
[[noreturn]] void unsupported(std::string_view operation, const Value& a, const Value& b) {
  if (a.undefined()) a.undefined_object().fail();
  if (b.undefined()) b.undefined_object().fail();
  raise(Fault::kType, "unsupported operand type(s) for {}: '{}' and '{}'", operation, type_name(a), type_name(b));
}

[[noreturn]] void overflow(std::string_view operation) {
  raise(Fault::kOverflow, "the result of {} does not fit into 127 bits", operation);
}

bool reals(const Value& a, const Value& b) { return a.is(Kind::kFloat) || b.is(Kind::kFloat); }

Value repeat(Runtime& runtime, const Value& value, Int count) {
  if (count < 0) count = 0;
  if (value.is_string()) {
    const Text& text = value.text();
    if (count > (Int{1} << 40)) count = Int{1} << 40;
    runtime.check_string(static_cast<Int>(text.size()) * count);
    Text out;
    append_repeated(runtime, out, text, count);
    return runtime.string(std::move(out), value.string().markup);
  }
  const std::vector<Value>& items = value.list().items;
  if (count > (Int{1} << 40)) count = Int{1} << 40;
  runtime.check_items(static_cast<Int>(items.size()) * count);
  std::vector<Value> out;
  for (Int i = 0; i < count && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  return value.is(Kind::kList) ? runtime.list(std::move(out)) : runtime.tuple(std::move(out));
}

double checked_real(double result, const Value& a, const Value& b) {
  if (std::isinf(result) && std::isfinite(a.as_real()) && std::isfinite(b.as_real())) {
    raise(Fault::kOverflow, "(34, 'Numerical result out of range')");
  }
  return result;
}

/// Remainder with the sign of the divisor.
double python_mod(double x, double y) {
  const double rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(0.0, y);
  return (y < 0) != (rest < 0) ? rest + y : rest;
}

}  // namespace

Value Runtime::add(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (reals(a, b)) return Value::real(a.as_real() + b.as_real());
    Int sum = 0;
    if (__builtin_add_overflow(a.as_integer(), b.as_integer(), &sum)) overflow("+");
    return Value::integer(sum);
  }
  if (a.is_string() && b.is_string()) {
    const bool markup = a.string().markup || b.string().markup;
    const Value left = markup ? escape(a) : a;
    const Value right = markup ? escape(b) : b;
    check_string(static_cast<Int>(left.text().size() + right.text().size()));
    Text out;
    out.reserve(left.text().size() + right.text().size());
    out.append(left.text());
    out.append(right.text());
    return string(std::move(out), markup);
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    std::vector<Value> items = a.list().items;
    items.insert(items.end(), b.list().items.begin(), b.list().items.end());
    return a.is(Kind::kList) ? list(std::move(items)) : tuple(std::move(items));
  }
  if (!b.undefined() && a.is_string()) {
    raise(Fault::kType, "can only concatenate str (not \"{}\") to str", type_name(b));
  }
  if (!b.undefined() && a.is_sequence()) {
    raise(Fault::kType, "can only concatenate {} (not \"{}\") to {}", type_name(a), type_name(b), type_name(a));
  }
  unsupported("+", a, b);
}

Value Runtime::subtract(const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) unsupported("-", a, b);
  if (reals(a, b)) return Value::real(a.as_real() - b.as_real());
  Int difference = 0;
  if (__builtin_sub_overflow(a.as_integer(), b.as_integer(), &difference)) overflow("-");
  return Value::integer(difference);
}

Value Runtime::multiply(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (reals(a, b)) return Value::real(a.as_real() * b.as_real());
    Int product = 0;
    if (__builtin_mul_overflow(a.as_integer(), b.as_integer(), &product)) overflow("*");
    return Value::integer(product);
  }
  if ((a.is_string() || a.is_sequence()) && b.is_integer()) return repeat(*this, a, b.as_integer());
  if ((b.is_string() || b.is_sequence()) && a.is_integer()) return repeat(*this, b, a.as_integer());
  if ((a.is_string() || a.is_sequence()) && !b.undefined()) {
    raise(Fault::kType, "can't multiply sequence by non-int of type '{}'", type_name(b));
  }
  unsupported("*", a, b);
}

Value Runtime::divide(const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) unsupported("/", a, b);
  if (b.as_real() == 0) {
    raise(Fault::kZeroDivision, "{}", reals(a, b) ? "float division by zero" : "division by zero");
  }
  if (reals(a, b)) return Value::real(a.as_real() / b.as_real());
  return Value::real(
      static_cast<double>(static_cast<long double>(a.as_integer()) / static_cast<long double>(b.as_integer())));
}

Value Runtime::floor_divide(const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) unsupported("//", a, b);
  if (reals(a, b)) {
    const double x = a.as_real();
    const double y = b.as_real();
    if (y == 0) raise(Fault::kZeroDivision, "float floor division by zero");
    const double rest = python_mod(x, y);
    const double quotient = (x - rest) / y;
    if (quotient == 0) return Value::real(std::copysign(0.0, x / y));
    const double whole = std::floor(quotient);
    return Value::real(quotient - whole > 0.5 ? whole + 1 : whole);
  }
  const Int x = a.as_integer();
  const Int y = b.as_integer();
  if (y == 0) raise(Fault::kZeroDivision, "integer division or modulo by zero");
  if (y == -1) return negate(Value::integer(x));
  const Int quotient = x / y;
  return Value::integer(x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient);
}

Value Runtime::modulo(const Value& a, const Value& b) {
  if (a.is_string()) return percent_format(a, b);
  if (!a.is_number() || !b.is_number()) unsupported("%", a, b);
  if (reals(a, b)) {
    if (b.as_real() == 0) raise(Fault::kZeroDivision, "float modulo");
    return Value::real(python_mod(a.as_real(), b.as_real()));
  }
  const Int y = b.as_integer();
  if (y == 0) raise(Fault::kZeroDivision, "integer division or modulo by zero");
  if (y == -1) return Value::integer(0);
  const Int rest = a.as_integer() % y;
  return Value::integer(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
}

Value Runtime::power(const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) unsupported("** or pow()", a, b);
  if (reals(a, b) || b.as_integer() < 0) {
    const double x = a.as_real();
    const double y = b.as_real();
    if (x == 0 && y < 0) raise(Fault::kZeroDivision, "0.0 cannot be raised to a negative power");
    if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y)) {
      raise(Fault::kUnsupported, "complex numbers are not supported");
    }
    return Value::real(checked_real(std::pow(x, y), a, b));
  }
  Int base = a.as_integer();
  Int exponent = b.as_integer();
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  if (exponent > 127) overflow("**");
  Int result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, base, &result)) overflow("**");
  }
  return Value::integer(result);
}

Value Runtime::negate(const Value& a) {
  if (a.is(Kind::kFloat)) return Value::real(-a.as_real());
  if (a.undefined()) a.undefined_object().fail();
  if (!a.is_integer()) raise(Fault::kType, "bad operand type for unary -: '{}'", type_name(a));
  Int negative = 0;
  if (__builtin_sub_overflow(Int{0}, a.as_integer(), &negative)) overflow("-");
  return Value::integer(negative);
}

Value Runtime::positive(const Value& a) {
  if (a.undefined()) a.undefined_object().fail();
  if (!a.is_number()) raise(Fault::kType, "bad operand type for unary +: '{}'", type_name(a));
  return a.is(Kind::kFloat) ? a : Value::integer(a.as_integer());
}

}  // namespace crest::text::jinja
