#include "text/hf_pipeline.h"

#include <array>
#include <utility>

#include "text/bpe.h"

namespace crest::text {
namespace {

constexpr int kMaxNesting = 8;
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Error unsupported(std::string_view path, std::string_view type, std::string_view known) {
  return make_error(ErrorCode::kUnsupported, "tokenizer.json: {} \"{}\" is not supported (supported: {})", path, type,
                    known);
}

Result<std::string> type_of(json::element element, std::string_view path) {
  const auto type = string_member(element, "type");
  if (!type) return make_error(ErrorCode::kInvalidFile, "tokenizer.json: {} has no \"type\"", path);
  return std::string(*type);
}

/// Calls visit for each element of the array `key` of a Sequence.
template <typename Visit>
Status for_each_in_sequence(json::element sequence, std::string_view key, std::string_view path, int nesting,
                            Visit visit) {
  if (nesting >= kMaxNesting)
    return make_error(ErrorCode::kInvalidFile, "tokenizer.json: {} is nested too deeply", path);
  json::array parts;
  const auto list = member(sequence, key);
  if (!list || list->get(parts) != simdjson::SUCCESS) {
    return make_error(ErrorCode::kInvalidFile, "tokenizer.json: {}.{} is not an array", path, key);
  }
  for (const json::element part : parts) CREST_RETURN_IF_ERROR(visit(part));
  return {};
}

/// {"Regex": "..."} or {"String": "..."}.
Result<std::pair<std::string, bool>> read_pattern(json::element owner, std::string_view path) {
  const auto pattern = member(owner, "pattern");
  if (pattern) {
    if (const auto regex = string_member(*pattern, "Regex")) return std::pair(std::string(*regex), true);
    if (const auto text = string_member(*pattern, "String")) return std::pair(std::string(*text), false);
  }
  return make_error(ErrorCode::kInvalidFile, "tokenizer.json: {}.pattern has neither \"Regex\" nor \"String\"", path);
}

Status read_normalizer(json::element element, int nesting, std::vector<RewriteStep>& steps) {
  using Kind = RewriteStep::Kind;
  constexpr std::string_view kPath = "normalizer";
  CREST_TRY(const std::string type, type_of(element, kPath));
  if (type == "Sequence") {
    return for_each_in_sequence(element, "normalizers", kPath, nesting,
                                [&](json::element part) { return read_normalizer(part, nesting + 1, steps); });
  }
  RewriteStep step;
  if (type == "NFC") {
    step.kind = Kind::kNfc;
  } else if (type == "NFD") {
    step.kind = Kind::kNfd;
  } else if (type == "Prepend") {
    step.kind = Kind::kPrepend;
    CREST_TRY(step.content, string_or(element, "prepend", "tokenizer.json: normalizer", ""));
  } else if (type == "Replace") {
    step.kind = Kind::kReplace;
    CREST_TRY(auto pattern, read_pattern(element, kPath));
    std::tie(step.pattern, step.is_regex) = std::move(pattern);
    CREST_TRY(step.content, string_or(element, "content", "tokenizer.json: normalizer", ""));
  } else {
    return unsupported(kPath, type, "NFC, NFD, Prepend, Replace, Sequence");
  }
  steps.push_back(std::move(step));
  return {};
}

class PreTokenizerReader {
 public:
  PreTokenizerReader(VocabData& vocab, PipelineFacts& facts) : vocab_(vocab), facts_(facts) {}

  Status read(json::element element, int nesting) {
    // Not CREST_TRY: g++ 12 takes the moved string for uninitialised.
    const auto type_result = type_of(element, kPath);
    if (!type_result.ok()) return type_result.error();
    const std::string& type = *type_result;
    if (type == "Sequence") {
      return for_each_in_sequence(element, "pretokenizers", kPath, nesting,
                                  [&](json::element part) { return read(part, nesting + 1); });
    }
    if (facts_.byte_level) {
      return make_error(ErrorCode::kUnsupported,
                        "tokenizer.json: pre_tokenizer \"{}\" behind ByteLevel is not supported", type);
    }
    if (type == "ByteLevel") return read_byte_level(element);
    if (type == "Metaspace") return read_metaspace(element);
    if (type == "Split") return read_split(element);
    if (type == "Digits") {
      CREST_TRY(const bool individual, bool_or(element, "individual_digits", kFullPath, false));
      return add_split(individual ? R"(\p{N})" : R"(\p{N}+)", SplitBehavior::kIsolated);
    }
    if (type == "Punctuation") {
      CREST_TRY(const SplitBehavior behavior, read_behavior(element, "Isolated"));
      return add_split(R"([!-/:-@\[-`{-~\p{P}])", behavior);
    }
    if (type == "WhitespaceSplit") return add_split(R"(\s)", SplitBehavior::kRemoved);
    return unsupported(kPath, type, "ByteLevel, Digits, Metaspace, Punctuation, Sequence, Split, WhitespaceSplit");
  }

 private:
  static constexpr std::string_view kPath = "pre_tokenizer";
  static constexpr std::string_view kFullPath = "tokenizer.json: pre_tokenizer";

  Status add_split(std::string_view pattern, SplitBehavior behavior) {
    vocab_.splits.push_back({std::string(pattern), true, behavior, false});
    return {};
  }

  Status add_rewrite(RewriteStep step) {
    if (!vocab_.splits.empty()) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: a step that changes the text behind one that splits it is not supported", kFullPath);
    }
    vocab_.pre_rewrite.push_back(std::move(step));
    return {};
  }

  static Result<SplitBehavior> read_behavior(json::element element, std::string_view fallback) {
    static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames = {
        {{"Isolated", SplitBehavior::kIsolated},
         {"Removed", SplitBehavior::kRemoved},
         {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
         {"MergedWithNext", SplitBehavior::kMergedWithNext},
         {"Contiguous", SplitBehavior::kContiguous}}};
    CREST_TRY(const std::string name, string_or(element, "behavior", kFullPath, fallback));
    for (const auto& [known, behavior] : kNames) {
      if (known == name) return behavior;
    }
    return unsupported("pre_tokenizer.behavior", name,
                       "Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous");
  }

  Status read_split(json::element element) {
    SplitStep step;
    CREST_TRY(auto pattern, read_pattern(element, kPath));
    std::tie(step.pattern, step.is_regex) = std::move(pattern);
    CREST_TRY(step.behavior, read_behavior(element, ""));
    CREST_TRY(step.invert, bool_or(element, "invert", kFullPath, false));
    vocab_.splits.push_back(std::move(step));
    return {};
  }

  Status read_byte_level(json::element element) {
    CREST_TRY(const bool prefix, bool_or(element, "add_prefix_space", kFullPath, true));
    CREST_TRY(const bool use_regex, bool_or(element, "use_regex", kFullPath, true));
    if (prefix) {
      CREST_RETURN_IF_ERROR(
          add_rewrite({.kind = RewriteStep::Kind::kPrependUnlessPresent, .pattern = {}, .content = " "}));
    }
    if (use_regex) CREST_RETURN_IF_ERROR(add_split(kByteLevelPattern, SplitBehavior::kIsolated));
    facts_.byte_level = true;
    return {};
  }

  Status read_metaspace(json::element element) {
    CREST_TRY(const std::string mark, string_or(element, "replacement", kFullPath, kSpaceMark));
    if (mark != kSpaceMark) return unsupported("pre_tokenizer.replacement", mark, kSpaceMark);
    CREST_TRY(const bool old_prefix, bool_or(element, "add_prefix_space", kFullPath, true));
    CREST_TRY(const std::string scheme,
              string_or(element, "prepend_scheme", kFullPath, old_prefix ? "always" : "never"));
    CREST_TRY(const bool split, bool_or(element, "split", kFullPath, true));
    CREST_RETURN_IF_ERROR(add_rewrite({.kind = RewriteStep::Kind::kReplace, .pattern = " ", .content = mark}));
    if (scheme == "always") {
      CREST_RETURN_IF_ERROR(
          add_rewrite({.kind = RewriteStep::Kind::kPrependUnlessPresent, .pattern = {}, .content = mark}));
    } else if (scheme == "first") {
      CREST_RETURN_IF_ERROR(add_rewrite({.kind = RewriteStep::Kind::kPrependAtStart, .pattern = {}, .content = mark}));
    } else if (scheme != "never") {
      return unsupported("pre_tokenizer.prepend_scheme", scheme, "always, first, never");
    }
    if (split) vocab_.splits.push_back({mark, false, SplitBehavior::kMergedWithNext, false});
    facts_.space_mark = true;
    return {};
  }

  VocabData& vocab_;
  PipelineFacts& facts_;
};

Status read_template(json::element element, TemplateTokens& tokens) {
  json::array parts;
  const auto list = member(element, "single");
  if (!list || list->get(parts) != simdjson::SUCCESS) {
    return make_error(ErrorCode::kInvalidFile, "tokenizer.json: post_processor.single is not an array");
  }
  bool behind = false;
  for (const json::element part : parts) {
    if (member(part, "Sequence")) {
      behind = true;
      continue;
    }
    const auto special = member(part, "SpecialToken");
    const auto name = special ? string_member(*special, "id") : std::nullopt;
    if (!name)
      return make_error(ErrorCode::kInvalidFile,
                        "tokenizer.json: post_processor.single has a part that is neither token nor sequence");
    std::string& slot = behind ? tokens.last : tokens.first;
    if (!slot.empty()) {
      return make_error(ErrorCode::kUnsupported,
                        "tokenizer.json: post_processor puts several tokens ({}, {}) on one side, one is supported",
                        slot, *name);
    }
    slot = *name;
  }
  return {};
}

Status read_processor(json::element element, int nesting, TemplateTokens& tokens) {
  constexpr std::string_view kPath = "post_processor";
  CREST_TRY(const std::string type, type_of(element, kPath));
  if (type == "Sequence") {
    return for_each_in_sequence(element, "processors", kPath, nesting,
                                [&](json::element part) { return read_processor(part, nesting + 1, tokens); });
  }
  if (type == "ByteLevel") return {};  // moves offsets only
  if (type == "TemplateProcessing") return read_template(element, tokens);
  return unsupported(kPath, type, "ByteLevel, Sequence, TemplateProcessing");
}

bool puts_space_in_front(std::span<const RewriteStep> steps) {
  for (const RewriteStep& step : steps) {
    const bool prepends = step.kind == RewriteStep::Kind::kPrepend ||
                          step.kind == RewriteStep::Kind::kPrependUnlessPresent ||
                          step.kind == RewriteStep::Kind::kPrependAtStart;
    if (prepends && (step.content == kSpaceMark || step.content == " ")) return true;
  }
  return false;
}

}  // namespace

Result<PipelineFacts> read_pipeline(json::element root, VocabData& vocab) {
  PipelineFacts facts;
  if (const auto normalizer = member(root, "normalizer"))
    CREST_RETURN_IF_ERROR(read_normalizer(*normalizer, 0, vocab.normalizer));
  if (const auto pre = member(root, "pre_tokenizer"))
    CREST_RETURN_IF_ERROR(PreTokenizerReader(vocab, facts).read(*pre, 0));
  for (const RewriteStep& step : vocab.normalizer) {
    facts.space_mark |= step.kind == RewriteStep::Kind::kReplace && step.pattern == " " && step.content == kSpaceMark;
  }
  vocab.add_space_prefix = puts_space_in_front(vocab.normalizer) || puts_space_in_front(vocab.pre_rewrite);
  return facts;
}

Result<TemplateTokens> read_post_processor(json::element root) {
  TemplateTokens tokens;
  if (const auto processor = member(root, "post_processor"))
    CREST_RETURN_IF_ERROR(read_processor(*processor, 0, tokens));
  return tokens;
}

}  // namespace crest::text
