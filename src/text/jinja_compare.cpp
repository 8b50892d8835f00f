#include <algorithm>

#include "text/jinja_methods.h"
#include "text/jinja_number.h"
#include "text/jinja_runtime.h"

namespace crest::text::jinja {

bool Runtime::equal(const Value& a, const Value& b) {
  tick();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == Order::kEqual;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kMissing:
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      tick_bytes(std::min(a.text().size(), b.text().size()));
      return a.bytes() == b.bytes();
    case Kind::kList:
    case Kind::kTuple: {
      const auto& left = a.list().items;
      const auto& right = b.list().items;
      return left.size() == right.size() &&
             std::equal(left.begin(), left.end(), right.begin(), [this](auto& x, auto& y) {
               return (x.object() == y.object() && x.kind() == y.kind() && x.kind() > Kind::kFloat) || equal(x, y);
             });
    }
    case Kind::kDict: {
      const DictObject& left = a.dict();
      const DictObject& right = b.dict();
      if (left.items.size() != right.items.size()) return false;
      return std::all_of(left.items.begin(), left.items.end(), [&](const auto& item) {
        const Value* other = right.find(item.first);
        return other != nullptr && equal(item.second, *other);
      });
    }
    case Kind::kRange:
      return key_bytes(a) == key_bytes(b);
    case Kind::kView: {
      const ViewObject& left = a.view();
      const ViewObject& right = b.view();
      if (left.part != right.part || left.part == ViewObject::Part::kValues) return a.object() == b.object();
      if (left.part == ViewObject::Part::kItems)
        return equal(Value(Kind::kDict, const_cast<DictObject*>(left.dict)),
                     Value(Kind::kDict, const_cast<DictObject*>(right.dict)));
      return left.dict->items.size() == right.dict->items.size() &&
             std::all_of(left.dict->items.begin(), left.dict->items.end(),
                         [&](const auto& item) { return right.dict->find(item.first) != nullptr; });
    }
    default:
      return a.object() == b.object();
  }
}

bool Runtime::sequence_less(const ListObject& a, const ListObject& b, std::string_view operation, bool swapped) {
  const size_t common = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < common; ++i) {
    if (!equal(a.items[i], b.items[i])) return less(a.items[i], b.items[i], operation, swapped);
  }
  return a.items.size() < b.items.size();
}

bool Runtime::less(const Value& a, const Value& b, std::string_view operation, bool swapped) {
  tick();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == Order::kLess;
  if (a.undefined()) a.undefined_object().fail();
  if (b.undefined()) b.undefined_object().fail();
  if (a.is_string() && b.is_string()) {
    tick_bytes(std::min(a.text().size(), b.text().size()));
    return a.bytes() < b.bytes();  // the order of UTF-8 is that of its characters
  }
  if (a.is_sequence() && a.kind() == b.kind()) return sequence_less(a.list(), b.list(), operation, swapped);
  raise(Fault::kType, "'{}' not supported between instances of '{}' and '{}'", operation, type_name(swapped ? b : a),
        type_name(swapped ? a : b));
}

bool Runtime::contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString:
      if (!item.is_string()) {
        raise(Fault::kType, "'in <string>' requires string as left operand, not {}", type_name(item));
      }
      tick_bytes(container.text().size());
      return find_bytes(container.bytes(), item.bytes()) != std::string::npos;
    case Kind::kDict:
      tick();
      return container.dict().find(item) != nullptr;
    case Kind::kRange: {
      const RangeObject& range = container.range();
      if (!item.is_integer()) break;
      if (range.length == 0) return false;
      const int64_t first = range.start, last = range.at(range.length - 1);
      const auto [low, high] = std::minmax(first, last);
      return item.as_integer() >= low && item.as_integer() <= high &&
             (item.as_integer() - range.start) % range.step == 0;
    }
    case Kind::kView:
      if (container.view().part == ViewObject::Part::kKeys) return container.view().dict->find(item) != nullptr;
      break;
    default:
      if (!Iterator::iterable(container))
        raise(Fault::kType, "argument of type '{}' is not iterable", type_name(container));
  }
  Iterator iterator(*this, container);
  for (Value other; iterator.next(other);) {
    if (equal(other, item)) return true;
  }
  return false;
}

}  // namespace crest::text::jinja
