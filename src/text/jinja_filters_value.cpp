#include <algorithm>
#include <cmath>

#include "text/jinja_filters.h"
#include "text/jinja_format.h"
#include "text/jinja_number.h"

namespace crest::text::jinja {
namespace {

Value absolute(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("abs", args, {});
  if (input.undefined()) input.undefined_object().fail();
  if (!input.is_number()) raise(Fault::kType, "bad operand type for abs(): '{}'", type_name(input));
  if (input.is(Kind::kFloat)) return Value::real(std::abs(input.as_real()));
  return input.as_integer() < 0 ? runtime.negate(input) : Value::integer(input.as_integer());
}

Value attr(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("attr", args, {"name"}, 1);
  if (!p[0].is_string()) raise(Fault::kType, "attribute name must be string, not '{}'", type_name(p[0]));
  // Only attributes: the keys of a dict are not.
  if (input.is(Kind::kDict) && input.dict().find(p[0]) != nullptr) {
    const Value plain(Kind::kDict, runtime.make<DictObject>());
    return runtime.getattr(plain, p[0]).undefined() ? runtime.undefined_attribute(input, p[0])
                                                    : runtime.getattr(input, p[0]);
  }
  return runtime.getattr(input, p[0]);
}

Value fallback(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("default", args, {"default_value", "boolean"});
  if (!input.undefined() && (truth(input) || !p.boolean(1, false))) return input;
  return p.has(0) ? p[0] : runtime.string("");
}

std::optional<Int> whole_number(const Value& value) {
  if (value.is_integer()) return value.as_integer();
  if (value.is(Kind::kFloat) && std::isfinite(value.as_real())) return integer_from(value.as_real());
  return std::nullopt;
}

Value integer(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("int", args, {"default", "base"});
  const Value otherwise = p.has(0) ? p[0] : Value::integer(0);
  if (input.undefined()) input.undefined_object().fail();
  if (input.is(Kind::kFloat) && std::isinf(input.as_real()))
    raise(Fault::kOverflow, "cannot convert float infinity to integer");
  if (const auto whole = whole_number(input)) return Value::integer(*whole);
  if (!input.is_string()) return otherwise;
  runtime.tick_chars(2 * input.text().size());
  const Int base = p.integer(1, 10);
  if (base == 0 || (base >= 2 && base <= 36)) {
    if (const auto parsed = parse_integer(input.bytes(), static_cast<int>(base))) return Value::integer(*parsed);
  }
  // "42.23" gives 42.
  const auto real = parse_float(input.bytes());
  return real && std::isfinite(*real) ? Value::integer(integer_from(*real)) : otherwise;
}

Value real(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("float", args, {"default"});
  if (input.undefined()) input.undefined_object().fail();
  if (input.is_number()) return Value::real(input.as_real());
  if (input.is_string()) runtime.tick_chars(2 * input.text().size());
  const auto parsed = input.is_string() ? parse_float(input.bytes()) : std::nullopt;
  return parsed ? Value::real(*parsed) : p.has(0) ? p[0] : Value::real(0);
}

Value rounded(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("round", args, {"precision", "method"});
  const Int precision = p.integer(0, 0);
  const std::string method = p.has(1) && p[1].is_string() ? p[1].bytes() : p.has(1) ? "" : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    raise(Fault::kValue, "method must be common, ceil or floor");
  if (input.undefined()) input.undefined_object().fail();
  if (!input.is_number()) raise(Fault::kType, "type {} doesn't define __round__ method", type_name(input));
  if (method != "common") {
    const Value factor = runtime.power(Value::integer(10), Value::integer(precision));
    const Value scaled = runtime.multiply(input, factor);
    const double real = scaled.as_real();
    const Value whole = scaled.is(Kind::kFloat)
                            ? Value::integer(integer_from(method == "ceil" ? std::ceil(real) : std::floor(real)))
                            : scaled;
    return runtime.divide(whole, factor);
  }
  if (input.is_integer()) {
    if (precision >= 0) return Value::integer(input.as_integer());
    const Int power = precision < -30 ? 0 : runtime.power(Value::integer(10), Value::integer(-precision)).as_integer();
    if (power == 0) return Value::integer(0);
    // Half goes to the even neighbour.
    const Int low = runtime.floor_divide(input, Value::integer(power)).as_integer();
    const Int twice = 2 * (input.as_integer() - low * power);
    return Value::integer((low + (twice > power || (twice == power && low % 2 != 0) ? 1 : 0)) * power);
  }
  const double value = input.as_real();
  if (!std::isfinite(value) || precision > 330) return input;
  if (precision < -330) return Value::real(std::copysign(0.0, value));
  if (precision >= 0)
    return Value::real(parse_float(format_double(value, 'f', static_cast<int>(precision))).value_or(value));
  const double power = std::pow(10.0, static_cast<double>(-precision));
  return Value::real(std::nearbyint(value / power) * power);
}

Value filesizeformat(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("filesizeformat", args, {"binary"});
  if (input.undefined()) input.undefined_object().fail();
  const auto parsed = input.is_string()   ? parse_float(input.bytes())
                      : input.is_number() ? std::optional(input.as_real())
                                          : std::nullopt;
  if (!parsed) {
    raise(input.is_string() ? Fault::kValue : Fault::kType, "filesizeformat needs a number, not {}", type_name(input));
  }
  const double bytes = *parsed;
  const bool binary = p.boolean(0, false);
  const double base = binary ? 1024 : 1000;
  if (bytes == 1) return runtime.string("1 Byte");
  if (bytes < base) return runtime.string(integer_text(integer_from(bytes)) + " Bytes");
  constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base;
  size_t index = 0;
  for (; index < kPrefixes.size(); ++index) {
    unit *= base;
    if (bytes < unit) break;
  }
  index = std::min(index, kPrefixes.size() - 1);
  const char prefix = binary && index == 0 ? 'K' : kPrefixes[index];
  return runtime.string(
      fmt::format("{} {}{}", format_double(base * bytes / unit, 'f', 1), prefix, binary ? "iB" : "B"));
}

Value tojson(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  std::optional<std::string> indent;
  if (p[1].is_string()) {
    indent = p[1].bytes();
  } else if (!p[1].none_or_missing()) {
    const Int width = p.integer(1, 0);
    runtime.check_string(width);
    indent = std::string(width > 0 ? static_cast<size_t>(width) : 0, ' ');
  }
  std::string item_separator = indent ? "," : ", ";
  std::string key_separator = ": ";
  if (!p[2].none_or_missing()) {
    const std::vector<Value> separators = runtime.items_of(p[2]);
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string()) {
      raise(Fault::kValue, "separators must be two strings, got {}", runtime.repr(p[2]).bytes());
    }
    item_separator = separators[0].bytes();
    key_separator = separators[1].bytes();
  }
  bool trusted = true;
  std::string json =
      runtime.to_json(input, p.boolean(0, false), indent, item_separator, key_separator, p.boolean(3, false), trusted);
  return runtime.string(Text(std::move(json), trusted));
}

Value items(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("items", args, {});
  if (input.undefined()) return runtime.generator("generator", {});
  if (!input.is(Kind::kDict)) raise(Fault::kType, "Can only get item pairs from a mapping.");
  return runtime.generator("generator", runtime.items_of(runtime.view(ViewObject::Part::kItems, input.dict())));
}

constexpr FilterEntry kFilters[] = {
    {"abs", absolute},  {"attr", attr},     {"d", fallback},  {"default", fallback},
    {"float", real},    {"int", integer},   {"items", items}, {"filesizeformat", filesizeformat},
    {"round", rounded}, {"tojson", tojson},
};

}  // namespace

Filter find_value_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [name](const FilterEntry& e) { return e.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

Filter find_filter(std::string_view name) {
  if (const Filter filter = find_text_filter(name)) return filter;
  if (const Filter filter = find_value_filter(name)) return filter;
  return find_sequence_filter(name);
}

}  // namespace crest::text::jinja
