#include "text/pattern_syntax.h"

#include <algorithm>
#include <utility>

namespace crest::text {
namespace {

constexpr size_t kMaxPatternBytes = 16384;
constexpr size_t kMaxSets = 512;
constexpr size_t kMaxGroupDepth = 64;

bool is_ascii_letter(char32_t code) { return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z'); }

CodeSet single(char32_t code) { return CodeSet({{code, code}}); }

/// Parses one pattern; position_ is always on a character boundary.
class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(pattern) {}

  Result<PatternSyntax> parse() {
    if (pattern_.size() > kMaxPatternBytes) {
      return make_error(ErrorCode::kUnsupported, "pattern is {} bytes long, at most {} are allowed", pattern_.size(),
                        kMaxPatternBytes);
    }
    ignore_case_.push_back(false);
    while (!at_end()) CREST_RETURN_IF_ERROR(parse_item());
    if (ignore_case_.size() != 1) return fail("a group is not closed");
    return std::move(result_);
  }

  Status add_literal(char32_t code) {
    CodeSet set = single(code);
    if (ignore_case_.back()) CREST_RETURN_IF_ERROR(close_under_case(set));
    return add_set(set);
  }

  PatternSyntax take() { return std::move(result_); }
  void start_literals() { ignore_case_.assign(1, false); }

 private:
  bool at_end() const { return position_ >= pattern_.size(); }
  std::string_view rest() const { return pattern_.substr(position_); }
  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    position_ += text.size();
    return true;
  }

  Error fail(std::string_view what) const {
    return make_error(ErrorCode::kUnsupported, "pattern \"{}\": {} (at byte {})", pattern_, what, position_);
  }

  void add_text(std::string_view text) {
    if (!result_.items.empty() && result_.items.back().set < 0) {
      result_.items.back().text += text;
    } else {
      result_.items.push_back({std::string(text), -1});
    }
  }

  Status add_set(const CodeSet& set) {
    auto known = std::find(result_.sets.begin(), result_.sets.end(), set);
    if (known == result_.sets.end()) {
      if (result_.sets.size() == kMaxSets) return fail("too many different characters and classes");
      known = result_.sets.insert(known, set);
    }
    result_.items.push_back({"", static_cast<int>(known - result_.sets.begin())});
    return {};
  }

  /// "(open) set )".
  Status add_look(std::string_view open, const CodeSet& set) {
    add_text(open);
    CREST_RETURN_IF_ERROR(add_set(set));
    add_text(")");
    return {};
  }

  Result<char32_t> next_character() {
    if (at_end()) return fail("ends in the middle");
    const auto [code, length] = decode_character(rest());
    if (code >= kRawByte) return fail("is not UTF-8");
    position_ += length;
    return code;
  }

  Status parse_item() {
    switch (pattern_[position_]) {
      case '(':
        return parse_group_start();
      case ')':
        if (ignore_case_.size() == 1) return fail("')' without '('");
        ignore_case_.pop_back();
        ++position_;
        add_text(")");
        return {};
      case '|':
      case '*':
      case '+':
      case '?':
        add_text(pattern_.substr(position_++, 1));
        return {};
      case '{':
        return parse_brace();
      case '[':
        return parse_class_item();
      case '\\':
        return parse_escape_item();
      case '.':
        ++position_;
        return add_set(single('\n').complement());
      case '^':
        ++position_;
        return add_look("(?<!", single('\n').complement());
      case '$':
        ++position_;
        return add_look("(?!", single('\n').complement());
      default: {
        CREST_TRY(const char32_t code, next_character());
        return add_literal(code);
      }
    }
  }

  Status parse_group_start() {
    if (ignore_case_.size() > kMaxGroupDepth) return fail("groups are nested too deeply");
    for (const std::string_view open : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (!take(open)) continue;
      ignore_case_.push_back(ignore_case_.back());
      add_text(open);
      return {};
    }
    for (const bool on : {true, false}) {
      const std::string flag = on ? "(?i" : "(?-i";
      if (take(flag + ":")) {
        ignore_case_.push_back(on);
        add_text("(?:");
        return {};
      }
      if (take(flag + ")")) {
        ignore_case_.back() = on;
        return {};
      }
    }
    if (rest().starts_with("(?") || rest().starts_with("(*")) {
      return fail(fmt::format("group \"{}\" is not supported", rest().substr(0, 4)));
    }
    ++position_;
    ignore_case_.push_back(ignore_case_.back());
    add_text("(?:");
    return {};
  }

  /// "{n}", "{n,}", "{,m}" or "{n,m}"; a brace of another form is a literal.
  Status parse_brace() {
    size_t end = position_ + 1;
    const auto digits = [&] {
      const size_t start = end;
      while (end < pattern_.size() && pattern_[end] >= '0' && pattern_[end] <= '9') ++end;
      return pattern_.substr(start, end - start);
    };
    const std::string_view low = digits();
    const bool comma = end < pattern_.size() && pattern_[end] == ',';
    if (comma) ++end;
    const std::string_view high = comma ? digits() : low;
    if (end >= pattern_.size() || pattern_[end] != '}' || (low.empty() && high.empty())) {
      ++position_;
      return add_literal('{');
    }
    position_ = end + 1;
    if (!at_end() && (pattern_[position_] == '+' || (!comma && pattern_[position_] == '?'))) {
      return fail("a quantifier behind {} means different things to different engines");
    }
    add_text(fmt::format("{{{},{}}}", low.empty() ? "0" : low, high));
    return {};
  }

  /// \xHH, \x{H...}, \uHHHH; position_ is behind the letter.
  Result<char32_t> parse_hex(char letter) {
    const bool braced = letter == 'x' && take("{");
    const size_t limit = braced ? 8 : letter == 'x' ? 2 : 4;
    char32_t code = 0;
    size_t count = 0;
    for (; count < limit && !at_end(); ++count, ++position_) {
      const char c = pattern_[position_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) break;
      code = code << 4 | static_cast<char32_t>(digit);
    }
    if (count == 0 || (braced ? !take("}") : count != limit) || code > kLastCodePoint)
      return fail("bad hexadecimal escape");
    return code;
  }

  /// What stands behind a backslash, where it is a character or a class. position_ is behind the backslash.
  Result<CodeSet> parse_escape() {
    CREST_TRY(const char32_t code, next_character());
    switch (code) {
      case 'r':
        return single('\r');
      case 'n':
        return single('\n');
      case 't':
        return single('\t');
      case 'f':
        return single('\f');
      case 'v':
        return single('\v');
      case 'x':
      case 'u': {
        CREST_TRY(const char32_t value, parse_hex(static_cast<char>(code)));
        return single(value);
      }
      case 's':
        return white_space_set();
      case 'S':
        return white_space_set().complement();
      case 'd':
        return *category_set("Nd");
      case 'D':
        return category_set("Nd")->complement();
      case 'w':
        return word_set();
      case 'W':
        return word_set().complement();
      case 'p':
      case 'P':
        return parse_property(code == 'P');
      default:
        break;
    }
    if (is_ascii_letter(code) || (code >= '0' && code <= '9')) {
      return fail(fmt::format("escape \"\\{}\" is not supported", static_cast<char>(code)));
    }
    return single(code);
  }

  Result<CodeSet> parse_property(bool negated) {
    std::string_view name;
    if (take("{")) {
      const size_t end = pattern_.find('}', position_);
      if (end == std::string_view::npos) return fail("property without '}'");
      name = pattern_.substr(position_, end - position_);
      position_ = end + 1;
      if (name.starts_with('^')) {
        negated = !negated;
        name.remove_prefix(1);
      }
    } else {
      if (at_end()) return fail("property without a name");
      name = pattern_.substr(position_++, 1);
    }
    auto set = category_set(name);
    if (!set) return fail(fmt::format("property \"{}\" is not supported (general categories are)", name));
    return negated ? set->complement() : *std::move(set);
  }

  Status parse_escape_item() {
    ++position_;
    if (take("A") || take("z")) {
      add_text(pattern_.substr(position_ - 2, 2));
      return {};
    }
    const bool boundary = take("b");
    if (!boundary && !take("B")) {
      const size_t start = position_;
      CREST_TRY(CodeSet set, parse_escape());
      // An escaped letter of another case is the same literal; classes are closed under case as they are.
      if (ignore_case_.back() && set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].second) {
        if (auto status = close_under_case(set); !status.ok()) {
          position_ = start;
          return status;
        }
      }
      return add_set(set);
    }
    // A word character on one side only (or: on both or none).
    add_text("(?:(?<=");
    CREST_RETURN_IF_ERROR(add_set(word_set()));
    add_text(boundary ? ")(?!" : ")(?=");
    CREST_RETURN_IF_ERROR(add_set(word_set()));
    add_text(")|(?<!");
    CREST_RETURN_IF_ERROR(add_set(word_set()));
    add_text(boundary ? ")(?=" : ")(?!");
    CREST_RETURN_IF_ERROR(add_set(word_set()));
    add_text("))");
    return {};
  }

  /// Adds the other case of every ASCII letter and what Unicode folds to it. Other cased letters: an error.
  Status close_under_case(CodeSet& set) const {
    CodeSet more;
    for (const auto& [first, last] : set.ranges()) {
      for (char32_t code = first; code <= std::min<char32_t>(last, 0x7F); ++code) {
        if (!is_ascii_letter(code)) continue;
        more.add(code ^ 0x20, code ^ 0x20);
        if ((code | 0x20) == 's') more.add(0x17F, 0x17F);    // long s
        if ((code | 0x20) == 'k') more.add(0x212A, 0x212A);  // Kelvin sign
      }
      for (char32_t code = std::max<char32_t>(first, 0x80); code <= last && last - first < 0x10000; ++code) {
        const Category value = category(code);
        if (value >= Category::kLu && value <= Category::kLt) {
          return fail(fmt::format("ignoring the case of U+{:04X} is not supported", static_cast<uint32_t>(code)));
        }
      }
    }
    set.add(more);
    return {};
  }

  Status parse_class_item() {
    CREST_TRY(const CodeSet set, parse_class());
    return add_set(set);
  }

  Result<CodeSet> parse_class() {
    ++position_;
    const bool negated = take("^");
    CodeSet literals, classes;
    for (bool first = true;; first = false) {
      if (at_end()) return fail("a class is not closed");
      if (!first && take("]")) break;
      if (rest().starts_with("[") || rest().starts_with("&&")) {
        return fail("a class inside a class is not supported");
      }
      CREST_TRY(const CodeSet low, parse_class_member());
      const bool is_range = rest().size() > 1 && rest()[0] == '-' && rest()[1] != ']';
      if (!is_range) {
        (is_one(low) ? literals : classes).add(low);
        continue;
      }
      ++position_;
      CREST_TRY(const CodeSet high, parse_class_member());
      if (!is_one(low) || !is_one(high) || low.ranges()[0].first > high.ranges()[0].first)
        return fail("bad range in a class");
      literals.add(low.ranges()[0].first, high.ranges()[0].first);
    }
    if (ignore_case_.back()) CREST_RETURN_IF_ERROR(close_under_case(literals));
    literals.add(classes);
    return negated ? literals.complement() : literals;
  }

  static bool is_one(const CodeSet& set) {
    return set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].second;
  }

  Result<CodeSet> parse_class_member() {
    if (take("\\")) {
      if (take("b")) return single('\b');
      return parse_escape();
    }
    CREST_TRY(const char32_t code, next_character());
    return single(code);
  }

  std::string_view pattern_;
  size_t position_ = 0;
  std::vector<bool> ignore_case_;  ///< per open group
  PatternSyntax result_;
};

}  // namespace

Result<PatternSyntax> parse_pattern(std::string_view pattern) { return Parser(pattern).parse(); }

Result<PatternSyntax> literal_pattern(std::string_view text) {
  if (text.size() > kMaxPatternBytes) {
    return make_error(ErrorCode::kUnsupported, "pattern is {} bytes long, at most {} are allowed", text.size(),
                      kMaxPatternBytes);
  }
  Parser parser(text);
  parser.start_literals();
  for (const char32_t code : decode_characters(text)) {
    if (code >= kRawByte) return make_error(ErrorCode::kInvalidFile, "pattern \"{}\" is not UTF-8", text);
    CREST_RETURN_IF_ERROR(parser.add_literal(code));
  }
  return parser.take();
}

}  // namespace crest::text
