#include <algorithm>
#include <cmath>

#include "text/jinja_filters.h"
#include "text/jinja_methods.h"
#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

/// Calls a method of str on the text of any value.
Value via_method(Runtime& runtime, const Value& input, std::string_view method, const Args& args) {
  return find_string_method(method)(runtime, runtime.soft_str(input), args);
}

Value upper(Runtime& runtime, const Value& input, const Args& args) {
  return via_method(runtime, input, "upper", args);
}
Value lower(Runtime& runtime, const Value& input, const Args& args) {
  return via_method(runtime, input, "lower", args);
}
Value capitalize(Runtime& runtime, const Value& input, const Args& args) {
  return via_method(runtime, input, "capitalize", args);
}

Value trim(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("trim", args, {"chars"});
  const Value text = runtime.soft_str(input);
  return runtime.string(strip_text(runtime, text.text(), p[0], true, true), text.string().markup);
}

Value title(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("title", args, {});
  const Value text = runtime.soft_str(input);
  const std::string& bytes = text.bytes();
  runtime.tick_chars(4 * bytes.size());
  std::string out;
  const auto separates = [](char32_t c) {
    return is_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  for (size_t position = 0; position < bytes.size();) {
    // A word, or a run of separators: its first character is raised, the rest lowered.
    const size_t first = position;
    const bool separator = separates(next_char(bytes, position));
    const size_t rest = position;
    for (size_t after = position; position < bytes.size() && separates(next_char(bytes, after)) == separator;)
      position = after;
    out += to_upper(std::string_view(bytes).substr(first, rest - first));
    out += to_lower(std::string_view(bytes).substr(rest, position - rest));
  }
  return runtime.string(text.text().derived(std::move(out)));
}

Value center(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("center", args, {"width"});
  const Value text = runtime.soft_str(input);
  return runtime.string(center_text(runtime, text.string(), p.integer(0, 80), Text(" ")), text.string().markup);
}

Value replace(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("replace", args, {"old", "new", "count"}, 2);
  const Int count = p[2].none_or_missing() ? -1 : p.integer(2, -1);
  if (!runtime.autoescape) {
    return runtime.string(replace_text(runtime, runtime.str(input), runtime.str(p[0]), runtime.str(p[1]), count));
  }
  const auto markup = [](const Value& v) { return v.is_string() && v.string().markup; };
  const bool escape = markup(p[0]) || (markup(p[1]) && !markup(input));
  const Value text = escape ? runtime.escape(input) : runtime.soft_str(input);
  const Value to = markup(text) ? runtime.escape(p[1]) : runtime.soft_str(p[1]);
  return runtime.string(replace_text(runtime, text.text(), runtime.str(p[0]), to.text(), count), markup(text));
}

Value indent(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("indent", args, {"width", "first", "blank"});
  if (input.undefined()) input.undefined_object().fail();
  if (!input.is_string()) raise(Fault::kType, "unsupported operand type(s) for +=: '{}' and 'str'", type_name(input));
  Text indention;
  if (p.has(0) && p[0].is_string()) {
    indention = p[0].text();
  } else {
    const Int width = p.integer(0, 4);
    runtime.check_string(width);
    indention = Text(std::string(width > 0 ? static_cast<size_t>(width) : 0, ' '));
  }
  Text source = input.text();
  source.append("\n");
  const std::vector<Text> lines = split_lines(runtime, source, false);
  const bool blank = p.boolean(2, false);
  Text out;
  if (p.boolean(1, false)) out.append(indention);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    if (i > 0 && (blank || !lines[i].empty())) out.append(indention);
    runtime.check_string(static_cast<Int>(out.size() + lines[i].size()));
    runtime.tick_bytes(indention.size() + lines[i].size());
    out.append(lines[i]);
  }
  return runtime.string(std::move(out), input.string().markup);
}

Value truncate(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("truncate", args, {"length", "killwords", "end", "leeway"});
  const Int limit = p.integer(0, 255);
  const Value end = p.has(2) ? p[2] : runtime.string("...");
  const Int leeway = p[3].none_or_missing() ? 5 : p.integer(3, 5);
  const Int end_length = runtime.length(end);
  if (limit < end_length)
    raise(Fault::kValue, "expected length >= {}, got {}", integer_text(end_length), integer_text(limit));
  if (leeway < 0) raise(Fault::kValue, "expected leeway >= 0, got {}", integer_text(leeway));
  if (runtime.length(input) <= limit + leeway) return input;
  const Value head = runtime.slice(input, {}, Value::integer(limit - end_length), {});
  if (p.boolean(1, false)) return runtime.add(head, end);
  if (!head.is_string()) raise(Fault::kType, "truncate needs a string, not {}", type_name(input));
  return runtime.add(rsplit_text(runtime, head, runtime.string(" "), 1)[0], end);
}

Value wordcount(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("wordcount", args, {});
  const Value text = runtime.soft_str(input);
  runtime.tick_chars(text.text().size());
  Int words = 0;
  bool inside = false;
  for (size_t position = 0; position < text.bytes().size();) {
    const char32_t c = next_char(text.bytes(), position);
    const bool word = c == '_' || is_alnum(c);
    words += word && !inside ? 1 : 0;
    inside = word;
  }
  return Value::integer(words);
}

Value format(Runtime& runtime, const Value& input, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    raise(Fault::kType, "can't handle positional and keyword arguments at the same time");
  }
  Value values = runtime.tuple(args.positional);
  if (!args.named.empty()) {
    auto* dict = runtime.make<DictObject>();
    for (const auto& [name, value] : args.named) dict->set(runtime.string(name), value);
    values = runtime.dict(dict);
  }
  return runtime.percent_format(runtime.soft_str(input), values);
}

Value join(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("join", args, {"d", "attribute"});
  const Value separator = p.has(0) ? runtime.soft_str(p[0]) : runtime.string("");
  Value items = input;
  if (!p[1].none_or_missing()) {
    Args map_args;
    map_args.named.emplace_back("attribute", p[1]);
    items = find_filter("map")(runtime, input, map_args);
  }
  std::vector<Value> parts = runtime.items_of(items);
  const auto markup = [](const Value& v) { return v.is_string() && v.string().markup; };
  const bool escape = runtime.autoescape && (markup(separator) || std::any_of(parts.begin(), parts.end(), markup));
  const Text between = escape ? runtime.escape(separator).text() : separator.text();
  Text out;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Text part = escape ? runtime.escape(parts[i]).text() : runtime.str(parts[i]);
    if (i > 0) out.append(between);
    runtime.tick_bytes(between.size() + part.size());
    runtime.check_string(static_cast<Int>(out.size() + part.size()));
    out.append(part);
  }
  return runtime.string(std::move(out), escape);
}

Value escape(Runtime& runtime, const Value& input, const Args&) { return runtime.escape(input); }
Value forceescape(Runtime& runtime, const Value& input, const Args&) {
  return runtime.escape(runtime.string(runtime.str(input)));
}
Value safe(Runtime& runtime, const Value& input, const Args&) { return runtime.string(runtime.str(input), true); }
Value string(Runtime& runtime, const Value& input, const Args&) { return runtime.soft_str(input); }

/// Tags and comments out, white space to single blanks, the usual entities back to characters.
Value striptags(Runtime& runtime, const Value& input, const Args&) {
  const Text source = runtime.str(input);
  const std::string& bytes = source.bytes();
  runtime.tick_chars(2 * bytes.size());
  std::string kept;
  size_t position = 0;
  for (size_t start = 0; (start = find_bytes(bytes, "<", position)) != std::string::npos;) {
    const bool comment = std::string_view(bytes).substr(start).starts_with("<!--");
    const size_t end = comment ? find_bytes(bytes, "-->", start + 4) : find_bytes(bytes, ">", start);
    if (end == std::string::npos) break;
    kept.append(bytes, position, start - position);
    position = end + (comment ? 3 : 1);
  }
  kept.append(bytes, position);
  const Value text = runtime.string(source.derived(std::move(kept)));
  Text spaced;
  for (const Value& word : split_text(runtime, text, {}, -1)) {
    if (!spaced.empty()) spaced.append(" ");
    spaced.append(word.text());
  }
  constexpr std::pair<std::string_view, std::string_view> kEntities[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&#39;", "'"}, {"&#34;", "\""}, {"&quot;", "\""}, {"&amp;", "&"}};
  for (const auto& [entity, character] : kEntities) {
    spaced = replace_text(runtime, spaced, Text(std::string(entity)), Text(std::string(character)), -1);
  }
  return runtime.string(std::move(spaced));
}

std::string quoted_url(std::string_view text, bool query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !query);
    if (plain) {
      out += c;
    } else if (c == ' ' && query) {
      out += '+';
    } else {
      constexpr std::string_view kHex = "0123456789ABCDEF";
      out += '%';
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    }
  }
  return out;
}

Value urlencode(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("urlencode", args, {});
  const auto quote = [&](const Value& value, bool query) {
    const Text text = runtime.str(value);
    runtime.tick_chars(4 * text.size());
    return text.derived(quoted_url(text.bytes(), query));
  };
  if (input.is_string() || !Iterator::iterable(input)) return runtime.string(quote(input, false));
  const Value pairs = input.is(Kind::kDict) ? runtime.view(ViewObject::Part::kItems, input.dict()) : input;
  Text out;
  Iterator iterator(runtime, pairs);
  for (Value pair; iterator.next(pair);) {
    const std::vector<Value> items = runtime.items_of(pair);
    if (items.size() != 2) raise(Fault::kValue, "urlencode needs pairs, got {} items", items.size());
    if (!out.empty()) out.append("&");
    out.append(quote(items[0], true));
    out.append("=");
    out.append(quote(items[1], true));
    runtime.check_string(static_cast<Int>(out.size()));
  }
  return runtime.string(std::move(out));
}

Value xmlattr(Runtime& runtime, const Value& input, const Args& args) {
  const Parameters p("xmlattr", args, {"autospace"});
  if (!input.is(Kind::kDict)) raise(Fault::kType, "xmlattr needs a mapping, not {}", type_name(input));
  Text out;
  for (const auto& [key, value] : input.dict().items) {
    if (value.none_or_missing() || value.undefined()) continue;
    if (!key.is_string()) raise(Fault::kType, "expected string or bytes-like object, got '{}'", type_name(key));
    if (key.bytes().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      raise(Fault::kValue, "Invalid character in attribute name: {}", runtime.repr(key).bytes());
    }
    if (!out.empty()) out.append(" ");
    out.append(runtime.escape(key).text());
    out.append("=\"");
    out.append(runtime.escape(value).text());
    out.append("\"");
    runtime.check_string(static_cast<Int>(out.size()));
  }
  Text spaced(p.boolean(0, true) && !out.empty() ? " " : "");
  spaced.append(out);
  return runtime.string(std::move(spaced), runtime.autoescape);
}

constexpr FilterEntry kFilters[] = {
    {"capitalize", capitalize},
    {"center", center},
    {"e", escape},
    {"escape", escape},
    {"forceescape", forceescape},
    {"format", format},
    {"indent", indent},
    {"join", join},
    {"lower", lower},
    {"replace", replace},
    {"safe", safe},
    {"string", string},
    {"title", title},
    {"striptags", striptags},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", upper},
    {"xmlattr", xmlattr},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
};

}  // namespace

Filter find_text_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [name](const FilterEntry& e) { return e.name == name; });
  return found == std::end(kFilters) ? nullptr : found->filter;
}

}  // namespace crest::text::jinja
