#include "text/rewrite.h"

#include "text/normalize.h"
#include "text/unicode.h"

namespace crest::text {
namespace {

constexpr size_t kMaxSteps = 64;
constexpr size_t kMaxContentBytes = 4096;

std::string replace_literal(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, done)) {
    out.append(text.substr(done, at - done)).append(with);
    done = at + what.size();
  }
  return out.append(text.substr(done));
}

Result<std::string> replace_pattern(std::string_view text, const Pattern& pattern, std::string_view with) {
  std::vector<uint8_t> classes;
  pattern.classify(text, classes);
  std::string out;
  size_t character = 0, byte = 0;
  const auto skip_to = [&](size_t target, bool copy) {
    const size_t start = byte;
    for (; character < target; ++character) byte += decode_character(text.substr(byte)).length;
    if (copy) out.append(text.substr(start, byte - start));
  };
  CREST_RETURN_IF_ERROR(pattern.for_each_match(classes, [&](Pattern::Match match) {
    if (match.begin < character) return;
    skip_to(match.begin, true);
    out.append(with);
    skip_to(match.end, false);
  }));
  return out.append(text.substr(byte));
}

}  // namespace

Result<Rewriter> Rewriter::create(std::span<const RewriteStep> steps) {
  if (steps.size() > kMaxSteps) {
    return make_error(ErrorCode::kUnsupported, "{} normaliser steps, at most {} are allowed", steps.size(), kMaxSteps);
  }
  Rewriter result;
  for (const RewriteStep& step : steps) {
    if (step.content.size() > kMaxContentBytes) {
      return make_error(ErrorCode::kUnsupported, "a normaliser inserts {} bytes, at most {} are allowed",
                        step.content.size(), kMaxContentBytes);
    }
    std::optional<Pattern> pattern;
    if (step.kind == RewriteStep::Kind::kReplace) {
      if (step.pattern.empty()) return make_error(ErrorCode::kInvalidFile, "a normaliser replaces an empty pattern");
      if (step.is_regex) {
        CREST_TRY(pattern, Pattern::compile(step.pattern));
      }
    }
    result.steps_.push_back({step, std::move(pattern)});
  }
  return result;
}

Result<std::string> Rewriter::apply(std::string_view text, bool at_start) const {
  std::string current(text);
  const size_t limit = 32 * text.size() + 65536;
  for (const auto& [step, pattern] : steps_) {
    switch (step.kind) {
      case RewriteStep::Kind::kNfc:
        current = normalize_nfc(current);
        break;
      case RewriteStep::Kind::kNfd:
        current = normalize_nfd(current);
        break;
      case RewriteStep::Kind::kReplace:
        if (pattern) {
          CREST_TRY(current, replace_pattern(current, *pattern, step.content));
        } else {
          current = replace_literal(current, step.pattern, step.content);
        }
        break;
      case RewriteStep::Kind::kPrepend:
        if (!current.empty()) current.insert(0, step.content);
        break;
      case RewriteStep::Kind::kPrependAtStart:
        if (!at_start) break;
        [[fallthrough]];
      case RewriteStep::Kind::kPrependUnlessPresent:
        if (!current.empty() && !current.starts_with(step.content)) current.insert(0, step.content);
        break;
    }
    if (current.size() > limit) {
      return make_error(ErrorCode::kResourceExhausted,
                        "the tokeniser's normaliser makes {} bytes of text longer than {}", text.size(), limit);
    }
  }
  return current;
}

}  // namespace crest::text
