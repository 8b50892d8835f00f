#include <algorithm>

#include "text/jinja_filters.h"
#include "text/jinja_methods.h"

namespace crest::text::jinja {
namespace {

bool modulo_is(Runtime& runtime, const Value& value, Int divisor, Int rest) {
  return runtime.equal(runtime.modulo(value, Value::integer(divisor)), Value::integer(rest));
}

bool odd(Runtime& runtime, const Value& v, const Args&) { return modulo_is(runtime, v, 2, 1); }
bool even(Runtime& runtime, const Value& v, const Args&) { return modulo_is(runtime, v, 2, 0); }

bool divisibleby(Runtime& runtime, const Value& v, const Args& args) {
  const Parameters p("divisibleby", args, {"num"}, 1);
  return runtime.equal(runtime.modulo(v, p[0]), Value::integer(0));
}

bool defined(Runtime&, const Value& v, const Args&) { return !v.undefined(); }
bool undefined(Runtime&, const Value& v, const Args&) { return v.undefined(); }
bool none(Runtime&, const Value& v, const Args&) { return v.is(Kind::kNone); }
bool boolean(Runtime&, const Value& v, const Args&) { return v.is(Kind::kBool); }
bool is_false(Runtime&, const Value& v, const Args&) { return v.is(Kind::kBool) && !v.as_bool(); }
bool is_true(Runtime&, const Value& v, const Args&) { return v.is(Kind::kBool) && v.as_bool(); }
bool integer(Runtime&, const Value& v, const Args&) { return v.is(Kind::kInt); }
bool real(Runtime&, const Value& v, const Args&) { return v.is(Kind::kFloat); }
bool number(Runtime&, const Value& v, const Args&) { return v.is_number(); }
bool string(Runtime&, const Value& v, const Args&) { return v.is_string(); }
bool mapping(Runtime&, const Value& v, const Args&) { return v.is(Kind::kDict); }
bool iterable(Runtime&, const Value& v, const Args&) { return Iterator::iterable(v); }
bool callable(Runtime&, const Value& v, const Args&) {
  return v.is(Kind::kCallable) || v.is(Kind::kLoop) || v.undefined();
}
bool escaped(Runtime&, const Value& v, const Args&) { return v.is_string() && v.string().markup; }

bool sequence(Runtime&, const Value& v, const Args&) {
  return v.is_string() || v.is_sequence() || v.is(Kind::kDict) || v.is(Kind::kRange) || v.undefined();
}

bool lower(Runtime& runtime, const Value& v, const Args&) {
  const Text text = runtime.str(v);
  runtime.tick_chars(text.size());
  return is_lower_text(text.bytes());
}

bool upper(Runtime& runtime, const Value& v, const Args&) {
  const Text text = runtime.str(v);
  runtime.tick_chars(text.size());
  return is_upper_text(text.bytes());
}

bool filter_exists(Runtime&, const Value& v, const Args&) { return v.is_string() && find_filter(v.bytes()) != nullptr; }
bool test_exists(Runtime&, const Value& v, const Args&) { return v.is_string() && find_test(v.bytes()) != nullptr; }

bool sameas(Runtime& runtime, const Value& v, const Args& args) {
  const Parameters p("sameas", args, {"other"}, 1);
  if (v.kind() != p[0].kind()) return false;
  // Small values are shared in Python; for the rest it is the object that counts.
  return v.kind() <= Kind::kString ? runtime.equal(v, p[0]) : v.object() == p[0].object();
}

const Value& operand(const Args& args) {
  if (args.positional.size() != 1 || !args.named.empty())
    raise(Fault::kType, "a comparing test takes one argument, got {}", args.positional.size() + args.named.size());
  return args.positional[0];
}

bool in(Runtime& runtime, const Value& v, const Args& args) { return runtime.contains(operand(args), v); }
bool eq(Runtime& runtime, const Value& v, const Args& args) { return runtime.equal(v, operand(args)); }
bool ne(Runtime& runtime, const Value& v, const Args& args) { return !runtime.equal(v, operand(args)); }
bool lt(Runtime& runtime, const Value& v, const Args& args) { return runtime.less(v, operand(args), "<"); }
bool gt(Runtime& runtime, const Value& v, const Args& args) { return runtime.less(operand(args), v, ">", true); }
bool le(Runtime& runtime, const Value& v, const Args& args) {
  return runtime.less(v, operand(args), "<=") || runtime.equal(v, operand(args));
}
bool ge(Runtime& runtime, const Value& v, const Args& args) {
  return runtime.less(operand(args), v, ">=", true) || runtime.equal(v, operand(args));
}

struct Entry {
  std::string_view name;
  Test test;
};

constexpr Entry kTests[] = {
    {"odd", odd},
    {"even", even},
    {"divisibleby", divisibleby},
    {"defined", defined},
    {"undefined", undefined},
    {"filter", filter_exists},
    {"test", test_exists},
    {"none", none},
    {"boolean", boolean},
    {"false", is_false},
    {"true", is_true},
    {"integer", integer},
    {"float", real},
    {"lower", lower},
    {"upper", upper},
    {"string", string},
    {"mapping", mapping},
    {"number", number},
    {"sequence", sequence},
    {"iterable", iterable},
    {"callable", callable},
    {"sameas", sameas},
    {"escaped", escaped},
    {"in", in},
    {"==", eq},
    {"eq", eq},
    {"equalto", eq},
    {"!=", ne},
    {"ne", ne},
    {">", gt},
    {"gt", gt},
    {"greaterthan", gt},
    {"ge", ge},
    {">=", ge},
    {"<", lt},
    {"lt", lt},
    {"lessthan", lt},
    {"<=", le},
    {"le", le},
};

}  // namespace

Test find_test(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTests), std::end(kTests), [name](const Entry& e) { return e.name == name; });
  return found == std::end(kTests) ? nullptr : found->test;
}

}  // namespace crest::text::jinja
