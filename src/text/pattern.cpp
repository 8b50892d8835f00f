#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"

#include <pcre2.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>

namespace crest::text {
namespace {

constexpr uint32_t kMatchLimit = 20'000'000;
constexpr uint32_t kHeapLimitKib = 65'536;
constexpr size_t kJitStackMax = 4u << 20;
constexpr size_t kMaxClasses = 256;

struct Deleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

/// What a match needs beside the code; one per thread.
struct MatchScratch {
  Owned<pcre2_match_data> data{pcre2_match_data_create(1, nullptr)};
  Owned<pcre2_jit_stack> stack{pcre2_jit_stack_create(64u << 10, kJitStackMax, nullptr)};
  Owned<pcre2_match_context> context{pcre2_match_context_create(nullptr)};
  MatchScratch() {
    if (!context) return;
    pcre2_set_match_limit(context.get(), kMatchLimit);
    pcre2_set_heap_limit(context.get(), kHeapLimitKib);
    if (stack) pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
  }
};

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

/// The coarsest partition of the code points that every set is a union of.
struct Partition {
  std::vector<std::pair<char32_t, uint8_t>> runs;  ///< first code point, class
  std::vector<std::vector<bool>> members;          ///< [class][set]
};

Result<Partition> partition(std::span<const CodeSet> sets) {
  struct Edge {
    char32_t code;
    uint32_t set;
  };
  std::vector<Edge> edges;
  for (uint32_t i = 0; i < sets.size(); ++i) {
    for (const auto& [first, last] : sets[i].ranges()) {
      edges.push_back({first, i});
      edges.push_back({last + 1, i});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.code < b.code; });
  Partition result;
  std::map<std::vector<bool>, uint8_t> known;
  std::vector<bool> inside(sets.size(), false);
  size_t edge = 0;
  for (char32_t start = 0; start <= kLastCodePoint;) {
    for (; edge < edges.size() && edges[edge].code == start; ++edge) inside[edges[edge].set] = !inside[edges[edge].set];
    if (!known.contains(inside)) {
      if (known.size() == kMaxClasses) {
        return make_error(ErrorCode::kUnsupported, "it tells more than {} kinds of characters apart", kMaxClasses);
      }
      known.emplace(inside, static_cast<uint8_t>(result.members.size()));
      result.members.push_back(inside);
    }
    result.runs.emplace_back(start, known.at(inside));
    start = edge < edges.size() ? edges[edge].code : kLastCodePoint + 1;
  }
  return result;
}

/// The set as a PCRE2 class over class numbers.
std::string byte_class(const Partition& parts, size_t set) {
  std::string text = "[";
  bool any = false;
  for (size_t i = 0; i < parts.members.size(); ++i) {
    if (!parts.members[i][set]) continue;
    any = true;
    size_t end = i;
    while (end + 1 < parts.members.size() && parts.members[end + 1][set]) ++end;
    text += fmt::format("\\x{:02x}-\\x{:02x}", i, end);
    i = end;
  }
  return any ? text + "]" : "(?!)";
}

}  // namespace

Result<Pattern> Pattern::compile(std::string_view pattern) {
  CREST_TRY(const PatternSyntax syntax, parse_pattern(pattern));
  return build(syntax, pattern);
}

Result<Pattern> Pattern::compile_literal(std::string_view text) {
  CREST_TRY(const PatternSyntax syntax, literal_pattern(text));
  return build(syntax, text);
}

Result<Pattern> Pattern::build(const PatternSyntax& syntax, std::string_view source) {
  auto parts = partition(syntax.sets);
  if (!parts.ok()) return std::move(parts).error().with_context(fmt::format("pattern \"{}\"", source));
  std::vector<std::string> classes;
  for (size_t i = 0; i < syntax.sets.size(); ++i) classes.push_back(byte_class(*parts, i));
  std::string translated;
  for (const auto& item : syntax.items) translated += item.set < 0 ? item.text : classes[static_cast<size_t>(item.set)];

  Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
  if (!context) return make_error(ErrorCode::kOutOfMemory, "pattern \"{}\": no memory to compile it", source);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                   PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NO_AUTO_CAPTURE,
                                   &error, &offset, context.get());
  if (code == nullptr) return make_error(ErrorCode::kUnsupported, "pattern \"{}\": {}", source, pcre2_message(error));
  // Where the system forbids executable memory, pcre2_match falls back to its interpreter.
  (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);

  Pattern result;
  result.code_ = {code, [](const pcre2_code* c) { pcre2_code_free(const_cast<pcre2_code*>(c)); }};
  result.classes_ = CodeTable(parts->runs);
  for (char32_t i = 0; i < 128; ++i) result.ascii_classes_[i] = result.classes_[i];
  return result;
}

void Pattern::classify(std::string_view text, std::vector<uint8_t>& classes) const {
  const size_t old = classes.size();
  classes.resize(old + text.size());
  uint8_t* out = classes.data() + old;
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x80) {
      *out++ = ascii_classes_[byte];
      ++i;
      continue;
    }
    const auto [code, length] = decode_character(text.substr(i));
    *out++ = classes_[code];
    i += length;
  }
  classes.resize(static_cast<size_t>(out - classes.data()));
}

Result<bool> Pattern::find(ClassText text, size_t start, Match& match) const {
  thread_local MatchScratch scratch;
  if (!scratch.data || !scratch.context) return make_error(ErrorCode::kOutOfMemory, "no memory for matching a pattern");
  static constexpr uint8_t kNothing = 0;
  const uint8_t* subject = text.empty() ? &kNothing : text.data();
  const int count = pcre2_match(code_.get(), subject, text.size(), start, PCRE2_NO_UTF_CHECK, scratch.data.get(),
                                scratch.context.get());
  if (count == PCRE2_ERROR_NOMATCH) return false;
  if (count < 0) {
    return make_error(ErrorCode::kResourceExhausted, "a pattern of the tokeniser gave up at character {}: {}", start,
                      pcre2_message(count));
  }
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(scratch.data.get());
  match = {range[0], range[1]};
  return true;
}

}  // namespace crest::text
