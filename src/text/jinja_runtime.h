#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace crest::text::jinja {

/// What one rendering may use. A step is about one node of an expression or 128 bytes of text moved.
struct Limits {
  uint64_t steps = 1'000'000;
  size_t heap_bytes = 64u << 20;
  size_t string_bytes = 8u << 20;
  size_t output_bytes = 16u << 20;
  uint32_t recursion = 2000;

  /// Limits that a conversation of this size can rightly ask for.
  static Limits for_input(size_t bytes, size_t values);
};

constexpr uint32_t kMaxNesting = 128;    // of lists and dicts
constexpr Int kMaxRange = 100'000;       // as the sandbox of jinja2
constexpr size_t kMaxItems = 1'000'000;  // of one list
constexpr size_t kBytesPerStep = 128;
constexpr size_t kCharsPerStep = 4;

/// The heap and the budget of one rendering, and Python's operations on values.
class Runtime {
 public:
  explicit Runtime(const Limits& limits, std::optional<std::tm> now = std::nullopt) : limits_(limits), now_(now) {}
  virtual ~Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  void tick(uint64_t steps = 1) {
    if ((steps_ += steps) > limits_.steps) exhausted("steps");
  }
  /// Work on, or a copy of, so many bytes.
  void tick_bytes(size_t bytes) { tick(1 + bytes / kBytesPerStep); }
  /// A look at each of so many characters.
  void tick_chars(size_t characters) { tick(1 + characters / kCharsPerStep); }
  /// Before a string of so many bytes is made; raises rather than allocates too much.
  void check_string(Int bytes);
  void check_items(Int items);
  [[noreturn]] void exhausted(std::string_view what) const;
  const Limits& limits() const { return limits_; }

  template <typename T, typename... Args>
  T* make(Args&&... args) {
    tick();
    pay(sizeof(T));
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T* pointer = object.get();
    heap_.push_back(std::move(object));
    return pointer;
  }
  void give_back(size_t bytes) { heap_bytes_ -= bytes; }
  void pay(size_t bytes) {
    if ((heap_bytes_ += bytes) > limits_.heap_bytes) exhausted("memory");
  }

  Value string(Text text, bool markup = false);
  Value string(std::string_view bytes) { return string(Text(std::string(bytes))); }
  Value list(std::vector<Value> items);
  Value tuple(std::vector<Value> items);
  Value generator(std::string type_name, std::vector<Value> items, std::exception_ptr fault = nullptr);
  Value range(Int start, Int stop, Int step);
  Value view(ViewObject::Part part, const DictObject& dict);
  /// Closes a dict that was built with set(): accounts for it and its depth.
  Value dict(DictObject* dict);
  Value undefined_variable(std::string_view name);
  Value undefined_attribute(const Value& object, const Value& name);
  Value undefined(std::string hint, Fault fault = Fault::kUndefined);

  /// str(x), repr(x), markupsafe.escape(x).
  Text str(const Value& value);
  Text repr(const Value& value);
  Value soft_str(const Value& value) { return value.is_string() ? value : string(str(value)); }
  Value escape(const Value& value);

  Value getattr(const Value& object, const Value& name);
  Value getitem(const Value& object, const Value& key);
  Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);

  bool equal(const Value& a, const Value& b);
  /// a < b; `operation` is what the template wrote, `swapped` if it wrote the operands the other way round.
  bool less(const Value& a, const Value& b, std::string_view operation = "<", bool swapped = false);
  bool contains(const Value& container, const Value& item);

  /// Characters of a string, and the byte where one begins.
  Int text_length(const StringObject& string);
  size_t text_position(const StringObject& string, Int index);

  /// Number of items; raises TypeError where Python has no len().
  Int length(const Value& value);
  std::vector<Value> items_of(const Value& iterable);

  Value add(const Value& a, const Value& b);
  Value subtract(const Value& a, const Value& b);
  Value multiply(const Value& a, const Value& b);
  Value divide(const Value& a, const Value& b);
  Value floor_divide(const Value& a, const Value& b);
  Value modulo(const Value& a, const Value& b);
  Value power(const Value& a, const Value& b);
  Value negate(const Value& a);
  Value positive(const Value& a);
  Value percent_format(const Value& format, const Value& arguments);
  Value brace_format(const Value& format, const Args& args, bool map_only);

  std::string to_json(const Value& value, bool ensure_ascii, const std::optional<std::string>& indent,
                      std::string_view item_separator, std::string_view key_separator, bool sort_keys, bool& trusted);

  std::tm now() const;
  bool autoescape = false;

  /// One per nested evaluation; counts against the recursion limit.
  class Depth {
   public:
    explicit Depth(Runtime& runtime) : runtime_(runtime) {
      if (++runtime_.depth_ > runtime_.limits_.recursion) {
        --runtime_.depth_;
        runtime_.exhausted("recursion depth");
      }
    }
    ~Depth() { --runtime_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Runtime& runtime_;
  };

 private:
  bool sequence_less(const ListObject& a, const ListObject& b, std::string_view operation, bool swapped);
  Value sequence(Kind kind, std::vector<Value> items);
  void repr_into(Text& out, const Value& value);
  void repr_items(Text& out, const std::vector<Value>& items, std::string_view open, std::string_view close);

  Limits limits_;
  std::optional<std::tm> now_;
  uint64_t steps_ = 0;
  size_t heap_bytes_ = 0;
  uint32_t depth_ = 0;
  std::vector<std::unique_ptr<Object>> heap_;
};

/// Goes over what a Python for statement can go over.
class Iterator {
 public:
  /// Raises TypeError for what is not iterable.
  Iterator(Runtime& runtime, const Value& iterable);
  /// False at the end.
  bool next(Value& item);
  static bool iterable(const Value& value);

 private:
  Runtime& runtime_;
  Value source_;
  size_t position_ = 0;
};

/// Takes the arguments of a built-in by position or name, as Python does.
class Parameters {
 public:
  /// `names` in order; a leading '*' in front of a name ends those that may be given by position ("*key").
  Parameters(std::string_view function, const Args& args, std::initializer_list<std::string_view> names,
             size_t required = 0);
  const Value& operator[](size_t index) const { return values_[index]; }
  bool has(size_t index) const { return !values_[index].missing(); }
  Int integer(size_t index, Int fallback) const;
  bool boolean(size_t index, bool fallback) const;

 private:
  std::vector<Value> values_;
};

/// The order of `count` things by a comparison of their indexes, stable. Safe whatever the comparison says: NaN
/// contradicts itself.
std::vector<size_t> stable_order(size_t count, const std::function<bool(size_t, size_t)>& less);

/// The integer an index-like argument stands for; raises TypeError for anything but int and bool.
Int index_argument(const Value& value);

}  // namespace crest::text::jinja
