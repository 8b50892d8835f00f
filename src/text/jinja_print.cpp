#include "text/jinja_loop.h"
#include "text/jinja_number.h"
#include "text/jinja_runtime.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

void append_hex(std::string& out, char letter, char32_t c, int width) {
  out += fmt::format("\\{}{:0{}x}", letter, static_cast<uint32_t>(c), width);
}

/// repr(str): the quote that needs no escape, escapes for what cannot be printed.
std::string python_quoted(std::string_view text) {
  const bool single = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = single ? '"' : '\'';
  std::string out(1, quote);
  for (size_t position = 0; position < text.size();) {
    const char32_t c = next_char(text, position);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if ((char_class(c) & kPrintable) != 0) {
      append_char(out, c);
    } else if (c < 0x100) {
      append_hex(out, 'x', c, 2);
    } else if (c < 0x10000) {
      append_hex(out, 'u', c, 4);
    } else {
      append_hex(out, 'U', c, 8);
    }
  }
  return out += quote;
}

std::string_view escaped(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return {};
  }
}

}  // namespace

Text Runtime::str(const Value& value) {
  if (value.undefined()) return {};
  if (!value.is_string()) return repr(value);
  tick_bytes(value.text().size());
  return value.text();
}

Text Runtime::repr(const Value& value) {
  Text out;
  repr_into(out, value);
  return out;
}

void Runtime::repr_items(Text& out, const std::vector<Value>& items, std::string_view open, std::string_view close) {
  out.append(open);
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ");
    repr_into(out, items[i]);
  }
  out.append(close);
}

void Runtime::repr_into(Text& out, const Value& value) {
  const Depth depth(*this);
  tick();
  check_string(static_cast<Int>(out.size()));
  switch (value.kind()) {
    case Kind::kMissing:
      out.append("missing");
      break;
    case Kind::kUndefined:
      out.append("Undefined");
      break;
    case Kind::kNone:
      out.append("None");
      break;
    case Kind::kBool:
      out.append(value.as_bool() ? "True" : "False");
      break;
    case Kind::kInt:
      out.append(integer_text(value.as_integer()));
      break;
    case Kind::kFloat:
      out.append(float_text(value.as_real()));
      break;
    case Kind::kString: {
      tick_chars(value.text().size());
      if (value.string().markup) out.append("Markup(");
      out.append(value.text().derived(python_quoted(value.bytes())));
      if (value.string().markup) out.append(")");
      break;
    }
    case Kind::kList:
      repr_items(out, value.list().items, "[", "]");
      break;
    case Kind::kTuple:
      repr_items(out, value.list().items, "(", value.list().items.size() == 1 ? ",)" : ")");
      break;
    case Kind::kDict: {
      out.append("{");
      bool first = true;
      for (const auto& [key, item] : value.dict().items) {
        if (!first) out.append(", ");
        first = false;
        repr_into(out, key);
        out.append(": ");
        repr_into(out, item);
      }
      out.append("}");
      break;
    }
    case Kind::kView:
      out.append(type_name(value) + "(");
      repr_items(out, items_of(value), "[", "])");
      break;
    case Kind::kRange: {
      const RangeObject& range = value.range();
      out.append(fmt::format("range({}, {}", integer_text(range.start), integer_text(range.stop)));
      out.append(range.step == 1 ? ")" : fmt::format(", {})", integer_text(range.step)));
      break;
    }
    case Kind::kGenerator:
      out.append(fmt::format("<{} object>", type_name(value)));
      break;
    case Kind::kNamespace: {
      out.append("<Namespace {");
      bool first = true;
      for (const auto& [name, item] : value.name_space().items) {
        if (!first) out.append(", ");
        first = false;
        out.append(Text(python_quoted(name)));
        out.append(": ");
        repr_into(out, item);
      }
      out.append("}>");
      break;
    }
    case Kind::kLoop:
      out.append(fmt::format("<LoopContext {}/{}>", integer_text(as_loop(value).index0() + 1),
                             integer_text(as_loop(value).length(*this))));
      break;
    case Kind::kCallable:
      out.append(value.callable().describe());
      break;
  }
}

Value Runtime::escape(const Value& value) {
  if (value.is_string() && value.string().markup) return value;
  const Text text = str(value);
  tick_chars(text.size());
  Text out;
  size_t done = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view replacement = escaped(text.bytes()[i]);
    if (replacement.empty()) continue;
    tick();
    out.append(text, done, i);
    out.append(replacement, text.slice(i, i + 1).trusted());
    done = i + 1;
  }
  out.append(text, done, text.size());
  return string(std::move(out), true);
}

}  // namespace crest::text::jinja
