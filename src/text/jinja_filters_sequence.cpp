#include <algorithm>
#include <random>
#include <set>

#include "text/jinja_filters.h"
#include "text/jinja_methods.h"
#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

/// "a.b.0" as keys; a number in the path is an index.
std::vector<Value> path_parts(Runtime& runtime, const Value& attribute) {
  if (attribute.none_or_missing()) return {};
  if (!attribute.is_string()) return {attribute};
  std::vector<Value> parts = split_text(runtime, attribute, runtime.string("."), -1);
  for (Value& part : parts) {
    const std::string& bytes = part.bytes();
    const bool number =
        !bytes.empty() && bytes.size() < 19 && bytes.find_first_not_of("0123456789") == std::string::npos;
    if (number) part = Value::integer(*parse_integer(bytes, 10));
  }
  return parts;
}

Value follow(Runtime& runtime, Value item, const std::vector<Value>& path, const Value& fallback = {}) {
  for (const Value& part : path) {
    item = runtime.getitem(item, part);
    if (item.undefined() && !fallback.none_or_missing()) item = fallback;
  }
  return item;
}

Value ignore_case(Runtime& runtime, const Value& value) {
  if (!value.is_string()) return value;
  runtime.tick_chars(4 * value.text().size());
  return runtime.string(value.text().derived(to_lower(value.bytes())));
}

/// Sorts by keys that are there already; stable, as Python's sorted.
std::vector<Value> sort_by(Runtime& runtime, const std::vector<Value>& items, const std::vector<Value>& keys,
                           bool reverse) {
  const auto order = stable_order(items.size(), [&](size_t a, size_t b) {
    return reverse ? runtime.less(keys[b], keys[a]) : runtime.less(keys[a], keys[b]);
  });
  std::vector<Value> sorted;
  for (const size_t i : order) sorted.push_back(items[i]);
  return sorted;
}

Value sort(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("sort", args, {"reverse", "case_sensitive", "attribute"});
  std::vector<std::vector<Value>> paths;
  if (p[2].is_string()) {
    for (const Value& one : split_text(runtime, p[2], runtime.string(","), -1))
      paths.push_back(path_parts(runtime, one));
  } else {
    paths.push_back(path_parts(runtime, p[2]));
  }
  const std::vector<Value> items = runtime.items_of(input);
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const auto& path : paths) {
      const Value part = follow(runtime, item, path);
      key.push_back(p.boolean(1, false) ? part : ignore_case(runtime, part));
    }
    keys.push_back(runtime.list(std::move(key)));
  }
  return runtime.list(sort_by(runtime, items, keys, p.boolean(0, false)));
}

Value dictsort(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("dictsort", args, {"case_sensitive", "by", "reverse"});
  const std::string by = p.has(1) ? runtime.str(p[1]).bytes() : "key";
  if (by != "key" && by != "value") raise(Fault::kValue, "You can only sort by either \"key\" or \"value\"");
  if (input.undefined()) input.undefined_object().fail();
  if (!input.is(Kind::kDict)) raise(Fault::kType, "'{}' object has no attribute 'items'", type_name(input));
  std::vector<Value> items, keys;
  for (const auto& [key, value] : input.dict().items) {
    items.push_back(runtime.tuple({key, value}));
    const Value& part = by == "key" ? key : value;
    keys.push_back(p.boolean(0, false) ? part : ignore_case(runtime, part));
  }
  return runtime.list(sort_by(runtime, items, keys, p.boolean(2, false)));
}

Value unique(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("unique", args, {"case_sensitive", "attribute"});
  const std::vector<Value> path = path_parts(runtime, p[1]);
  std::set<std::string> seen;
  std::vector<Value> kept;
  Iterator iterator(runtime, input);
  for (Value item; iterator.next(item);) {
    const Value key = follow(runtime, item, path);
    const std::string bytes = key_bytes(p.boolean(0, false) ? key : ignore_case(runtime, key));
    runtime.tick_bytes(bytes.size());
    if (seen.insert(bytes).second) kept.push_back(item);
  }
  return runtime.generator("generator", std::move(kept));
}

template <bool kMax>
Value extreme(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p(kMax ? "max" : "min", args, {"case_sensitive", "attribute"});
  const std::vector<Value> path = path_parts(runtime, p[1]);
  Value best, best_key;
  Iterator iterator(runtime, input);
  for (Value item; iterator.next(item);) {
    Value key = follow(runtime, item, path);
    if (!p.boolean(0, false)) key = ignore_case(runtime, key);
    const bool better = best.missing() || (kMax ? runtime.less(best_key, key, ">", true) : runtime.less(key, best_key));
    if (!better) continue;
    best = item;
    best_key = key;
  }
  return best.missing() ? runtime.undefined("No aggregated item, sequence was empty.") : best;
}

Value sum(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("sum", args, {"attribute", "start"});
  const std::vector<Value> path = path_parts(runtime, p[0]);
  Value total = p.has(1) ? p[1] : Value::integer(0);
  if (total.is_string()) raise(Fault::kType, "sum() can't sum strings [use ''.join(seq) instead]");
  Iterator iterator(runtime, input);
  for (Value item; iterator.next(item);) total = runtime.add(total, follow(runtime, item, path));
  return total;
}

Value first(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("first", args, {});
  Value item;
  return Iterator(runtime, input).next(item) ? item : runtime.undefined("No first item, sequence was empty.");
}

Value reversed_items(Runtime& runtime, const Value& input) {
  std::vector<Value> items = runtime.items_of(input);
  std::reverse(items.begin(), items.end());
  return runtime.list(std::move(items));
}

bool reversible(const Value& value) {
  return value.is_string() || value.is_sequence() || value.is(Kind::kDict) || value.is(Kind::kView) ||
         value.is(Kind::kRange);
}

Value last(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("last", args, {});
  if (input.undefined()) return runtime.undefined("No last item, sequence was empty.");
  if (!reversible(input)) raise(Fault::kType, "'{}' object is not reversible", type_name(input));
  if (runtime.length(input) == 0) return runtime.undefined("No last item, sequence was empty.");
  if (!input.is(Kind::kDict) && !input.is(Kind::kView)) return runtime.getitem(input, Value::integer(-1));
  return runtime.items_of(input).back();
}

Value random(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("random", args, {});
  const Int length = runtime.length(input);
  if (length == 0) return runtime.undefined("No random item, sequence was empty.");
  std::random_device device;
  return runtime.getitem(input, Value::integer(static_cast<Int>(device()) % length));
}

Value reverse(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("reverse", args, {});
  if (input.is_string()) return runtime.slice(input, {}, {}, Value::integer(-1));
  if (!Iterator::iterable(input)) raise(Fault::kType, "argument must be iterable");
  const Value list = reversed_items(runtime, input);
  if (!reversible(input) && !input.undefined()) return list;
  return runtime.generator(input.is(Kind::kList) ? "list_reverseiterator" : "reversed", list.list().items);
}

Value list(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("list", args, {});
  return runtime.list(runtime.items_of(input));
}

Value length(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("length", args, {});
  return Value::integer(runtime.length(input));
}

Value batch(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("batch", args, {"linecount", "fill_with"}, 1);
  const Value& fill = p[1];
  std::vector<Value> rows, row;
  const Int size = p.integer(0, 0);
  Iterator iterator(runtime, input);
  for (Value item; iterator.next(item);) {
    if (static_cast<Int>(row.size()) == size) rows.push_back(runtime.list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    if (!fill.none_or_missing()) runtime.check_items(size);
    while (!fill.none_or_missing() && static_cast<Int>(row.size()) < size) row.push_back(fill);
    rows.push_back(runtime.list(std::move(row)));
  }
  return runtime.generator("generator", std::move(rows));
}

Value slice(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("slice", args, {"slices", "fill_with"}, 1);
  const std::vector<Value> items = runtime.items_of(input);
  const Int slices = p.integer(0, 1);
  if (slices == 0) raise(Fault::kZeroDivision, "integer division or modulo by zero");
  runtime.check_items(slices);
  std::vector<Value> columns;
  const Int count = static_cast<Int>(items.size());
  for (Int i = 0, begin = 0; i < slices; ++i) {
    const bool extra = i < count % slices;
    const Int end = begin + count / slices + (extra ? 1 : 0);
    std::vector<Value> column(items.begin() + static_cast<std::ptrdiff_t>(begin),
                              items.begin() + static_cast<std::ptrdiff_t>(end));
    if (!p[1].none_or_missing() && !extra) column.push_back(p[1]);
    columns.push_back(runtime.list(std::move(column)));
    begin = end;
  }
  return runtime.generator("generator", std::move(columns));
}

Value groupby(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("groupby", args, {"attribute", "default", "case_sensitive"}, 1);
  const std::vector<Value> path = path_parts(runtime, p[0]);
  const bool sensitive = p.boolean(2, false);
  const auto key_of = [&](const Value& item) {
    const Value key = follow(runtime, item, path, p[1]);
    return sensitive ? key : ignore_case(runtime, key);
  };
  const std::vector<Value> items = runtime.items_of(input);
  std::vector<Value> keys;
  for (const Value& item : items) keys.push_back(key_of(item));
  const std::vector<Value> sorted = sort_by(runtime, items, keys, false);
  std::vector<Value> groups, members;
  const auto close = [&]() {
    const Value name = follow(runtime, members[0], path, p[1]);
    const Value group = runtime.tuple({name, runtime.list(std::exchange(members, {}))});
    static_cast<ListObject*>(group.object())->group = true;
    groups.push_back(group);
  };
  Value current;
  for (const Value& item : sorted) {
    const Value key = key_of(item);
    if (!members.empty() && !runtime.equal(key, current)) close();
    current = key;
    members.push_back(item);
  }
  if (!members.empty()) close();
  return runtime.list(std::move(groups));
}

/// Items up to the first that raises; who takes that one gets the exception, as from a Python generator.
template <typename Step>
Value lazily(Runtime& runtime, const Value& input, Step step) {
  std::vector<Value> kept;
  std::exception_ptr fault;
  try {
    Iterator iterator(runtime, input);
    for (Value item; iterator.next(item);) step(item, kept);
  } catch (const TemplateFault& raised) {
    if (raised.fault() == Fault::kBudget) throw;
    fault = std::current_exception();
  }
  return runtime.generator("generator", std::move(kept), fault);
}

Value map(Runtime& runtime, const Value& input, const Args& args) {
  if (!truth(input)) return runtime.generator("generator", {});
  if (args.positional.empty()) {
    const Parameters p("map", args, {"*attribute", "*default"});
    if (!p.has(0)) raise(Fault::kType, "map requires a filter argument");
    const std::vector<Value> path = path_parts(runtime, p[0]);
    return lazily(runtime, input,
                  [&](const Value& item, auto& out) { out.push_back(follow(runtime, item, path, p[1])); });
  }
  const std::string name = runtime.str(args.positional[0]).bytes();
  const Filter filter = find_filter(name);
  if (filter == nullptr) raise(Fault::kTemplate, "No filter named '{}'.", name);
  Args rest{{args.positional.begin() + 1, args.positional.end()}, args.named};
  return lazily(runtime, input, [&](const Value& item, auto& out) { out.push_back(filter(runtime, item, rest)); });
}

template <bool kReject, bool kAttribute>
Value select(Runtime& runtime, const Value& input, const Args& args) {
  if (!truth(input)) return runtime.generator("generator", {});
  size_t used = 0;
  std::vector<Value> path;
  if (kAttribute) {
    if (args.positional.empty()) raise(Fault::kType, "Missing parameter for attribute name");
    path = path_parts(runtime, args.positional[used++]);
  }
  Test test = nullptr;
  if (args.positional.size() > used) {
    const std::string name = runtime.str(args.positional[used++]).bytes();
    test = find_test(name);
    if (test == nullptr) raise(Fault::kTemplate, "No test named '{}'.", name);
  }
  Args rest{{args.positional.begin() + static_cast<std::ptrdiff_t>(used), args.positional.end()}, args.named};
  return lazily(runtime, input, [&](const Value& item, auto& out) {
    const Value subject = follow(runtime, item, path);
    if ((test != nullptr ? test(runtime, subject, rest) : truth(subject)) != kReject) out.push_back(item);
  });
}

constexpr FilterEntry kFilters[] = {
    {"batch", batch},
    {"count", length},
    {"dictsort", dictsort},
    {"first", first},
    {"groupby", groupby},
    {"last", last},
    {"length", length},
    {"list", list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"random", random},
    {"reject", select<true, false>},
    {"rejectattr", select<true, true>},
    {"reverse", reverse},
    {"select", select<false, false>},
    {"selectattr", select<false, true>},
    {"slice", slice},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

Filter find_sequence_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [name](const FilterEntry& e) { return e.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

}  // namespace crest::text::jinja
