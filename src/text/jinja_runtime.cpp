#include "text/jinja_runtime.h"

#include <algorithm>

#include "text/jinja_loop.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

uint32_t nesting_of(const Value& value) {
  if (value.is_sequence()) return value.list().depth;
  if (value.is(Kind::kDict)) return value.dict().depth;
  if (value.is(Kind::kView)) return value.view().dict->depth;
  return value.is(Kind::kGenerator) ? value.generator().depth : 0;
}

uint32_t checked_depth(uint32_t inner) {
  if (inner >= kMaxNesting) raise(Fault::kBudget, "lists and dicts are nested deeper than {}", kMaxNesting);
  return inner + 1;
}

}  // namespace

Limits Limits::for_input(size_t bytes, size_t values) {
  Limits limits;
  limits.steps += 1000 * values + 16 * bytes;
  limits.heap_bytes += 64 * bytes + 4096 * values;
  limits.string_bytes += 8 * bytes;
  limits.output_bytes += 8 * bytes;
  return limits;
}

void Runtime::exhausted(std::string_view what) const {
  const auto limit = [&]() -> uint64_t {
    if (what == "steps") return limits_.steps;
    if (what == "memory") return limits_.heap_bytes;
    if (what == "recursion depth") return limits_.recursion;
    return limits_.output_bytes;
  };
  raise(Fault::kBudget, "the template used up its budget of {} ({})", what, limit());
}

void Runtime::check_string(Int bytes) {
  if (bytes > static_cast<Int>(limits_.string_bytes)) {
    raise(Fault::kBudget, "a string would become longer than the {} bytes allowed", limits_.string_bytes);
  }
}

void Runtime::check_items(Int items) {
  if (items > static_cast<Int>(kMaxItems))
    raise(Fault::kBudget, "a list would become longer than the {} items allowed", kMaxItems);
  if (items > 0) tick(static_cast<uint64_t>(items) / 4);
}

Value Runtime::string(Text text, bool markup) {
  check_string(static_cast<Int>(text.size()));
  tick_bytes(text.size());
  pay(sizeof(StringObject) + text.size());
  auto* object = new StringObject;
  object->text = std::move(text);
  object->markup = markup;
  object->owner = this;
  return Value(Kind::kString, object);
}

Value Runtime::sequence(Kind kind, std::vector<Value> items) {
  check_items(static_cast<Int>(items.size()));
  pay(items.size() * sizeof(Value));
  uint32_t inner = 0;
  for (const Value& item : items) inner = std::max(inner, nesting_of(item));
  auto* object = make<ListObject>();
  object->depth = checked_depth(inner);
  object->items = std::move(items);
  return Value(kind, object);
}

Value Runtime::list(std::vector<Value> items) { return sequence(Kind::kList, std::move(items)); }
Value Runtime::tuple(std::vector<Value> items) { return sequence(Kind::kTuple, std::move(items)); }

Value Runtime::generator(std::string type_name, std::vector<Value> items, std::exception_ptr fault) {
  check_items(static_cast<Int>(items.size()));
  pay(items.size() * sizeof(Value));
  uint32_t inner = 0;
  for (const Value& item : items) inner = std::max(inner, nesting_of(item));
  auto* object = make<GeneratorObject>();
  object->depth = checked_depth(inner);
  object->type_name = std::move(type_name);
  object->items = std::move(items);
  object->fault = std::move(fault);
  return Value(Kind::kGenerator, object);
}

Value Runtime::range(Int start, Int stop, Int step) {
  if (step == 0) raise(Fault::kValue, "range() arg 3 must not be zero");
  Int length = 0;
  const Int low = step > 0 ? start : stop;
  const Int high = step > 0 ? stop : start;
  if (high > low) {
    Int span = 0;
    if (__builtin_sub_overflow(high, low, &span)) span = kMaxRange + 1;
    length = step > 0 ? (span - 1) / step + 1 : -((span - 1) / step) + 1;
  }
  if (length > kMaxRange) {
    raise(Fault::kOverflow, "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).",
          static_cast<int>(kMaxRange));
  }
  auto* object = make<RangeObject>();
  object->start = start;
  object->stop = stop;
  object->step = step;
  object->length = length;
  return Value(Kind::kRange, object);
}

Value Runtime::view(ViewObject::Part part, const DictObject& dict) {
  auto* object = make<ViewObject>();
  object->part = part;
  object->dict = &dict;
  return Value(Kind::kView, object);
}

Value Runtime::dict(DictObject* dict) {
  check_items(static_cast<Int>(dict->items.size()));
  pay(dict->items.size() * 2 * sizeof(Value));
  uint32_t inner = 0;
  for (const auto& [key, value] : dict->items) inner = std::max({inner, nesting_of(key), nesting_of(value)});
  dict->depth = checked_depth(inner);
  return Value(Kind::kDict, dict);
}

Value Runtime::undefined(std::string hint, Fault fault) {
  auto* object = make<UndefinedObject>();
  object->hint = std::move(hint);
  object->fault = fault;
  return Value(Kind::kUndefined, object);
}

Value Runtime::undefined_variable(std::string_view name) {
  auto* object = make<UndefinedObject>();
  object->name = fmt::format("'{}'", name);
  return Value(Kind::kUndefined, object);
}

Value Runtime::undefined_attribute(const Value& object, const Value& name) {
  auto* undefined = make<UndefinedObject>();
  if (object.is(Kind::kNone)) {
    undefined->object_type = "None";
  } else if (object.is(Kind::kNamespace)) {
    undefined->object_type = "jinja2.utils.Namespace object";
  } else if (object.is(Kind::kLoop)) {
    undefined->object_type = "jinja2.runtime.LoopContext object";
  } else {
    undefined->object_type = type_name(object) + " object";
  }
  undefined->element = !name.is_string();
  // Whoever prints the message wants to see the name, not a megabyte of it.
  constexpr size_t kLongest = 200;
  undefined->name = repr(name).bytes();
  if (undefined->name.size() > kLongest) {
    undefined->name.resize(kLongest);
    undefined->name += "…";
  }
  return Value(Kind::kUndefined, undefined);
}

std::tm Runtime::now() const {
  if (now_) return *now_;
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

Int Runtime::text_length(const StringObject& string) {
  if (string.characters < 0) tick_chars(string.text.size());
  return string.length();
}

size_t Runtime::text_position(const StringObject& string, Int index) {
  if (text_length(string) == static_cast<Int>(string.text.size())) return static_cast<size_t>(index);
  const size_t position = byte_position(string.text.bytes(), static_cast<size_t>(index));
  tick_chars(position);
  return position;
}

Int Runtime::length(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return text_length(value.string());
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<Int>(value.list().items.size());
    case Kind::kDict:
      return static_cast<Int>(value.dict().items.size());
    case Kind::kView:
      return static_cast<Int>(value.view().dict->items.size());
    case Kind::kRange:
      return value.range().length;
    case Kind::kLoop:
      return as_loop(value).length(*this);
    default:
      raise(Fault::kType, "object of type '{}' has no len()", type_name(value));
  }
}

std::vector<Value> Runtime::items_of(const Value& iterable) {
  std::vector<Value> items;
  Iterator iterator(*this, iterable);
  for (Value item; iterator.next(item);) {
    items.push_back(item);
    if (items.size() > kMaxItems) check_items(static_cast<Int>(items.size()));
  }
  return items;
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.as_integer() != 0;
    case Kind::kFloat:
      return value.as_real() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.list().items.empty();
    case Kind::kDict:
      return !value.dict().items.empty();
    case Kind::kView:
      return !value.view().dict->items.empty();
    case Kind::kRange:
      return value.range().length != 0;
    case Kind::kGenerator:
    case Kind::kNamespace:
    case Kind::kLoop:
    case Kind::kCallable:
      return true;
  }
  return false;
}

bool Iterator::iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kLoop:
    case Kind::kGenerator:
      return true;
    default:
      return false;
  }
}

Iterator::Iterator(Runtime& runtime, const Value& iterable) : runtime_(runtime), source_(iterable) {
  if (!Iterator::iterable(iterable)) raise(Fault::kType, "'{}' object is not iterable", type_name(iterable));
}

bool Iterator::next(Value& item) {
  runtime_.tick();
  switch (source_.kind()) {
    case Kind::kString: {
      const Text& text = source_.text();
      if (position_ >= text.size()) return false;
      const size_t begin = position_;
      next_char(text.bytes(), position_);
      item = runtime_.string(text.slice(begin, position_));
      return true;
    }
    case Kind::kList:
    case Kind::kTuple:
      if (position_ >= source_.list().items.size()) return false;
      item = source_.list().items[position_++];
      return true;
    case Kind::kDict:
      if (position_ >= source_.dict().items.size()) return false;
      item = source_.dict().items[position_++].first;
      return true;
    case Kind::kView: {
      const ViewObject& view = source_.view();
      if (position_ >= view.dict->items.size()) return false;
      const auto& [key, value] = view.dict->items[position_++];
      item = view.part == ViewObject::Part::kKeys     ? key
             : view.part == ViewObject::Part::kValues ? value
                                                      : runtime_.tuple({key, value});
      return true;
    }
    case Kind::kRange:
      if (static_cast<Int>(position_) >= source_.range().length) return false;
      item = Value::integer(source_.range().at(static_cast<Int>(position_++)));
      return true;
    case Kind::kGenerator: {
      GeneratorObject& generator = source_.generator();
      if (generator.next < generator.items.size()) {
        item = generator.items[generator.next++];
        return true;
      }
      if (generator.fault) std::rethrow_exception(std::exchange(generator.fault, nullptr));
      return false;
    }
    case Kind::kLoop: {
      LoopObject& loop = as_loop(source_);
      if (!loop.advance(item)) return false;
      item = runtime_.tuple({item, source_});
      return true;
    }
    default:
      return false;
  }
}

Parameters::Parameters(std::string_view function, const Args& args, std::initializer_list<std::string_view> names,
                       size_t required)
    : values_(names.size()) {
  size_t positional = 0;
  for (const std::string_view name : names) {
    if (name.starts_with('*')) break;
    ++positional;
  }
  if (args.positional.size() > positional) {
    raise(Fault::kType, "{}() takes at most {} argument(s) ({} given)", function, positional, args.positional.size());
  }
  std::copy(args.positional.begin(), args.positional.end(), values_.begin());
  for (const auto& [name, value] : args.named) {
    const auto found = std::find_if(names.begin(), names.end(), [&, &wanted = name](std::string_view n) {
      return n.substr(n.starts_with('*') ? 1 : 0) == wanted;
    });
    if (found == names.end()) raise(Fault::kType, "{}() got an unexpected keyword argument '{}'", function, name);
    Value& slot = values_[static_cast<size_t>(found - names.begin())];
    if (!slot.missing()) raise(Fault::kType, "{}() got multiple values for argument '{}'", function, name);
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i].missing()) raise(Fault::kType, "{}() missing required argument '{}'", function, names.begin()[i]);
  }
}

std::vector<size_t> stable_order(size_t count, const std::function<bool(size_t, size_t)>& less) {
  std::vector<size_t> order(count), merged(count);
  for (size_t i = 0; i < count; ++i) order[i] = i;
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      const size_t middle = std::min(begin + width, count);
      const size_t end = std::min(begin + 2 * width, count);
      size_t left = begin;
      size_t right = middle;
      for (size_t out = begin; out < end; ++out) {
        const bool take_right = left == middle || (right < end && less(order[right], order[left]));
        merged[out] = order[take_right ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return order;
}

Int index_argument(const Value& value) {
  if (value.undefined()) value.undefined_object().fail();
  if (!value.is_integer()) raise(Fault::kType, "'{}' object cannot be interpreted as an integer", type_name(value));
  return value.as_integer();
}

Int Parameters::integer(size_t index, Int fallback) const {
  return has(index) ? index_argument(values_[index]) : fallback;
}
bool Parameters::boolean(size_t index, bool fallback) const { return has(index) ? truth(values_[index]) : fallback; }

}  // namespace crest::text::jinja
