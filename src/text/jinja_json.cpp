#include "text/jinja_json.h"

#include <algorithm>
#include <cmath>

#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

/// json.dumps of Python.
class Dumper {
 public:
  Dumper(Runtime& runtime, bool ensure_ascii, const std::optional<std::string>& indent, std::string_view item_separator,
         std::string_view key_separator, bool sort_keys)
      : runtime_(runtime),
        ensure_ascii_(ensure_ascii),
        indent_(indent),
        item_separator_(item_separator),
        key_separator_(key_separator),
        sort_keys_(sort_keys) {}

  void value(const Value& value, int level) {
    runtime_.tick();
    runtime_.check_string(static_cast<Int>(out.size()));
    switch (value.kind()) {
      case Kind::kNone:
        out += "null";
        break;
      case Kind::kBool:
        out += value.as_bool() ? "true" : "false";
        break;
      case Kind::kInt:
        out += integer_text(value.as_integer());
        break;
      case Kind::kFloat:
        out += real(value.as_real());
        break;
      case Kind::kString:
        string(value.text());
        break;
      case Kind::kList:
      case Kind::kTuple:
        array(value.list().items, level);
        break;
      case Kind::kDict:
        object(value.dict(), level);
        break;
      default:
        raise(Fault::kType, "Object of type {} is not JSON serializable", type_name(value));
    }
  }

  std::string out;
  bool trusted = true;

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_text(value);
  }

  void line(int level) {
    if (!indent_) return;
    out += '\n';
    for (int i = 0; i < level; ++i) out += *indent_;
    runtime_.check_string(static_cast<Int>(out.size()));
  }

  void array(const std::vector<Value>& items, int level) {
    if (items.empty()) {
      out += "[]";
      return;
    }
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += item_separator_;
      line(level + 1);
      value(items[i], level + 1);
    }
    line(level);
    out += ']';
  }

  void object(const DictObject& dict, int level) {
    if (dict.items.empty()) {
      out += "{}";
      return;
    }
    std::vector<size_t> order(dict.items.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (sort_keys_) {
      order = stable_order(order.size(),
                           [&](size_t a, size_t b) { return runtime_.less(dict.items[a].first, dict.items[b].first); });
    }
    out += '{';
    bool first = true;
    for (const size_t index : order) {
      if (!first) out += item_separator_;
      first = false;
      line(level + 1);
      key(dict.items[index].first);
      out += key_separator_;
      value(dict.items[index].second, level + 1);
    }
    line(level);
    out += '}';
  }

  void key(const Value& key) {
    switch (key.kind()) {
      case Kind::kString:
        string(key.text());
        break;
      case Kind::kNone:
        out += "\"null\"";
        break;
      case Kind::kBool:
        out += key.as_bool() ? "\"true\"" : "\"false\"";
        break;
      case Kind::kInt:
        out += fmt::format("\"{}\"", integer_text(key.as_integer()));
        break;
      case Kind::kFloat:
        out += fmt::format("\"{}\"", real(key.as_real()));
        break;
      default:
        raise(Fault::kType, "keys must be str, int, float, bool or None, not {}", type_name(key));
    }
  }

  void unit(uint32_t code) { out += fmt::format("\\u{:04x}", code); }

  void string(const Text& text) {
    runtime_.tick_chars(text.size());
    trusted = trusted && text.trusted();
    out += '"';
    for (size_t position = 0; position < text.size();) {
      const char32_t c = next_char(text.bytes(), position);
      switch (c) {
        case '"':
          out += "\\\"";
          continue;
        case '\\':
          out += "\\\\";
          continue;
        case '\n':
          out += "\\n";
          continue;
        case '\r':
          out += "\\r";
          continue;
        case '\t':
          out += "\\t";
          continue;
        case '\f':
          out += "\\f";
          continue;
        case '\b':
          out += "\\b";
          continue;
        default:
          break;
      }
      if (c < 0x20 || (ensure_ascii_ && c >= 0x7F && c < 0x10000)) {
        unit(c);
      } else if (ensure_ascii_ && c >= 0x10000) {
        unit(0xD800 + ((c - 0x10000) >> 10));
        unit(0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        append_char(out, c);
      }
    }
    out += '"';
  }

  Runtime& runtime_;
  bool ensure_ascii_;
  const std::optional<std::string>& indent_;
  std::string_view item_separator_, key_separator_;
  bool sort_keys_;
};

}  // namespace

std::string Runtime::to_json(const Value& value, bool ensure_ascii, const std::optional<std::string>& indent,
                             std::string_view item_separator, std::string_view key_separator, bool sort_keys,
                             bool& trusted) {
  Dumper dumper(*this, ensure_ascii, indent, item_separator, key_separator, sort_keys);
  dumper.value(value, 0);
  trusted = dumper.trusted;
  return std::move(dumper.out);
}

void measure_json(const nlohmann::ordered_json& json, JsonSize& size, uint32_t depth) {
  ++size.values;
  if (json.is_string()) size.bytes += json.get_ref<const std::string&>().size();
  if (!json.is_structured()) return;
  if (depth + 1 >= kMaxNesting)
    raise(Fault::kBudget, "messages, tools and arguments may be nested {} deep", kMaxNesting - 1);
  for (const auto& item : json.items()) {
    if (json.is_object()) size.bytes += item.key().size();
    measure_json(item.value(), size, depth + 1);
  }
}

Value from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool trusted) {
  switch (json.type()) {
    case nlohmann::json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case nlohmann::json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case nlohmann::json::value_t::number_unsigned:
      return Value::integer(static_cast<Int>(json.get<uint64_t>()));
    case nlohmann::json::value_t::number_float:
      return Value::real(json.get<double>());
    case nlohmann::json::value_t::string:
      return runtime.string(Text(json.get<std::string>(), trusted));
    case nlohmann::json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(runtime, item, trusted));
      return runtime.list(std::move(items));
    }
    case nlohmann::json::value_t::object: {
      auto* dict = runtime.make<DictObject>();
      for (const auto& item : json.items()) {
        dict->set(runtime.string(Text(item.key(), trusted)), from_json(runtime, item.value(), trusted));
      }
      return runtime.dict(dict);
    }
    default:
      return Value::none();
  }
}

}  // namespace crest::text::jinja
