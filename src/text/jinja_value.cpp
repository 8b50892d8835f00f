#include "text/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "text/jinja_number.h"
#include "text/jinja_runtime.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

constexpr size_t kIndexFrom = 16;  // dicts of fewer items are searched from front to back

/// Whether two keys are the same key, for the kinds that are common; others compare by key_bytes.
bool same_key(const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) return a.bytes() == b.bytes();
  if (a.is_string() || b.is_string()) return false;
  return key_bytes(a) == key_bytes(b);
}

}  // namespace

int64_t StringObject::length() const {
  if (characters < 0) characters = static_cast<int64_t>(count_chars(text.bytes()));
  return characters;
}

std::vector<std::pair<Value, Value>>::const_iterator DictObject::locate(const Value& key) const {
  if (!hashable(key)) raise(Fault::kType, "unhashable type: '{}'", type_name(key));
  if (items.size() < kIndexFrom) {
    return std::find_if(items.begin(), items.end(), [&](const auto& item) { return same_key(item.first, key); });
  }
  for (size_t i = index_.size(); i < items.size(); ++i) index_.emplace(key_bytes(items[i].first), i);
  const auto found = index_.find(key_bytes(key));
  return found == index_.end() ? items.end() : items.begin() + static_cast<std::ptrdiff_t>(found->second);
}

const Value* DictObject::find(const Value& key) const {
  const auto found = locate(key);
  return found == items.end() ? nullptr : &found->second;
}

const Value* DictObject::find(std::string_view key) const {
  if (items.size() >= kIndexFrom) {
    StringObject name;
    name.text = Text(std::string(key));
    return find(Value(Kind::kString, &name));
  }
  const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) {
    return item.first.is_string() && item.first.bytes() == key;
  });
  return found == items.end() ? nullptr : &found->second;
}

void DictObject::set(const Value& key, const Value& value) {
  const auto found = locate(key);
  if (found == items.end()) {
    items.emplace_back(key, value);
  } else {
    items[static_cast<size_t>(found - items.begin())].second = value;
  }
}

void Value::retain_string(Object* object) {
  auto* string = static_cast<StringObject*>(object);
  if (string->owner != nullptr) ++string->references;
}

void Value::release_string(Object* object) {
  auto* string = static_cast<StringObject*>(object);
  if (string->owner == nullptr || --string->references > 0) return;
  string->owner->give_back(sizeof(StringObject) + string->text.size());
  delete string;
}

Value* NamespaceObject::find(std::string_view name) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
  return found == items.end() ? nullptr : &found->second;
}

Value CallableObject::attribute(Runtime&, std::string_view) { return {}; }

std::string UndefinedObject::message() const {
  if (!hint.empty()) return hint;
  if (object_type.empty()) return name + " is undefined";
  if (element) return object_type + " has no element " + name;
  return "'" + object_type + "' has no attribute " + name;
}

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kMissing:
      return "missing";
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.string().markup ? "Markup" : "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView: {
      constexpr const char* kNames[] = {"dict_keys", "dict_values", "dict_items"};
      return kNames[static_cast<int>(value.view().part)];
    }
    case Kind::kRange:
      return "range";
    case Kind::kGenerator:
      return value.generator().type_name;
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCallable:
      return "function";
  }
  return "object";
}

bool hashable(const Value& value) {
  if (value.is(Kind::kList) || value.is(Kind::kDict) || value.is(Kind::kView)) return false;
  if (!value.is(Kind::kTuple)) return true;
  const auto& items = value.list().items;
  return std::all_of(items.begin(), items.end(), [](const Value& item) { return hashable(item); });
}

std::string key_bytes(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
      return "s" + value.bytes();
    case Kind::kNone:
      return "N";
    case Kind::kUndefined:
      return "U";
    case Kind::kBool:
    case Kind::kInt:
      return fmt::format("n{}", integer_text(value.as_integer()));
    case Kind::kFloat: {
      const double real = value.as_real();
      const bool whole = std::isfinite(real) && real == std::trunc(real) && std::abs(real) < 1e38;
      return fmt::format("n{}", whole ? integer_text(integer_from(real)) : float_text(real));
    }
    case Kind::kTuple: {
      std::string bytes = "t";
      for (const Value& item : value.list().items) {
        const std::string part = key_bytes(item);
        bytes += std::to_string(part.size()) + ":" + part;
      }
      return bytes;
    }
    case Kind::kRange: {
      const RangeObject& r = value.range();
      const Int step = r.length > 1 ? r.step : 0;
      return fmt::format("r{}:{}:{}", integer_text(r.length), integer_text(r.length > 0 ? r.start : 0),
                         integer_text(step));
    }
    case Kind::kList:
    case Kind::kDict:
    case Kind::kView:
      raise(Fault::kType, "unhashable type: '{}'", type_name(value));
    default:
      return fmt::format("o{}", static_cast<const void*>(value.object()));
  }
}

}  // namespace crest::text::jinja
