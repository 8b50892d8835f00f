#include <algorithm>
#include <cmath>

#include "text/jinja_methods.h"

namespace crest::text::jinja {
namespace {

struct FunctionObject : CallableObject {
  FunctionObject(std::string n, std::function<Value(Runtime&, Args&)> b) : name(std::move(n)), body(std::move(b)) {}
  Value call(Runtime& runtime, Args& args) override { return body(runtime, args); }
  std::string describe() const override { return fmt::format("<function {}>", name); }
  std::string name;
  std::function<Value(Runtime&, Args&)> body;
};

struct BoundMethod : CallableObject {
  BoundMethod(const Value& s, std::string_view n, Method m) : self(s), name(n), method(m) {}
  Value call(Runtime& runtime, Args& args) override { return method(runtime, self, args); }
  std::string describe() const override {
    return fmt::format("<built-in method {} of {} object>", name, type_name(self));
  }
  Value self;
  std::string name;
  Method method;
};

Value dict_get(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("get", args, {"key", "default"}, 1);
  runtime.tick_bytes(p[0].is_string() ? p[0].text().size() : 0);
  const Value* found = self.dict().find(p[0]);
  return found != nullptr ? *found : p.has(1) ? p[1] : Value::none();
}

template <ViewObject::Part kPart>
Value dict_view(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("dict view", args, {});
  return runtime.view(kPart, self.dict());
}

Value copy(Runtime&, const Value& self, const Args& args) {
  const Parameters p("copy", args, {});
  return self;
}

Value dict_fromkeys(Runtime& runtime, const Value&, const Args& args) {
  const Parameters p("fromkeys", args, {"iterable", "value"}, 1);
  auto* dict = runtime.make<DictObject>();
  const std::vector<Value> keys = runtime.items_of(p[0]);
  runtime.tick(4 * keys.size());
  for (const Value& key : keys) dict->set(key, p.has(1) ? p[1] : Value::none());
  return runtime.dict(dict);
}

Value sequence_count(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("count", args, {"value"}, 1);
  Int count = 0;
  Iterator iterator(runtime, self);
  for (Value item; iterator.next(item);) count += runtime.equal(item, p[0]) ? 1 : 0;
  return Value::integer(count);
}

Value sequence_index(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("index", args, {"value", "start", "stop"}, 1);
  const Int length = runtime.length(self);
  const auto bound = [&](size_t index, Int fallback) {
    const Int given = p.integer(index, fallback);
    return std::clamp<Int>(given < 0 ? given + length : given, 0, length);
  };
  for (Int i = bound(1, 0); i < bound(2, length); ++i) {
    runtime.tick();
    const Value item = runtime.getitem(self, Value::integer(i));
    if (runtime.equal(item, p[0])) return Value::integer(i);
  }
  raise(Fault::kValue, "{} is not in {}", runtime.repr(p[0]).bytes(), type_name(self));
}

Value bit_length(Runtime&, const Value& self, const Args& args) {
  const Parameters p("bit_length", args, {});
  Int bits = 0;
  const Int value = self.as_integer();
  unsigned __int128 rest = value < 0 ? -static_cast<unsigned __int128>(value) : static_cast<unsigned __int128>(value);
  for (; rest != 0; rest >>= 1) ++bits;
  return Value::integer(bits);
}

Value is_integer(Runtime&, const Value& self, const Args& args) {
  const Parameters p("is_integer", args, {});
  return Value::boolean(std::isfinite(self.as_real()) && self.as_real() == std::floor(self.as_real()));
}

}  // namespace

Method find_container_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Kind::kDict:
      if (name == "get") return dict_get;
      if (name == "items") return dict_view<ViewObject::Part::kItems>;
      if (name == "keys") return dict_view<ViewObject::Part::kKeys>;
      if (name == "values") return dict_view<ViewObject::Part::kValues>;
      if (name == "copy") return copy;
      return name == "fromkeys" ? dict_fromkeys : nullptr;
    case Kind::kList:
      if (name == "copy") return copy;
      [[fallthrough]];
    case Kind::kTuple:
    case Kind::kRange:
      if (name == "count") return sequence_count;
      return name == "index" ? sequence_index : nullptr;
    case Kind::kInt:
    case Kind::kBool:
      return name == "bit_length" ? bit_length : nullptr;
    case Kind::kFloat:
      return name == "is_integer" ? is_integer : nullptr;
    default:
      return nullptr;
  }
}

Value make_function(Runtime& runtime, std::string name, std::function<Value(Runtime&, Args&)> body) {
  return Value(Kind::kCallable, runtime.make<FunctionObject>(std::move(name), std::move(body)));
}

Value bind_method(Runtime& runtime, const Value& self, std::string_view name, Method method) {
  return Value(Kind::kCallable, runtime.make<BoundMethod>(self, name, method));
}

}  // namespace crest::text::jinja
