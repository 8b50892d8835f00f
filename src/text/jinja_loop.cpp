#include "text/jinja_loop.h"

#include "text/jinja_methods.h"

namespace crest::text::jinja {

bool LoopObject::next_wanted(Value& item) {
  while (iterator_.next(item)) {
    if (!condition || condition(item)) return true;
  }
  return false;
}

bool LoopObject::peek() {
  if (!after_.missing()) return true;
  if (rest_next_ < rest_.size()) {
    after_ = rest_[rest_next_++];
    return true;
  }
  Value item;
  if (!next_wanted(item)) return false;
  after_ = item;
  return true;
}

bool LoopObject::advance(Value& item) {
  if (!peek()) return false;
  ++index0_;
  before_ = current_;
  current_ = after_;
  after_ = Value();
  item = current_;
  return true;
}

Int LoopObject::length(Runtime& runtime) {
  if (length_) return *length_;
  if (!condition && !iterable_.is(Kind::kGenerator) && !iterable_.is(Kind::kUndefined)) {
    length_ = runtime.length(iterable_);
  } else {
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(rest_next_));
    rest_next_ = 0;
    for (Value item; next_wanted(item);) rest_.push_back(item);
    length_ = static_cast<Int>(rest_.size()) + index0_ + 1 + (after_.missing() ? 0 : 1);
  }
  return *length_;
}

Value LoopObject::attribute(Runtime& runtime, std::string_view name) {
  if (name == "index") return Value::integer(index0_ + 1);
  if (name == "index0") return Value::integer(index0_);
  if (name == "revindex") return Value::integer(length(runtime) - index0_);
  if (name == "revindex0") return Value::integer(length(runtime) - index0_ - 1);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(!peek());
  if (name == "length") return Value::integer(length(runtime));
  if (name == "depth") return Value::integer(depth0_ + 1);
  if (name == "depth0") return Value::integer(depth0_);
  if (name == "previtem") return index0_ == 0 ? runtime.undefined("there is no previous item") : before_;
  if (name == "nextitem") return peek() ? after_ : runtime.undefined("there is no next item");
  if (name == "cycle") {
    return make_function(runtime, "cycle", [this](Runtime&, Args& args) {
      if (args.positional.empty()) raise(Fault::kType, "no items for cycling given");
      return args.positional[static_cast<size_t>(index0_) % args.positional.size()];
    });
  }
  if (name == "changed") {
    return make_function(runtime, "changed", [this](Runtime& rt, Args& args) {
      const Value now = rt.tuple(args.positional);
      const bool changed = last_changed.missing() || !rt.equal(last_changed, now);
      if (changed) last_changed = now;
      return Value::boolean(changed);
    });
  }
  return {};
}

}  // namespace crest::text::jinja
