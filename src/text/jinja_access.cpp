#include <algorithm>
#include <array>

#include "text/jinja_loop.h"
#include "text/jinja_methods.h"
#include "text/jinja_runtime.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

constexpr std::array<std::string_view, 8> kListMutators = {"append", "clear", "pop",    "reverse",
                                                           "insert", "sort",  "extend", "remove"};
constexpr std::array<std::string_view, 5> kDictMutators = {"clear", "pop", "popitem", "setdefault", "update"};

template <size_t N>
bool listed(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Attributes that exist in Python but that the immutable sandbox hides.
bool unsafe(const Value& object, std::string_view name) {
  if (object.is(Kind::kList) && listed(kListMutators, name)) return true;
  if (object.is(Kind::kDict) && listed(kDictMutators, name)) return true;
  return name.size() > 4 && name.starts_with("__") && name.ends_with("__");
}

Value unsafe_undefined(Runtime& runtime, const Value& object, std::string_view name) {
  return runtime.undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(object)),
                           Fault::kSecurity);
}

/// The Python attribute of this name; missing if there is none.
Value attribute(Runtime& runtime, const Value& object, const std::string& name) {
  if (object.undefined()) object.undefined_object().fail();
  if (unsafe(object, name)) return unsafe_undefined(runtime, object, name);
  switch (object.kind()) {
    case Kind::kString: {
      const Method method = find_string_method(name);
      return method != nullptr ? bind_method(runtime, object, name, method) : Value();
    }
    case Kind::kNamespace: {
      const Value* value = object.name_space().find(name);
      return value != nullptr ? *value : Value();
    }
    case Kind::kLoop:
      return as_loop(object).attribute(runtime, name);
    case Kind::kCallable:
      return object.callable().attribute(runtime, name);
    case Kind::kTuple:
      if (object.list().group && name == "grouper") return object.list().items[0];
      if (object.list().group && name == "list") return object.list().items[1];
      break;
    case Kind::kRange:
      if (name == "start") return Value::integer(object.range().start);
      if (name == "stop") return Value::integer(object.range().stop);
      if (name == "step") return Value::integer(object.range().step);
      break;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      if (name == "real") return object.is(Kind::kBool) ? Value::integer(object.as_integer()) : object;
      if (name == "imag") return object.is(Kind::kFloat) ? Value::real(0) : Value::integer(0);
      if (name == "numerator" && object.is_integer()) return Value::integer(object.as_integer());
      if (name == "denominator" && object.is_integer()) return Value::integer(1);
      break;
    default:
      break;
  }
  const Method method = find_container_method(object, name);
  return method != nullptr ? bind_method(runtime, object, name, method) : Value();
}

Value string_at(Runtime& runtime, const Value& object, Int index) {
  const StringObject& self = object.string();
  const Int length = runtime.text_length(self);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return {};
  const size_t begin = runtime.text_position(self, index);
  return runtime.string(self.text.slice(begin, begin + char_size(self.text.bytes(), begin)), self.markup);
}

/// object[key]; missing where Python raises TypeError or LookupError.
Value subscript(Runtime& runtime, const Value& object, const Value& key) {
  switch (object.kind()) {
    case Kind::kUndefined:
      object.undefined_object().fail();
    case Kind::kDict: {
      if (!hashable(key)) return {};
      const Value* value = object.dict().find(key);
      return value != nullptr ? *value : Value();
    }
    case Kind::kString:
      return key.is_integer() ? string_at(runtime, object, key.as_integer()) : Value();
    case Kind::kList:
    case Kind::kTuple: {
      if (!key.is_integer()) return {};
      const auto& items = object.list().items;
      const Int index = key.as_integer() < 0 ? key.as_integer() + static_cast<Int>(items.size()) : key.as_integer();
      return index >= 0 && index < static_cast<Int>(items.size()) ? items[static_cast<size_t>(index)] : Value();
    }
    case Kind::kRange: {
      if (!key.is_integer()) return {};
      const RangeObject& range = object.range();
      const Int index = key.as_integer() < 0 ? key.as_integer() + range.length : key.as_integer();
      return index >= 0 && index < range.length ? Value::integer(range.at(index)) : Value();
    }
    default:
      return {};
  }
}

struct SliceBounds {
  Int start, stop, step, count;
};

/// slice.indices of Python.
SliceBounds slice_bounds(const Value& start, const Value& stop, const Value& step, Int length) {
  SliceBounds bounds{0, 0, step.none_or_missing() ? 1 : index_argument(step), 0};
  if (bounds.step == 0) raise(Fault::kValue, "slice step cannot be zero");
  const bool back = bounds.step < 0;
  const auto clamp = [&](const Value& value, Int fallback) {
    if (value.none_or_missing()) return fallback;
    Int index = index_argument(value);
    if (index < 0) index += length;
    return std::clamp(index, Int{back ? -1 : 0}, back ? length - 1 : length);
  };
  bounds.start = clamp(start, back ? length - 1 : 0);
  bounds.stop = clamp(stop, back ? -1 : length);
  const Int span = back ? bounds.start - bounds.stop : bounds.stop - bounds.start;
  bounds.step = std::clamp(bounds.step, -(Int{1} << 60), Int{1} << 60);  // far beyond any length; can be negated
  if (span > 0) bounds.count = (span - 1) / (back ? -bounds.step : bounds.step) + 1;
  return bounds;
}

Value slice_string(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
  const StringObject& self = object.string();
  const std::string& bytes = self.text.bytes();
  Text out;
  if (self.ascii() || bounds.step == 1) {
    if (bounds.step == 1 && bounds.count > 0) {
      out.append(self.text, runtime.text_position(self, bounds.start),
                 runtime.text_position(self, bounds.start + bounds.count));
    } else {
      runtime.tick_chars(static_cast<size_t>(bounds.count));
      for (Int i = 0; i < bounds.count; ++i) {
        const size_t at = static_cast<size_t>(bounds.start + i * bounds.step);
        out.append(self.text, at, at + 1);
      }
    }
    return runtime.string(std::move(out), self.markup);
  }
  runtime.tick_chars(2 * bytes.size());
  std::vector<size_t> starts;
  for (size_t position = 0; position < bytes.size(); next_char(bytes, position)) starts.push_back(position);
  starts.push_back(bytes.size());
  for (Int i = 0; i < bounds.count; ++i) {
    const size_t at = static_cast<size_t>(bounds.start + i * bounds.step);
    out.append(self.text, starts[at], starts[at + 1]);
  }
  return runtime.string(std::move(out), self.markup);
}

}  // namespace

Value Runtime::getattr(const Value& object, const Value& name) {
  tick();
  Value found = attribute(*this, object, name.bytes());
  if (found.missing()) found = subscript(*this, object, name);
  return found.missing() ? undefined_attribute(object, name) : found;
}

Value Runtime::getitem(const Value& object, const Value& key) {
  tick_bytes(key.is_string() ? key.text().size() : 0);
  Value found = subscript(*this, object, key);
  if (found.missing() && key.is_string()) found = attribute(*this, object, key.bytes());
  return found.missing() ? undefined_attribute(object, key) : found;
}

Value Runtime::slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (object.undefined()) object.undefined_object().fail();
  if (object.is(Kind::kDict)) raise(Fault::kType, "unhashable type: 'slice'");
  if (!object.is_string() && !object.is_sequence() && !object.is(Kind::kRange)) {
    raise(Fault::kType, "'{}' object is not subscriptable", type_name(object));
  }
  for (const Value* bound : {&start, &stop, &step}) {
    if (!bound->none_or_missing() && !bound->is_integer()) {
      raise(Fault::kType, "slice indices must be integers or None or have an __index__ method");
    }
  }
  const Int count = length(object);
  const SliceBounds bounds = slice_bounds(start, stop, step, count);
  if (object.is_string()) return slice_string(*this, object, bounds);
  if (object.is(Kind::kRange)) {
    const RangeObject& r = object.range();
    Int stride = 0;
    if (__builtin_mul_overflow(bounds.step, r.step, &stride)) raise(Fault::kOverflow, "slice step is too large");
    return range(r.at(bounds.start), r.at(bounds.stop), stride);
  }
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(bounds.count));
  for (Int i = 0; i < bounds.count; ++i)
    items.push_back(object.list().items[static_cast<size_t>(bounds.start + i * bounds.step)]);
  return object.is(Kind::kList) ? list(std::move(items)) : tuple(std::move(items));
}

}  // namespace crest::text::jinja
