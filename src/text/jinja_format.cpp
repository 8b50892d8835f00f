#include "text/jinja_format.h"

#include <algorithm>

#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

/// "…" % arguments.
class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Value& format, const Value& arguments)
      : runtime_(runtime), format_(format.text()), markup_(format.string().markup), arguments_(arguments) {}

  Text run() {
    const std::string& bytes = format_.bytes();
    runtime_.tick_bytes(bytes.size());
    size_t done = 0;
    for (size_t at = 0; (at = bytes.find('%', done)) != std::string::npos;) {
      out_.append(format_, done, at);
      position_ = at + 1;
      conversion();
      done = position_;
    }
    out_.append(format_, done, bytes.size());
    const bool mapping = arguments_.is(Kind::kDict) || arguments_.is(Kind::kList) || arguments_.is(Kind::kView);
    const bool unused =
        arguments_.is(Kind::kTuple) ? next_ < arguments_.list().items.size() : next_ == 0 && !mapping && !keyed_;
    if (unused) raise(Fault::kType, "not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char take() {
    if (position_ >= format_.size()) raise(Fault::kValue, "incomplete format");
    return format_.bytes()[position_++];
  }

  Value next_argument() {
    if (arguments_.is(Kind::kTuple)) {
      if (next_ >= arguments_.list().items.size()) raise(Fault::kType, "not enough arguments for format string");
      return arguments_.list().items[next_++];
    }
    if (next_++ > 0) raise(Fault::kType, "not enough arguments for format string");
    return arguments_;
  }

  Value keyed_argument() {
    const std::string& bytes = format_.bytes();
    const size_t begin = position_;
    for (int depth = 1; depth > 0;) {
      const char c = position_ < bytes.size() ? bytes[position_++] : '\0';
      if (c == '\0') raise(Fault::kValue, "incomplete format key");
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    if (!arguments_.is(Kind::kDict)) raise(Fault::kType, "format requires a mapping");
    keyed_ = true;
    const std::string key = bytes.substr(begin, position_ - 1 - begin);
    const Value* value = arguments_.dict().find(std::string_view(key));
    if (value == nullptr) raise(Fault::kLookup, "'{}'", key);
    return *value;
  }

  Int number(char& c) {
    if (c == '*') {
      const Value value = next_argument();
      if (!value.is_integer()) raise(Fault::kType, "* wants int");
      c = take();
      return value.as_integer();
    }
    Int value = 0;
    for (; c >= '0' && c <= '9'; c = take()) {
      value = value * 10 + (c - '0');
      if (value > INT32_MAX) raise(Fault::kValue, "width too big");
    }
    return value;
  }

  void conversion() {
    runtime_.tick();
    FormatSpec spec;
    spec.align = '>';
    char c = take();
    Value value;
    if (c == '(') {
      value = keyed_argument();
      c = take();
    }
    bool left = false;
    for (; std::string_view("-+ #0").find(c) != std::string_view::npos; c = take()) {
      if (c == '-') left = true;
      if (c == '+') spec.sign = '+';
      if (c == ' ' && spec.sign != '+') spec.sign = ' ';
      if (c == '#') spec.alternate = true;
      if (c == '0') spec.zero = true;
    }
    spec.width = number(c);
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (c == '.') {
      c = take();
      spec.precision = std::max<Int>(number(c), 0);
    }
    while (c == 'l' || c == 'h' || c == 'L') c = take();
    if (c == '%') {
      out_.append("%");
      return;
    }
    if (value.missing()) value = next_argument();
    if (left) spec.align = '<';
    convert(c, value, spec, spec.zero && !left);
  }

  void convert(char c, const Value& value, FormatSpec spec, bool zeros) {
    spec.type = c;
    switch (c) {
      case 's':
      case 'r':
      case 'a':
        return text(c, value, spec);
      case 'c':
        return text(c, value, spec);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(value, spec, zeros);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        if (value.undefined()) value.undefined_object().fail();
        if (!value.is_number()) raise(Fault::kType, "must be real number, not {}", type_name(value));
        return finish(Value::real(value.as_real()), spec, zeros);
      }
      default:
        raise(Fault::kValue, "unsupported format character '{}' (0x{:x}) at index {}", c, static_cast<unsigned char>(c),
              position_ - 1);
    }
  }

  void finish(const Value& value, FormatSpec spec, bool zeros) {
    if (zeros) {
      spec.fill = '0';
      spec.align = '=';
    }
    append(Text(format_number(runtime_, value, spec)));
  }

  void integer(const Value& value, FormatSpec spec, bool zeros) {
    if (value.undefined()) value.undefined_object().fail();
    const bool exact = spec.type == 'x' || spec.type == 'X' || spec.type == 'o';
    if (!value.is_integer() && (exact || !value.is(Kind::kFloat))) {
      raise(Fault::kType, "%{} format: {} is required, not {}", spec.type, exact ? "an integer" : "a real number",
            type_name(value));
    }
    const Int whole = value.is_integer() ? value.as_integer() : integer_from(value.as_real());
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    if (spec.precision) {
      // printf's precision of integers: at least so many digits.
      const int base = spec.type == 'o' ? 8 : exact ? 16 : 10;
      if (*spec.precision > kMaxPrecision)
        raise(Fault::kBudget, "a precision of more than {} is not allowed", kMaxPrecision);
      std::string shown = digits(whole, base);
      if (spec.type == 'X')
        std::transform(shown.begin(), shown.end(), shown.begin(), [](char c) { return c >= 'a' ? c - 32 : c; });
      const size_t wanted = static_cast<size_t>(*spec.precision);
      if (shown.size() < wanted) shown.insert(0, wanted - shown.size(), '0');
      std::string head = whole < 0 ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
      if (spec.alternate && exact) head += std::string("0") + spec.type;
      const Int missing = spec.width - static_cast<Int>(head.size() + shown.size());
      runtime_.check_string(missing);
      const std::string fill(missing > 0 ? static_cast<size_t>(missing) : 0, zeros ? '0' : ' ');
      append(Text(spec.align == '<' ? head + shown + fill : zeros ? head + fill + shown : fill + head + shown));
      return;
    }
    finish(Value::integer(whole), spec, zeros);
  }

  void text(char c, const Value& value, FormatSpec spec) {
    Text shown;
    if (c == 'c') {
      if (value.is_string() && value.string().length() == 1) {
        shown = value.text();
      } else if (value.is_integer() && value.as_integer() >= 0 && value.as_integer() <= 0x10FFFF) {
        std::string one;
        append_char(one, static_cast<char32_t>(value.as_integer()));
        shown = Text(std::move(one));
      } else {
        raise(Fault::kType, "%c requires int or char");
      }
    } else {
      shown = c == 's' ? (markup_ ? runtime_.escape(value).text() : runtime_.str(value)) : runtime_.repr(value);
      if (c != 's' && markup_) shown = runtime_.escape(runtime_.string(shown)).text();
    }
    if (c != 'c' && spec.precision)
      shown = shown.slice(0, byte_position(shown.bytes(), static_cast<size_t>(*spec.precision)));
    runtime_.tick_chars(shown.size());
    const Int missing = spec.width - static_cast<Int>(count_chars(shown.bytes()));
    runtime_.check_string(missing);
    const std::string fill(missing > 0 ? static_cast<size_t>(missing) : 0, ' ');
    if (spec.align == '>') out_.append(fill);
    append(shown);
    if (spec.align == '<') out_.append(fill);
  }

  void append(const Text& text) {
    runtime_.tick_bytes(text.size());
    runtime_.check_string(static_cast<Int>(out_.size() + text.size()));
    out_.append(text);
  }

  Runtime& runtime_;
  const Text& format_;
  bool markup_;
  const Value& arguments_;
  size_t position_ = 0;
  size_t next_ = 0;
  bool keyed_ = false;
  Text out_;
};

/// str.format.
class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Args& args, bool map_only, bool markup)
      : runtime_(runtime), args_(args), map_only_(map_only), markup_(markup) {}

  Text run(const Text& format, int depth = 2) {
    if (depth < 0) raise(Fault::kValue, "Max string recursion exceeded");
    const std::string& bytes = format.bytes();
    runtime_.tick_chars(bytes.size());
    Text out;
    size_t done = 0;
    for (size_t at = 0; (at = bytes.find_first_of("{}", done)) != std::string::npos;) {
      runtime_.tick();
      out.append(format, done, at);
      if (at + 1 < bytes.size() && bytes[at + 1] == bytes[at]) {
        out.append(format, at, at + 1);
        done = at + 2;
        continue;
      }
      if (bytes[at] == '}') raise(Fault::kValue, "Single '}}' encountered in format string");
      const size_t end = field_end(bytes, at + 1);
      const Text part = field(format.slice(at + 1, end), depth);
      runtime_.tick_bytes(part.size());
      runtime_.check_string(static_cast<Int>(out.size() + part.size()));
      out.append(part);
      done = end + 1;
    }
    out.append(format, done, bytes.size());
    return out;
  }

 private:
  static size_t field_end(const std::string& bytes, size_t position) {
    if (position >= bytes.size()) raise(Fault::kValue, "Single '{{' encountered in format string");
    bool bracket = false;
    for (int depth = 1; position < bytes.size(); ++position) {
      const char c = bytes[position];
      if (c == '[') bracket = true;
      if (c == ']') bracket = false;
      if (bracket) continue;
      if (c == '{') ++depth;
      if (c == '}' && --depth == 0) return position;
    }
    raise(Fault::kValue, "expected '}}' before end of string");
  }

  Text field(const Text& field, int depth) {
    runtime_.tick();
    const std::string& bytes = field.bytes();
    size_t end = 0;
    for (bool bracket = false; end < bytes.size(); ++end) {
      const char c = bytes[end];
      if (c == '[') bracket = true;
      if (c == ']') bracket = false;
      if (!bracket && (c == ':' || c == '!')) break;
      if (!bracket && c == '{') raise(Fault::kValue, "unexpected '{{' in field name");
    }
    Value value = lookup(std::string_view(bytes).substr(0, end));
    if (end < bytes.size() && bytes[end] == '!') {
      if (end + 1 >= bytes.size()) raise(Fault::kValue, "end of string while looking for conversion specifier");
      const char conversion = bytes[end + 1];
      if (conversion != 's' && conversion != 'r' && conversion != 'a') {
        raise(Fault::kValue, "Unknown conversion specifier '{}'", conversion);
      }
      value = runtime_.string(conversion == 's' ? runtime_.str(value) : runtime_.repr(value));
      end += 2;
      if (end < bytes.size() && bytes[end] != ':') raise(Fault::kValue, "expected ':' after conversion specifier");
    }
    const Text spec = end < bytes.size() ? run(field.slice(end + 1, bytes.size()), depth - 1) : Text();
    if (!markup_) return format_value(runtime_, value, spec.bytes());
    if (value.is_string() && value.string().markup) {
      if (!spec.empty()) raise(Fault::kValue, "Unsupported format specification for Markup.");
      return value.text();
    }
    return runtime_.escape(runtime_.string(format_value(runtime_, value, spec.bytes()))).text();
  }

  Value lookup(std::string_view name) {
    size_t position = std::min(name.find_first_of(".["), name.size());
    Value value = argument(name.substr(0, position));
    while (position < name.size()) {
      if (name[position] == '.') {
        const size_t end = std::min(name.find_first_of(".[", position + 1), name.size());
        if (end == position + 1) raise(Fault::kValue, "Empty attribute in format string");
        value = runtime_.getattr(value, runtime_.string(name.substr(position + 1, end - position - 1)));
        position = end;
        continue;
      }
      if (name[position] != '[') raise(Fault::kValue, "Only '.' or '[' may follow ']' in format field specifier");
      const size_t end = name.find(']', position);
      if (end == std::string_view::npos) raise(Fault::kValue, "Missing ']' in format string");
      const std::string_view key = name.substr(position + 1, end - position - 1);
      if (key.empty()) raise(Fault::kValue, "Empty attribute in format string");
      value = runtime_.getitem(value, is_number(key) ? Value::integer(*parse_integer(key, 10)) : runtime_.string(key));
      position = end + 1;
    }
    return value;
  }

  static bool is_number(std::string_view text) {
    return !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  Value argument(std::string_view name) {
    if (map_only_) {
      const Value* found = args_.positional[0].dict().find(name);
      if (found == nullptr) raise(Fault::kLookup, "'{}'", name);
      return *found;
    }
    if (name.empty() || is_number(name)) {
      if (name.empty() ? manual_ : automatic_ > 0) {
        raise(Fault::kValue, "cannot switch between manual field specification and automatic field numbering");
      }
      manual_ = !name.empty();
      const size_t index = name.empty() ? automatic_++ : static_cast<size_t>(*parse_integer(name, 10));
      if (index >= args_.positional.size()) {
        raise(Fault::kLookup, "Replacement index {} out of range for positional args tuple", index);
      }
      return args_.positional[index];
    }
    for (const auto& [known, value] : args_.named) {
      if (known == name) return value;
    }
    raise(Fault::kLookup, "'{}'", name);
  }

  Runtime& runtime_;
  const Args& args_;
  bool map_only_;
  bool markup_;
  bool manual_ = false;
  size_t automatic_ = 0;
};

}  // namespace

Value Runtime::percent_format(const Value& format, const Value& arguments) {
  return string(PercentFormatter(*this, format, arguments).run(), format.string().markup);
}

Value Runtime::brace_format(const Value& format, const Args& args, bool map_only) {
  const bool markup = format.string().markup;
  return string(BraceFormatter(*this, args, map_only, markup).run(format.text()), markup);
}

}  // namespace crest::text::jinja
