#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "text/jinja_number.h"
#include "text/jinja_unicode.h"

namespace crest::text::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperators = {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

std::string normalise_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

/// White space as Python's \s: `position` moves behind it.
void skip_space(std::string_view text, size_t& position) {
  while (position < text.size()) {
    size_t after = position;
    if (!is_space(next_char(text, after))) return;
    position = after;
  }
}

std::string_view without_trailing_space(std::string_view text) {
  size_t keep = 0;
  for (size_t position = 0; position < text.size();) {
    if (!is_space(next_char(text, position))) keep = position;
  }
  return text.substr(0, keep);
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), text_(source_) {}

  std::vector<Token> run() {
    while (position_ < text_.size()) root();
    emit(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string message) const { throw SyntaxFault(line_, std::move(message)); }

  Token& emit(TokenKind kind, std::string text = {}) {
    tokens_.push_back({kind, line_, std::move(text), 0, 0});
    return tokens_.back();
  }

  bool at(std::string_view what) const { return text_.substr(position_).starts_with(what); }

  void advance(size_t to) {
    line_ += static_cast<uint32_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(position_),
                                              text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    position_ = to;
  }

  /// Text up to the next tag, and the tag.
  void root() {
    size_t tag = position_;
    while (true) {
      tag = text_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= text_.size()) {
        emit_data(text_.substr(position_));
        advance(text_.size());
        return;
      }
      const char second = text_[tag + 1];
      if (second == '{' || second == '%' || second == '#') break;
      ++tag;
    }
    const char type = text_[tag + 1];
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
    const bool signed_tag = sign == '-' || sign == '+';
    data_before(tag, signed_tag ? sign : '\0', type != '{');
    advance(tag + (signed_tag ? 3 : 2));
    if (type == '#') {
      comment();
    } else if (type == '%' && raw_follows()) {
      raw();
    } else {
      emit(type == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin);
      expression(type == '{');
    }
    line_starting_ = position_ > 0 && text_[position_ - 1] == '\n';
  }

  void emit_data(std::string_view data) {
    if (!data.empty()) emit(TokenKind::kData, std::string(data));
  }

  /// Data in front of a tag, after whitespace control.
  void data_before(size_t tag, char sign, bool strippable) {
    std::string_view data = text_.substr(position_, tag - position_);
    if (sign == '-') {
      data = without_trailing_space(data);
    } else if (sign != '+' && strippable) {
      const size_t newline = data.rfind('\n');
      const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
      if (line_start > 0 || line_starting_) {
        const std::string_view indent = data.substr(line_start);
        if (!indent.empty() && without_trailing_space(indent).empty()) data = data.substr(0, line_start);
      }
    }
    emit_data(data);
  }

  /// Behind the end of a tag: "-" strips what follows, "+" keeps it, else one newline goes (trim_blocks).
  void after_tag(char sign, bool trim) {
    size_t to = position_;
    if (sign == '-') {
      skip_space(text_, to);
    } else if (sign != '+' && trim && at("\n")) {
      ++to;
    }
    advance(to);
  }

  void comment() {
    const size_t end = text_.find("#}", position_);
    if (end == std::string_view::npos) fail("Missing end of comment tag");
    // A comment that is only a sign ("{#-#}") has it read as the opening's.
    const char sign = end > position_ ? text_[end - 1] : '\0';
    advance(end + 2);
    after_tag(sign == '-' || sign == '+' ? sign : '\0', true);
  }

  bool raw_follows() const {
    size_t cursor = position_;
    skip_space(text_, cursor);
    if (!text_.substr(cursor).starts_with("raw")) return false;
    cursor += 3;
    skip_space(text_, cursor);
    return text_.substr(cursor).starts_with("%}") || text_.substr(cursor).starts_with("-%}");
  }

  void raw() {
    advance(text_.find("raw", position_) + 3);
    size_t cursor = position_;
    skip_space(text_, cursor);
    const bool strip = text_[cursor] == '-';
    advance(cursor + (strip ? 3 : 2));
    after_tag(strip ? '-' : '\0', false);
    line_starting_ = position_ > 0 && text_[position_ - 1] == '\n';
    for (size_t tag = text_.find("{%", position_); tag != std::string_view::npos; tag = text_.find("{%", tag + 1)) {
      const char open_sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
      const bool signed_tag = open_sign == '-' || open_sign == '+';
      size_t end = tag + (signed_tag ? 3 : 2);
      skip_space(text_, end);
      if (!text_.substr(end).starts_with("endraw")) continue;
      end += 6;
      skip_space(text_, end);
      const char close_sign = end < text_.size() && (text_[end] == '-' || text_[end] == '+') ? text_[end] : '\0';
      if (close_sign != '\0') ++end;
      if (!text_.substr(end).starts_with("%}")) continue;
      data_before(tag, signed_tag ? open_sign : '\0', true);
      advance(end + 2);
      after_tag(close_sign, true);
      return;
    }
    fail("Missing end of raw directive");
  }

  /// Tokens of an expression or statement up to its closing tag.
  void expression(bool variable) {
    const std::string_view close = variable ? "}}" : "%}";
    std::string brackets;
    while (position_ < text_.size()) {
      size_t cursor = position_;
      skip_space(text_, cursor);
      advance(cursor);
      if (position_ >= text_.size()) break;
      if (brackets.empty()) {
        const bool sign = text_[position_] == '-' || (text_[position_] == '+' && !variable);
        if (text_.substr(position_ + (sign ? 1 : 0)).starts_with(close)) {
          emit(variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd);
          const char s = sign ? text_[position_] : '\0';
          advance(position_ + (sign ? 3 : 2));
          after_tag(s, !variable);
          return;
        }
      }
      token(brackets);
    }
  }

  void token(std::string& brackets) {
    const char c = text_[position_];
    if (c >= '0' && c <= '9') return number();
    if (c == '\'' || c == '"') return string_literal(c);
    size_t end = position_;
    while (end < text_.size()) {
      size_t after = end;
      const char32_t letter = next_char(text_, after);
      if (letter != '_' && !is_alnum(letter)) break;
      end = after;
    }
    if (end > position_) {
      emit(TokenKind::kName, std::string(text_.substr(position_, end - position_)));
      return advance(end);
    }
    for (const std::string_view op : kOperators) {
      if (!at(op)) continue;
      balance(op[0], brackets);
      emit(TokenKind::kOperator, std::string(op));
      return advance(position_ + op.size());
    }
    std::string shown;
    size_t cursor = position_;
    append_char(shown, next_char(text_, cursor));
    fail(fmt::format("unexpected char '{}' at {}", shown, position_));
  }

  void balance(char op, std::string& brackets) {
    if (op == '(') brackets += ')';
    if (op == '[') brackets += ']';
    if (op == '{') brackets += '}';
    if (op != ')' && op != ']' && op != '}') return;
    if (brackets.empty()) fail(fmt::format("unexpected '{}'", op));
    if (brackets.back() != op) fail(fmt::format("unexpected '{}', expected '{}'", op, brackets.back()));
    brackets.pop_back();
  }

  /// (\d+_)*\d+ from `cursor`; false if there is no digit.
  bool skip_digits(size_t& cursor) const {
    const auto digit = [&](size_t i) { return i < text_.size() && text_[i] >= '0' && text_[i] <= '9'; };
    if (!digit(cursor)) return false;
    while (digit(cursor) || (cursor < text_.size() && text_[cursor] == '_' && digit(cursor + 1))) ++cursor;
    return true;
  }

  std::optional<size_t> float_end() const {
    if (position_ > 0 && text_[position_ - 1] == '.') return std::nullopt;
    size_t cursor = position_;
    skip_digits(cursor);
    bool is_float = false;
    if (cursor < text_.size() && text_[cursor] == '.') {
      size_t fraction = cursor + 1;
      if (skip_digits(fraction)) {
        cursor = fraction;
        is_float = true;
      }
    }
    if (cursor < text_.size() && (text_[cursor] | 0x20) == 'e') {
      size_t exponent = cursor + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (skip_digits(exponent)) return exponent;
    }
    return is_float ? std::optional(cursor) : std::nullopt;
  }

  void number() {
    if (const auto end = float_end()) {
      std::string text(text_.substr(position_, *end - position_));
      std::erase(text, '_');
      emit(TokenKind::kFloat).real = parse_float(text).value_or(0);
      return advance(*end);
    }
    size_t end = position_;
    const char base =
        text_[position_] == '0' && position_ + 1 < text_.size() ? static_cast<char>(text_[position_ + 1] | 0x20) : '\0';
    const std::string_view allowed = base == 'x'   ? "0123456789abcdefABCDEF"
                                     : base == 'o' ? "01234567"
                                     : base == 'b' ? "01"
                                                   : "";
    const auto digit = [&](size_t i, std::string_view set) {
      return i < text_.size() && set.find(text_[i]) != std::string_view::npos;
    };
    const auto run = [&](size_t cursor, std::string_view set) {
      while (digit(cursor, set) || (cursor < text_.size() && text_[cursor] == '_' && digit(cursor + 1, set))) ++cursor;
      return cursor;
    };
    if (!allowed.empty()) end = run(position_ + 2, allowed);
    if (allowed.empty() || end == position_ + 2) end = run(position_, text_[position_] == '0' ? "0" : "0123456789");
    std::string text(text_.substr(position_, end - position_));
    std::erase(text, '_');
    try {
      emit(TokenKind::kInteger).integer = parse_integer(text, 0).value_or(0);
    } catch (const TemplateFault& fault) {
      fail(fault.message());
    }
    advance(end);
  }

  void string_literal(char quote) {
    size_t end = position_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail(fmt::format("unexpected char '{}' at {}", quote, position_));
    std::string value = unescape(text_.substr(position_ + 1, end - position_ - 1));
    emit(TokenKind::kString, std::move(value));
    advance(end + 1);
  }

  char32_t hexadecimal(std::string_view text, size_t& position, size_t count) const {
    char32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto digit = position < text.size() ? parse_integer(text.substr(position, 1), 16) : std::nullopt;
      if (!digit) fail(fmt::format("truncated \\{} escape", count == 2 ? "xXX" : count == 4 ? "uXXXX" : "UXXXXXXXX"));
      value = value * 16 + static_cast<char32_t>(*digit);
      ++position;
    }
    if (value > 0x10FFFF) fail("illegal Unicode character");
    return value;
  }

  /// Escapes of a Python string.
  std::string unescape(std::string_view text) const {
    constexpr std::string_view kLetters = "abfnrtv\\'\"";
    constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    std::string out;
    for (size_t i = 0; i < text.size();) {
      if (text[i] != '\\') {
        out += text[i++];
        continue;
      }
      const char c = text[++i];
      ++i;
      if (const size_t known = kLetters.find(c); known != std::string_view::npos) {
        out += kMeanings[known];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        append_scalar(out, hexadecimal(text, i, c == 'x' ? 2 : c == 'u' ? 4 : 8));
      } else if (c >= '0' && c <= '7') {
        char32_t value = static_cast<char32_t>(c - '0');
        for (int more = 0; more < 2 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++more) {
          value = value * 8 + static_cast<char32_t>(text[i++] - '0');
        }
        append_scalar(out, value);
      } else if (c == 'N') {
        fail("\\N{...} escapes are not supported");
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  /// A lone surrogate cannot be written as UTF-8.
  static void append_scalar(std::string& out, char32_t c) { append_char(out, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c); }

  std::string source_;
  std::string_view text_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(normalise_newlines(source)).run(); }

}  // namespace crest::text::jinja
