#include "text/vocab_data.h"

#include <algorithm>
#include <array>

#include "core/log.h"
#include "text/bpe.h"
#include "text/token_map.h"

namespace crest::text {
namespace {

// Patterns as the models' own tokenizer.json files have them.
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";

struct KnownPreTokenizer {
  std::string_view name;  ///< the first of a kind is the one that is written
  std::array<std::string_view, 4> patterns;
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

constexpr KnownPreTokenizer kDefault = {"default", {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}};
constexpr KnownPreTokenizer kGpt2Steps = {"gpt-2", {kGpt2}};
constexpr KnownPreTokenizer kLlama3Steps = {"llama-bpe", {kLlama3}, false, true, true};
constexpr KnownPreTokenizer kQwen2Steps = {"qwen2", {kQwen2}, true};
constexpr KnownPreTokenizer kQwen35Steps = {"qwen35", {kQwen35}, true};
constexpr KnownPreTokenizer kSmollmSteps = {"smollm", {kDigit, kGpt2}};

constexpr std::array<const KnownPreTokenizer*, 6> kKnown = {&kGpt2Steps,   &kLlama3Steps, &kQwen2Steps,
                                                            &kQwen35Steps, &kSmollmSteps, &kDefault};

struct Alias {
  std::string_view name;
  const KnownPreTokenizer* steps;
};
constexpr std::array<Alias, 22> kAliases = {{{"gpt2", &kGpt2Steps},
                                             {"phi-2", &kGpt2Steps},
                                             {"mpt", &kGpt2Steps},
                                             {"olmo", &kGpt2Steps},
                                             {"jais", &kGpt2Steps},
                                             {"trillion", &kGpt2Steps},
                                             {"modern-bert", &kGpt2Steps},
                                             {"llama3", &kLlama3Steps},
                                             {"llama-v3", &kLlama3Steps},
                                             {"falcon3", &kLlama3Steps},
                                             {"pixtral", &kLlama3Steps},
                                             {"lfm2", &kLlama3Steps},
                                             {"deepseek-r1-qwen", &kQwen2Steps},
                                             {"hunyuan", &kQwen2Steps},
                                             {"megrez", &kQwen2Steps},
                                             {"stablelm2", &kQwen2Steps},
                                             {"starcoder", &kSmollmSteps},
                                             {"refact", &kSmollmSteps},
                                             {"command-r", &kSmollmSteps},
                                             {"codeshell", &kSmollmSteps},
                                             {"exaone", &kSmollmSteps},
                                             {"minerva-7b", &kSmollmSteps}}};

const KnownPreTokenizer* find_steps(std::string_view name) {
  for (const KnownPreTokenizer* steps : kKnown) {
    if (steps->name == name) return steps;
  }
  const auto alias =
      std::find_if(kAliases.begin(), kAliases.end(), [&](const Alias& entry) { return entry.name == name; });
  return alias == kAliases.end() ? nullptr : alias->steps;
}

std::vector<SplitStep> split_steps(const KnownPreTokenizer& known) {
  std::vector<SplitStep> steps;
  for (const std::string_view pattern : known.patterns) {
    if (!pattern.empty()) steps.push_back({std::string(pattern), true, SplitBehavior::kIsolated, false});
  }
  return steps;
}

void set_sentencepiece(VocabData& vocab) {
  vocab.byte_fallback = true;
  vocab.add_bos = true;
  if (vocab.bos_id == kNoToken) vocab.bos_id = 1;
  if (vocab.eos_id == kNoToken) vocab.eos_id = 2;
  if (vocab.unk_id == kNoToken) vocab.unk_id = 0;
  set_space_prefix(vocab, true);
}

}  // namespace

Result<VocabKind> vocab_kind_from_gguf(std::string_view model) {
  if (model == "gpt2") return VocabKind::kByteLevelBpe;
  if (model == "llama") return VocabKind::kSentencePieceBpe;
  return make_error(ErrorCode::kUnsupported, "tokenizer.ggml.model is \"{}\", supported are \"gpt2\" and \"llama\"",
                    model);
}

void set_gguf_pretokenizer(VocabData& vocab, std::string_view name) {
  vocab.pre_name = name;
  if (vocab.kind == VocabKind::kSentencePieceBpe) return set_sentencepiece(vocab);
  const KnownPreTokenizer* known = find_steps(name);
  if (known == nullptr) {
    log_warning(
        "tokenizer.ggml.pre is \"{}\", which is not known: text is split as for \"default\" and may give other tokens "
        "than the model was trained on",
        name);
    known = &kDefault;
  }
  vocab.splits = split_steps(*known);
  vocab.normalizer.clear();
  if (known->nfc) vocab.normalizer.push_back({.kind = RewriteStep::Kind::kNfc, .pattern = {}, .content = {}});
  vocab.ignore_merges = known->ignore_merges;
  vocab.add_bos = known->add_bos;
}

void set_space_prefix(VocabData& vocab, bool add_space_prefix) {
  vocab.add_space_prefix = add_space_prefix;
  if (vocab.kind != VocabKind::kSentencePieceBpe) return;
  vocab.normalizer.clear();
  if (add_space_prefix)
    vocab.normalizer.push_back({.kind = RewriteStep::Kind::kPrepend, .pattern = {}, .content = " "});
  vocab.normalizer.push_back({.kind = RewriteStep::Kind::kReplace, .pattern = " ", .content = std::string(kSpaceMark)});
}

std::string gguf_pretokenizer_name(const VocabData& vocab) {
  const std::vector<RewriteStep> nfc = {{.kind = RewriteStep::Kind::kNfc, .pattern = {}, .content = {}}};
  for (const KnownPreTokenizer* known : kKnown) {
    const bool same = vocab.splits == split_steps(*known) && vocab.pre_rewrite.empty() &&
                      vocab.ignore_merges == known->ignore_merges &&
                      vocab.normalizer == (known->nfc ? nfc : std::vector<RewriteStep>{});
    if (same) return std::string(known->name);
  }
  return "";
}

Result<std::vector<Merge>> resolve_merges(std::span<const std::string> tokens,
                                          std::span<const std::string_view> merges) {
  if (merges.size() > kMaxVocabEntries) {
    return make_error(ErrorCode::kInvalidFile, "{} merges, at most {} are allowed", merges.size(), kMaxVocabEntries);
  }
  const TokenMap names = map_of_names(tokens);
  std::vector<Merge> result;
  result.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view line = merges[rank];
    const size_t space = line.find(' ', 1);
    if (line.empty() || space == std::string_view::npos || space + 1 == line.size()) {
      return make_error(ErrorCode::kInvalidFile, "merge {} is \"{}\", expected two tokens with a space between them",
                        rank, line);
    }
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    const Merge merge{names.find(left), names.find(right)};
    if (merge.left == kNoToken || merge.right == kNoToken) {
      return make_error(ErrorCode::kInvalidFile, "merge {} is \"{}\", but \"{}\" is not in the vocabulary", rank, line,
                        merge.left == kNoToken ? left : right);
    }
    result.push_back(merge);
  }
  return result;
}

Result<std::vector<std::string>> merge_lines(const VocabData& vocab) {
  std::vector<std::string> lines;
  lines.reserve(vocab.merges.size());
  for (const auto [left, right] : vocab.merges) {
    const auto count = static_cast<TokenId>(vocab.tokens.size());
    if (left < 0 || right < 0 || left >= count || right >= count) {
      return make_error(ErrorCode::kInvalidFile, "a merge refers to the ids {} and {}, the vocabulary has {} tokens",
                        left, right, count);
    }
    const std::string& first = vocab.tokens[static_cast<size_t>(left)];
    const std::string& second = vocab.tokens[static_cast<size_t>(right)];
    if (first.find(' ') != std::string::npos || second.find(' ') != std::string::npos) {
      return make_error(ErrorCode::kUnsupported,
                        "the merge of \"{}\" and \"{}\" cannot be written to GGUF: it contains a space", first, second);
    }
    lines.push_back(first + " " + second);
  }
  return lines;
}

}  // namespace crest::text
