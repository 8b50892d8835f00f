#include <algorithm>
#include <array>

#include "text/jinja_methods.h"
#include "text/jinja_unicode.h"
#include "text/unicode.h"

namespace crest::text::jinja {
namespace {

const Value& string_argument(std::string_view method, const Value& value) {
  if (value.undefined()) value.undefined_object().fail();
  if (!value.is_string()) raise(Fault::kType, "{}() argument must be str, not {}", method, type_name(value));
  return value;
}

/// A result that keeps the kind of the string: plain or markup.
Value same_kind(Runtime& runtime, const Value& self, Text text) {
  return runtime.string(std::move(text), self.string().markup);
}

/// Markup escapes what is put into it.
Text inserted(Runtime& runtime, const Value& self, const Value& value) {
  return self.string().markup ? runtime.escape(value).text() : value.text();
}

template <std::string (*kConvert)(std::string_view)>
Value converted(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters none("str method", args, {});
  runtime.tick_chars(4 * self.text().size());
  return same_kind(runtime, self, self.text().derived(kConvert(self.bytes())));
}

template <uint32_t kWanted>
Value all_in_class(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters none("str method", args, {});
  runtime.tick_chars(self.text().size());
  const std::string& bytes = self.bytes();
  for (size_t position = 0; position < bytes.size();) {
    if ((char_class(next_char(bytes, position)) & kWanted) == 0) return Value::boolean(false);
  }
  return Value::boolean(!bytes.empty() || kWanted == kPrintable);
}

Value isascii(Runtime& runtime, const Value& self, const Args&) {
  return Value::boolean(runtime.text_length(self.string()) == static_cast<Int>(self.text().size()));
}

Value islower(Runtime& runtime, const Value& self, const Args&) {
  runtime.tick_chars(self.text().size());
  return Value::boolean(is_lower_text(self.bytes()));
}

Value isupper(Runtime& runtime, const Value& self, const Args&) {
  runtime.tick_chars(self.text().size());
  return Value::boolean(is_upper_text(self.bytes()));
}

Value istitle(Runtime& runtime, const Value& self, const Args&) {
  runtime.tick_chars(self.text().size());
  bool cased = false;
  bool inside = false;
  for (size_t position = 0; position < self.bytes().size();) {
    const uint32_t c = char_class(next_char(self.bytes(), position));
    const bool capital = (c & (kUpper | kTitle)) != 0;
    const bool small = (c & kLower) != 0;
    if ((capital && inside) || (small && !inside)) return Value::boolean(false);
    inside = capital || small;
    cased = cased || inside;
  }
  return Value::boolean(cased);
}

Value isidentifier(Runtime& runtime, const Value& self, const Args&) {
  runtime.tick_chars(self.text().size());
  const std::string& bytes = self.bytes();
  bool first = true;
  for (size_t position = 0; position < bytes.size(); first = false) {
    const char32_t c = next_char(bytes, position);
    const bool start = c == '_' || (char_class(c) & kAlpha) != 0;
    if (!start && (first || !is_word_character(c))) return Value::boolean(false);
  }
  return Value::boolean(!first);
}

template <bool kLeft, bool kRight>
Value strip(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("strip", args, {"chars"});
  return same_kind(runtime, self, strip_text(runtime, self.text(), p[0], kLeft, kRight));
}

Value split(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("split", args, {"sep", "maxsplit"});
  return runtime.list(split_text(runtime, self, p[0], p.integer(1, -1)));
}

Value rsplit(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("rsplit", args, {"sep", "maxsplit"});
  return runtime.list(rsplit_text(runtime, self, p[0], p.integer(1, -1)));
}

Value splitlines(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("splitlines", args, {"keepends"});
  std::vector<Value> lines;
  for (Text& line : split_lines(runtime, self.text(), p.boolean(0, false))) {
    lines.push_back(same_kind(runtime, self, std::move(line)));
  }
  return runtime.list(std::move(lines));
}

template <bool kFromRight>
Value partition(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("partition", args, {"sep"}, 1);
  const std::string& separator = string_argument("partition", p[0]).bytes();
  if (separator.empty()) raise(Fault::kValue, "empty separator");
  const Text& text = self.text();
  runtime.tick_bytes(text.size());
  const size_t at = kFromRight ? rfind_bytes(text.bytes(), separator) : find_bytes(text.bytes(), separator);
  const bool found = at != std::string::npos;
  const size_t begin = found ? at : kFromRight ? 0 : text.size();
  const size_t end = found ? at + separator.size() : begin;
  return runtime.tuple({same_kind(runtime, self, text.slice(0, begin)),
                        same_kind(runtime, self, text.slice(begin, end)),
                        same_kind(runtime, self, text.slice(end, text.size()))});
}

Value replace(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("replace", args, {"old", "new", "count"}, 2);
  const Text& from = string_argument("replace", p[0]).text();
  const Text to = inserted(runtime, self, string_argument("replace", p[1]));
  return same_kind(runtime, self, replace_text(runtime, self.text(), from, to, p.integer(2, -1)));
}

Value join(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("join", args, {"iterable"}, 1);
  if (p[0].undefined()) return same_kind(runtime, self, {});
  if (!Iterator::iterable(p[0])) raise(Fault::kType, "can only join an iterable");
  Text out;
  size_t index = 0;
  Iterator iterator(runtime, p[0]);
  for (Value item; iterator.next(item); ++index) {
    if (!item.is_string() && !self.string().markup) {
      raise(Fault::kType, "sequence item {}: expected str instance, {} found", index, type_name(item));
    }
    const Value part = self.string().markup ? runtime.escape(item) : item;
    if (index > 0) out.append(self.text());
    runtime.check_string(static_cast<Int>(out.size() + part.text().size()));
    runtime.tick_bytes(self.text().size() + part.text().size());
    out.append(part.text());
  }
  return same_kind(runtime, self, std::move(out));
}

/// The bytes between the character indexes that find, count, startswith take; empty if start lies behind the end of the
/// string.
struct Window {
  size_t begin = 0;
  size_t end = 0;
  bool valid = true;
};

Window window(Runtime& runtime, const Value& self, const Value& start, const Value& stop) {
  const StringObject& object = self.string();
  const Int length = runtime.text_length(object);
  const auto bound = [&](const Value& value, Int fallback) {
    if (value.none_or_missing()) return fallback;
    const Int index = index_argument(value);
    return index < 0 ? std::max<Int>(index + length, 0) : index;
  };
  const Int from = bound(start, 0);
  const Int to = std::min(bound(stop, length), length);
  if (from > length || from > to) return {0, 0, false};
  return {runtime.text_position(object, from), runtime.text_position(object, to), true};
}

template <bool kFromRight, bool kMustExist>
Value find(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("find", args, {"sub", "start", "end"}, 1);
  const std::string& needle = string_argument("find", p[0]).bytes();
  const Window w = window(runtime, self, p[1], p[2]);
  const std::string_view area = std::string_view(self.bytes()).substr(w.begin, w.end - w.begin);
  runtime.tick_bytes(area.size());
  size_t at = !w.valid ? std::string::npos : kFromRight ? rfind_bytes(area, needle) : find_bytes(area, needle);
  if (at == std::string::npos) {
    if (kMustExist) raise(Fault::kValue, "substring not found");
    return Value::integer(-1);
  }
  at += w.begin;
  if (runtime.text_length(self.string()) == static_cast<Int>(self.text().size()))
    return Value::integer(static_cast<Int>(at));
  runtime.tick_chars(at);
  return Value::integer(static_cast<Int>(count_chars(std::string_view(self.bytes()).substr(0, at))));
}

Value count(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("count", args, {"sub", "start", "end"}, 1);
  const std::string& needle = string_argument("count", p[0]).bytes();
  const Window w = window(runtime, self, p[1], p[2]);
  if (!w.valid) return Value::integer(0);
  const std::string_view area = std::string_view(self.bytes()).substr(w.begin, w.end - w.begin);
  runtime.tick_chars(area.size());
  if (needle.empty()) return Value::integer(static_cast<Int>(count_chars(area)) + 1);
  Int found = 0;
  for (size_t at = 0; (at = find_bytes(area, needle, at)) != std::string::npos; at += needle.size()) ++found;
  return Value::integer(found);
}

template <bool kEnd>
Value starts_or_ends(Runtime& runtime, const Value& self, const Args& args) {
  const char* name = kEnd ? "endswith" : "startswith";
  const Parameters p(name, args, {"prefix", "start", "end"}, 1);
  const Window w = window(runtime, self, p[1], p[2]);
  const std::string_view area = std::string_view(self.bytes()).substr(w.begin, w.end - w.begin);
  const auto matches = [&](const Value& affix) {
    const std::string& bytes = string_argument(name, affix).bytes();
    return w.valid && (kEnd ? area.ends_with(bytes) : area.starts_with(bytes));
  };
  if (!p[0].is(Kind::kTuple)) return Value::boolean(matches(p[0]));
  const auto& choices = p[0].list().items;
  return Value::boolean(std::any_of(choices.begin(), choices.end(), matches));
}

template <bool kSuffix>
Value remove_affix(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("removeprefix", args, {"affix"}, 1);
  const std::string& affix = string_argument("removeprefix", p[0]).bytes();
  const Text& text = self.text();
  if (kSuffix ? !text.bytes().ends_with(affix) : !text.bytes().starts_with(affix)) return self;
  return same_kind(runtime, self,
                   kSuffix ? text.slice(0, text.size() - affix.size()) : text.slice(affix.size(), text.size()));
}

enum class Side { kLeft, kRight, kCenter };

template <Side kSide>
Value justify(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("just", args, {"width", "fillchar"}, 1);
  const Int width = p.integer(0, 0);
  const Text fill = p.has(1) ? inserted(runtime, self, string_argument("just", p[1])) : Text(" ");
  if (count_chars(fill.bytes()) != 1) raise(Fault::kType, "The fill character must be exactly one character long");
  if (kSide == Side::kCenter) return same_kind(runtime, self, center_text(runtime, self.string(), width, fill));
  const Int missing = std::max<Int>(width - runtime.text_length(self.string()), 0);
  runtime.check_string(missing * static_cast<Int>(fill.size()) + static_cast<Int>(self.text().size()));
  Text out;
  if (kSide == Side::kLeft) out.append(self.text());
  append_repeated(runtime, out, fill, missing);
  if (kSide == Side::kRight) out.append(self.text());
  return same_kind(runtime, self, std::move(out));
}

Value zfill(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("zfill", args, {"width"}, 1);
  const Int missing = p.integer(0, 0) - runtime.text_length(self.string());
  if (missing <= 0) return self;
  runtime.check_string(missing + static_cast<Int>(self.text().size()));
  const bool sign = self.bytes().starts_with('+') || self.bytes().starts_with('-');
  Text out = self.text().slice(0, sign ? 1 : 0);
  out.append(std::string(static_cast<size_t>(missing), '0'));
  out.append(self.text(), sign ? 1 : 0, self.text().size());
  return same_kind(runtime, self, std::move(out));
}

Value expandtabs(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("expandtabs", args, {"tabsize"});
  const Int size = p.integer(0, 8);
  const Text& text = self.text();
  runtime.tick_chars(2 * text.size());
  Text out;
  Int column = 0;
  for (size_t position = 0; position < text.size();) {
    const size_t begin = position;
    const char32_t c = next_char(text.bytes(), position);
    if (c == '\t') {
      const Int width = size > 0 ? size - column % size : 0;
      column += width;
      runtime.check_string(static_cast<Int>(out.size()) + width);
      out.append(std::string(static_cast<size_t>(width), ' '));
    } else {
      column = c == '\n' || c == '\r' ? 0 : column + 1;
      out.append(text, begin, position);
    }
  }
  return same_kind(runtime, self, std::move(out));
}

Value format(Runtime& runtime, const Value& self, const Args& args) { return runtime.brace_format(self, args, false); }

Value format_map(Runtime& runtime, const Value& self, const Args& args) {
  const Parameters p("format_map", args, {"mapping"}, 1);
  if (!p[0].is(Kind::kDict)) raise(Fault::kType, "format_map() needs a mapping, not {}", type_name(p[0]));
  return runtime.brace_format(self, args, true);
}

struct Entry {
  std::string_view name;
  Method method;
};

constexpr std::array kMethods = {
    Entry{"capitalize", converted<to_capitalized>},
    Entry{"casefold", converted<to_casefold>},
    Entry{"center", justify<Side::kCenter>},
    Entry{"count", count},
    Entry{"endswith", starts_or_ends<true>},
    Entry{"expandtabs", expandtabs},
    Entry{"find", find<false, false>},
    Entry{"format", format},
    Entry{"format_map", format_map},
    Entry{"index", find<false, true>},
    Entry{"isalnum", all_in_class<kAlpha | kDecimal | kDigit | kNumeric>},
    Entry{"isalpha", all_in_class<kAlpha>},
    Entry{"isascii", isascii},
    Entry{"isdecimal", all_in_class<kDecimal>},
    Entry{"isdigit", all_in_class<kDigit>},
    Entry{"isidentifier", isidentifier},
    Entry{"islower", islower},
    Entry{"isnumeric", all_in_class<kNumeric>},
    Entry{"isprintable", all_in_class<kPrintable>},
    Entry{"isspace", all_in_class<kSpace>},
    Entry{"istitle", istitle},
    Entry{"isupper", isupper},
    Entry{"join", join},
    Entry{"ljust", justify<Side::kLeft>},
    Entry{"lower", converted<to_lower>},
    Entry{"lstrip", strip<true, false>},
    Entry{"partition", partition<false>},
    Entry{"removeprefix", remove_affix<false>},
    Entry{"removesuffix", remove_affix<true>},
    Entry{"replace", replace},
    Entry{"rfind", find<true, false>},
    Entry{"rindex", find<true, true>},
    Entry{"rjust", justify<Side::kRight>},
    Entry{"rpartition", partition<true>},
    Entry{"rsplit", rsplit},
    Entry{"rstrip", strip<false, true>},
    Entry{"split", split},
    Entry{"splitlines", splitlines},
    Entry{"startswith", starts_or_ends<false>},
    Entry{"strip", strip<true, true>},
    Entry{"swapcase", converted<swap_case>},
    Entry{"title", converted<to_title>},
    Entry{"upper", converted<to_upper>},
    Entry{"zfill", zfill},
};

}  // namespace

Method find_string_method(std::string_view name) {
  const auto* found = std::find_if(kMethods.begin(), kMethods.end(), [name](const Entry& e) { return e.name == name; });
  return found == kMethods.end() ? nullptr : found->method;
}

}  // namespace crest::text::jinja
