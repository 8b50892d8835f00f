#pragma once

#include <functional>
#include <optional>

#include "text/jinja_runtime.h"

namespace crest::text::jinja {

/// The variable `loop` of a for statement.
struct LoopObject : Object {
  LoopObject(Runtime& runtime, const Value& iterable, Int depth0)
      : iterable_(iterable), iterator_(runtime, iterable), depth0_(depth0) {}

  bool advance(Value& item);
  Value attribute(Runtime& runtime, std::string_view name);
  Int length(Runtime& runtime);
  Int index0() const { return index0_; }
  Int depth0() const { return depth0_; }

  /// The condition of "for … in … if …"; asked when an item is about to be used.
  std::function<bool(const Value& item)> condition;
  /// Renders the body for an inner iterable; set where the loop is `recursive`.
  std::function<Value(const Value& iterable)> recurse;
  Value last_changed;  // arguments of the last changed()

 private:
  bool peek();
  bool next_wanted(Value& item);

  Value iterable_;
  Iterator iterator_;
  Int depth0_;
  Int index0_ = -1;
  std::optional<Int> length_;
  Value before_, current_, after_;
  std::vector<Value> rest_;  // items taken early to count them
  size_t rest_next_ = 0;
};

inline LoopObject& as_loop(const Value& value) { return static_cast<LoopObject&>(*value.object()); }

}  // namespace crest::text::jinja
