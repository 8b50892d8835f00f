#include <algorithm>

#include "text/jinja_filters.h"
#include "text/jinja_methods.h"
#include "text/jinja_strftime.h"

namespace crest::text::jinja {
namespace {

Value range_function(Runtime& runtime, Args& args) {
  if (!args.named.empty()) raise(Fault::kType, "range() takes no keyword arguments");
  const size_t count = args.positional.size();
  if (count < 1 || count > 3) raise(Fault::kType, "range expected 1 to 3 arguments, got {}", count);
  const auto at = [&](size_t index) { return index_argument(args.positional[index]); };
  if (count == 1) return runtime.range(0, at(0), 1);
  return runtime.range(at(0), at(1), count == 3 ? at(2) : 1);
}

/// Items of dict(…): from a mapping or from pairs.
void update(Runtime& runtime, DictObject& dict, const Value& source) {
  if (source.is(Kind::kDict)) {
    for (const auto& [key, value] : source.dict().items) {
      runtime.tick();
      dict.set(key, value);
    }
    return;
  }
  size_t index = 0;
  Iterator iterator(runtime, source);
  for (Value pair; iterator.next(pair); ++index) {
    if (!Iterator::iterable(pair))
      raise(Fault::kType, "cannot convert dictionary update sequence element #{} to a sequence", index);
    const std::vector<Value> items = runtime.items_of(pair);
    if (items.size() != 2) {
      raise(Fault::kValue, "dictionary update sequence element #{} has length {}; 2 is required", index, items.size());
    }
    dict.set(items[0], items[1]);
  }
}

DictObject& dict_from(Runtime& runtime, std::string_view function, const Args& args) {
  if (args.positional.size() > 1) {
    raise(Fault::kType, "{} expected at most 1 argument, got {}", function, args.positional.size());
  }
  auto* dict = runtime.make<DictObject>();
  if (!args.positional.empty()) update(runtime, *dict, args.positional[0]);
  for (const auto& [name, value] : args.named) dict->set(runtime.string(name), value);
  return *dict;
}

struct DictType : CallableObject {
  Value call(Runtime& runtime, Args& args) override { return runtime.dict(&dict_from(runtime, "dict", args)); }
  std::string describe() const override { return "<class 'dict'>"; }
  Value attribute(Runtime& runtime, std::string_view name) override {
    if (name != "fromkeys") return {};
    const Value empty(Kind::kDict, runtime.make<DictObject>());
    return bind_method(runtime, empty, name, find_container_method(empty, name));
  }
};

Value namespace_function(Runtime& runtime, Args& args) {
  const DictObject& attributes = dict_from(runtime, "namespace", args);
  auto* object = runtime.make<NamespaceObject>();
  for (const auto& [key, value] : attributes.items) {
    if (!key.is_string()) raise(Fault::kType, "namespace attributes need names, not {}", type_name(key));
    if (key.bytes().starts_with('_')) {
      raise(Fault::kSecurity, "namespaces have no attributes that begin with an underscore, but got '{}'", key.bytes());
    }
    object->items.emplace_back(key.bytes(), value);
  }
  runtime.pay(object->items.size() * sizeof(Value));
  return Value(Kind::kNamespace, object);
}

struct Cycler : CallableObject {
  std::vector<Value> items;
  size_t position = 0;

  Value call(Runtime&, Args&) override { raise(Fault::kType, "'Cycler' object is not callable"); }
  std::string describe() const override { return "<Cycler object>"; }
  Value attribute(Runtime& runtime, std::string_view name) override {
    if (name == "current") return items[position];
    if (name == "items") return runtime.tuple(items);
    if (name == "pos") return Value::integer(static_cast<Int>(position));
    if (name == "reset") {
      return make_function(runtime, "reset", [this](Runtime&, Args&) {
        position = 0;
        return Value::none();
      });
    }
    if (name != "next") return {};
    return make_function(runtime, "next", [this](Runtime&, Args&) {
      const Value current = items[position];
      position = (position + 1) % items.size();
      return current;
    });
  }
};

Value cycler_function(Runtime& runtime, Args& args) {
  if (!args.named.empty()) raise(Fault::kType, "cycler() takes no keyword arguments");
  if (args.positional.empty()) raise(Fault::kType, "at least one item has to be provided");
  auto* cycler = runtime.make<Cycler>();
  cycler->items = args.positional;
  return Value(Kind::kCallable, cycler);
}

Value joiner_function(Runtime& runtime, Args& args) {
  const Parameters p("joiner", args, {"sep"});
  const Value separator = p.has(0) ? p[0] : runtime.string(", ");
  return make_function(runtime, "joiner", [separator, used = false](Runtime& rt, Args&) mutable {
    return std::exchange(used, true) ? separator : rt.string("");
  });
}

Value raise_function(Runtime& runtime, Args& args) {
  const Parameters p("raise_exception", args, {"message"}, 1);
  const Text message = p[0].is(Kind::kNone) ? Text("None") : runtime.str(p[0]);
  throw TemplateFault(Fault::kTemplate, message.bytes());
}

Value strftime_function(Runtime& runtime, Args& args) {
  const Parameters p("strftime_now", args, {"format"}, 1);
  if (!p[0].is_string()) raise(Fault::kType, "strftime() argument 1 must be str, not {}", type_name(p[0]));
  std::string text = format_time(p[0].bytes(), runtime.now());
  return runtime.string(p[0].text().derived(std::move(text)));
}

}  // namespace

Value find_global(Runtime& runtime, std::string_view name) {
  constexpr std::pair<std::string_view, Value (*)(Runtime&, Args&)> kFunctions[] = {
      {"range", range_function},   {"namespace", namespace_function},   {"cycler", cycler_function},
      {"joiner", joiner_function}, {"raise_exception", raise_function}, {"strftime_now", strftime_function}};
  if (name == "dict") return Value(Kind::kCallable, runtime.make<DictType>());
  for (const auto& [known, function] : kFunctions) {
    if (known == name) return make_function(runtime, std::string(name), function);
  }
  return {};
}

}  // namespace crest::text::jinja
