#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_error.h"
#include "text/jinja_text.h"

namespace crest::text::jinja {

class Runtime;

/// Python's integers have no limit; ours have 127 bits, and leaving them is an error.
using Int = __int128;

enum class Kind : uint8_t {
  kMissing,  // no value at all: an argument that was not given
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kView,  // keys(), values(), items()
  kRange,
  kGenerator,  // an iterator: gives its items once
  kNamespace,
  kLoop,
  kCallable,
};

/// Strings are counted and die with their last Value; whatever else is not a scalar lives until the rendering ends.
struct Object {
  virtual ~Object() = default;
};

struct StringObject;
struct ListObject;
struct DictObject;
struct ViewObject;
struct RangeObject;
struct GeneratorObject;
struct NamespaceObject;
struct UndefinedObject;
struct LoopObject;
struct CallableObject;

/// A Python value. Lists and dicts never change once a template can see them (immutable sandbox).
class Value {
 public:
  Value() = default;
  Value(const Value& other) : kind_(other.kind_), payload_(other.payload_) { retain(); }
  Value(Value&& other) noexcept : kind_(std::exchange(other.kind_, Kind::kMissing)), payload_(other.payload_) {}
  Value& operator=(Value other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(payload_, other.payload_);
    return *this;
  }
  ~Value() { release(); }
  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool b) {
    Value v(Kind::kBool);
    v.payload_.integer = b;
    return v;
  }
  static Value integer(Int i) {
    Value v(Kind::kInt);
    v.payload_.integer = i;
    return v;
  }
  static Value real(double d) {
    Value v(Kind::kFloat);
    v.payload_.real = d;
    return v;
  }
  Value(Kind kind, Object* object) : kind_(kind) {
    payload_.object = object;
    retain();
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool missing() const { return kind_ == Kind::kMissing; }
  bool undefined() const { return kind_ == Kind::kUndefined; }
  bool none_or_missing() const { return kind_ == Kind::kNone || kind_ == Kind::kMissing; }
  bool is_string() const { return kind_ == Kind::kString; }
  /// int or bool, as isinstance(x, int).
  bool is_integer() const { return kind_ == Kind::kInt || kind_ == Kind::kBool; }
  bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }
  bool is_sequence() const { return kind_ == Kind::kList || kind_ == Kind::kTuple; }

  Int as_integer() const { return payload_.integer; }
  bool as_bool() const { return payload_.integer != 0; }
  double as_real() const { return kind_ == Kind::kFloat ? payload_.real : static_cast<double>(payload_.integer); }
  Object* object() const { return payload_.object; }
  const StringObject& string() const;
  const Text& text() const;
  const std::string& bytes() const;
  const ListObject& list() const;  // list or tuple
  const DictObject& dict() const;
  const ViewObject& view() const;
  const RangeObject& range() const;
  GeneratorObject& generator() const;
  NamespaceObject& name_space() const;
  const UndefinedObject& undefined_object() const;
  LoopObject& loop() const;
  CallableObject& callable() const;

 private:
  explicit Value(Kind kind) : kind_(kind) {}
  void retain() const {
    if (kind_ == Kind::kString) retain_string(payload_.object);
  }
  void release() const {
    if (kind_ == Kind::kString) release_string(payload_.object);
  }
  static void retain_string(Object* string);
  static void release_string(Object* string);

  Kind kind_ = Kind::kMissing;
  union {
    Int integer = 0;
    double real;
    Object* object;
  } payload_;
};

struct StringObject : Object {
  Text text;
  bool markup = false;              // markupsafe.Markup: marked safe, escapes what is added to it
  mutable int64_t characters = -1;  // counted when first asked for
  int64_t references = 0;
  Runtime* owner = nullptr;  // none: a constant, which is not counted (renderings in several threads share it)

  bool ascii() const { return length() == static_cast<int64_t>(text.size()); }
  int64_t length() const;
};

struct ListObject : Object {
  std::vector<Value> items;
  uint32_t depth = 1;
  bool group = false;  // groupby's tuple: has the attributes grouper and list
};

struct DictObject : Object {
  std::vector<std::pair<Value, Value>> items;
  uint32_t depth = 1;

  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  /// Only while the dict is built.
  void set(const Value& key, const Value& value);

 private:
  std::vector<std::pair<Value, Value>>::const_iterator locate(const Value& key) const;
  mutable std::map<std::string, size_t> index_;  // by key_bytes, once there are many
};

struct ViewObject : Object {
  enum class Part { kKeys, kValues, kItems } part;
  const DictObject* dict;
};

struct RangeObject : Object {
  Int start, stop, step;
  Int length;
  Int at(Int index) const { return start + index * step; }
};

struct GeneratorObject : Object {
  std::string type_name;
  std::vector<Value> items;
  size_t next = 0;
  uint32_t depth = 1;
  std::exception_ptr fault;  // raised behind the last item
};

struct NamespaceObject : Object {
  std::vector<std::pair<std::string, Value>> items;
  Value* find(std::string_view name);
};

struct UndefinedObject : Object {
  std::string hint;         // the whole message, or empty
  std::string object_type;  // what lacks the attribute, or empty: a variable
  std::string name;         // quoted already
  bool element = false;     // "has no element 3" rather than "has no attribute 'x'"
  Fault fault = Fault::kUndefined;

  std::string message() const;
  [[noreturn]] void fail() const { throw TemplateFault(fault, message()); }
};

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct CallableObject : Object {
  virtual Value call(Runtime& runtime, Args& args) = 0;
  /// What repr() gives, and the attribute of that name.
  virtual std::string describe() const = 0;
  virtual Value attribute(Runtime& runtime, std::string_view name);
};

inline const StringObject& Value::string() const { return static_cast<const StringObject&>(*payload_.object); }
inline const Text& Value::text() const { return string().text; }
inline const std::string& Value::bytes() const { return string().text.bytes(); }
inline const ListObject& Value::list() const { return static_cast<const ListObject&>(*payload_.object); }
inline const DictObject& Value::dict() const { return static_cast<const DictObject&>(*payload_.object); }
inline const ViewObject& Value::view() const { return static_cast<const ViewObject&>(*payload_.object); }
inline const RangeObject& Value::range() const { return static_cast<const RangeObject&>(*payload_.object); }
inline GeneratorObject& Value::generator() const { return static_cast<GeneratorObject&>(*payload_.object); }
inline NamespaceObject& Value::name_space() const { return static_cast<NamespaceObject&>(*payload_.object); }
inline const UndefinedObject& Value::undefined_object() const {
  return static_cast<const UndefinedObject&>(*payload_.object);
}
inline CallableObject& Value::callable() const { return static_cast<CallableObject&>(*payload_.object); }

/// The name of the Python type: "str", "NoneType", "dict_keys".
std::string type_name(const Value& value);

/// Whether a value can be a key of a dict.
bool hashable(const Value& value);

/// Bytes that are equal for keys which Python holds equal (1, 1.0, True). Raises TypeError for unhashable values.
std::string key_bytes(const Value& value);

bool truth(const Value& value);

}  // namespace crest::text::jinja
