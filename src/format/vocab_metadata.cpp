#include "format/vocab_metadata.h"

#include <algorithm>

#include "core/log.h"

namespace crest::format {
namespace {

using text::kNoToken;
using text::TokenId;
using text::TokenType;
using text::VocabData;
using text::VocabKind;

const std::string kPrefix = "tokenizer.ggml.";
constexpr const char* kJsonKey = "tokenizer.huggingface.json";
constexpr int64_t kMaxId = (int64_t{1} << 31) - 1;
constexpr int64_t kMinusOne = 0xffffffff;  // -1 as u32: writers' way to say "none"

// Special ids of a file, and where they go.
struct IdField {
  const char* key;
  TokenId VocabData::* field;
};
constexpr IdField kIds[] = {{"bos_token_id", &VocabData::bos_id},
                            {"eos_token_id", &VocabData::eos_id},
                            {"eot_token_id", &VocabData::eot_id},
                            {"unknown_token_id", &VocabData::unk_id},
                            {"padding_token_id", &VocabData::pad_id}};

Result<TokenId> read_id(const Metadata& m, const std::string& key) {
  CREST_TRY(const int64_t id, m.integer_or(key, -1, -1, kMinusOne));
  if (id == kMinusOne) return kNoToken;
  if (id > kMaxId) return m.error(ErrorCode::kInvalidFile, "{} is {}, allowed is -1 to {}", key, id, kMaxId);
  return static_cast<TokenId>(id);
}

Status read_tokens(const Metadata& m, VocabData& vocab) {
  CREST_TRY(const auto tokens, m.strings(kPrefix + "tokens"));
  if (tokens.size() > text::kMaxVocabEntries)
    return m.error(ErrorCode::kInvalidFile, "tokenizer.ggml.tokens has {} entries, at most {} are allowed",
                   tokens.size(), text::kMaxVocabEntries);
  vocab.tokens.assign(tokens.begin(), tokens.end());
  vocab.types.assign(tokens.size(), TokenType::kNormal);
  if (m.contains(kPrefix + "token_type")) {
    CREST_TRY(const auto types, m.integers(kPrefix + "token_type", 0, 6));
    if (types.size() != tokens.size())
      return m.error(ErrorCode::kInvalidFile,
                     "tokenizer.ggml.token_type has {} entries, expected {} as there are tokens", types.size(),
                     tokens.size());
    // 0 is "undefined": such tokens are never special.
    std::ranges::transform(types, vocab.types.begin(),
                           [](int64_t type) { return type == 0 ? TokenType::kNormal : static_cast<TokenType>(type); });
  }
  if (m.contains(kPrefix + "scores")) {
    CREST_TRY(vocab.scores, m.numbers(kPrefix + "scores"));
    if (vocab.scores.size() != tokens.size())
      return m.error(ErrorCode::kInvalidFile, "tokenizer.ggml.scores has {} entries, expected {} as there are tokens",
                     vocab.scores.size(), tokens.size());
  }
  return {};
}

Status read_ends(const Metadata& m, VocabData& vocab) {
  // eom ("end of message") ends a turn as well; the arrays are later additions.
  CREST_TRY(const TokenId eom, read_id(m, kPrefix + "eom_token_id"));
  if (eom != kNoToken) vocab.end_of_generation_ids.push_back(eom);
  for (const std::string& key : {kPrefix + "eos_token_ids", std::string("crest.end_of_generation_ids")}) {
    if (!m.contains(key)) continue;
    CREST_TRY(const auto ids, m.integers(key, 0, kMaxId));
    for (const int64_t id : ids) vocab.end_of_generation_ids.push_back(static_cast<TokenId>(id));
  }
  return {};
}

Status read_templates(const Metadata& m, VocabData& vocab) {
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  CREST_TRY(vocab.chat_template, m.string_or("tokenizer.chat_template", ""));
  for (const auto& [key, value] : m.entries()) {
    if (!key.starts_with(kNamed)) continue;
    CREST_TRY(std::string text, m.string(key));
    vocab.named_chat_templates.emplace_back(key.substr(kNamed.size()), std::move(text));
  }
  return {};
}

// Which score leads SentencePiece to the merges of a tokenizer.json: its pairs are ranked by the score of what they
// make.
Result<std::vector<float>> scores_from_merges(const VocabData& vocab) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < vocab.tokens.size(); ++i) ids.emplace(vocab.tokens[i], i);
  const auto last = -static_cast<float>(vocab.merges.size()) - 1;
  std::vector<float> scores(vocab.tokens.size(), last);
  for (size_t rank = vocab.merges.size(); rank-- > 0;) {
    const auto& merge = vocab.merges[rank];
    const auto in_range = [&](TokenId id) { return id >= 0 && static_cast<size_t>(id) < vocab.tokens.size(); };
    if (!in_range(merge.left) || !in_range(merge.right))
      return make_error(ErrorCode::kInvalidFile, "merge {} refers to no token", rank);
    const std::string text =
        vocab.tokens[static_cast<size_t>(merge.left)] + vocab.tokens[static_cast<size_t>(merge.right)];
    if (const auto at = ids.find(text); at != ids.end()) scores[at->second] = -static_cast<float>(rank);
  }
  for (size_t i = 0; i < scores.size(); ++i) {
    if (vocab.types[i] != TokenType::kNormal) scores[i] = 0;
  }
  return scores;
}

// GGUF's name for the same splits, whatever happens to the text before; "default" when there is none.
std::string nearest_pre_name(const VocabData& vocab) {
  for (const char* name : {"llama-bpe", "qwen2", "qwen35", "gpt-2", "smollm"}) {
    VocabData candidate;
    text::set_gguf_pretokenizer(candidate, name);
    if (candidate.splits == vocab.splits) return name;
  }
  return "default";
}

// The steps that have no place in GGUF's own keys, from the tokenizer.json that convert put beside them.
Status read_exact_steps(const Metadata& m, VocabData& vocab) {
  CREST_TRY(const std::string json, m.string(kJsonKey));
  text::HfTokenizerFiles files;
  files.tokenizer_json = json;
  auto exact = text::vocab_from_tokenizer_json(files);
  if (!exact.ok()) return std::move(exact).error().with_context(m.source() + ": " + kJsonKey);
  const size_t count = exact->tokens.size();
  if (exact->kind != vocab.kind || count > vocab.tokens.size() ||
      !std::equal(exact->tokens.begin(), exact->tokens.end(), vocab.tokens.begin()))
    return m.error(ErrorCode::kInvalidFile, "{} has other tokens than tokenizer.ggml.tokens", kJsonKey);
  vocab.added = std::move(exact->added);
  vocab.normalizer = std::move(exact->normalizer);
  vocab.pre_rewrite = std::move(exact->pre_rewrite);
  vocab.splits = std::move(exact->splits);
  vocab.pre_name.clear();
  vocab.ignore_merges = exact->ignore_merges;
  vocab.last_merge_wins = exact->last_merge_wins;
  return {};
}

}  // namespace

Result<VocabData> vocab_from_metadata(const Metadata& m) {
  CREST_TRY(const std::string model, m.string(kPrefix + "model"));
  VocabData vocab;
  auto kind = text::vocab_kind_from_gguf(model);
  if (!kind.ok()) return std::move(kind).error().with_context(m.source());
  vocab.kind = *kind;
  CREST_RETURN_IF_ERROR(read_tokens(m, vocab));
  for (const IdField& id : kIds) {
    CREST_TRY(vocab.*id.field, read_id(m, kPrefix + id.key));
  }
  CREST_RETURN_IF_ERROR(read_ends(m, vocab));
  CREST_TRY(const std::string pre, m.string_or(kPrefix + "pre", "default"));
  text::set_gguf_pretokenizer(vocab, pre);
  CREST_TRY(vocab.add_bos, m.boolean_or(kPrefix + "add_bos_token", vocab.add_bos));
  CREST_TRY(vocab.add_eos, m.boolean_or(kPrefix + "add_eos_token", vocab.add_eos));
  if (m.contains(kPrefix + "add_space_prefix")) {
    CREST_TRY(const bool space, m.boolean_or(kPrefix + "add_space_prefix", false));
    text::set_space_prefix(vocab, space);
  }
  if (m.contains(kPrefix + "merges")) {
    CREST_TRY(const auto lines, m.strings(kPrefix + "merges"));
    if (lines.size() > text::kMaxVocabEntries)
      return m.error(ErrorCode::kInvalidFile, "tokenizer.ggml.merges has {} entries, at most {} are allowed",
                     lines.size(), text::kMaxVocabEntries);
    const std::vector<std::string_view> views(lines.begin(), lines.end());
    auto merges = text::resolve_merges(vocab.tokens, views);
    if (!merges.ok()) return std::move(merges).error().with_context(m.source() + ": tokenizer.ggml.merges");
    vocab.merges = *std::move(merges);
  }
  CREST_RETURN_IF_ERROR(read_templates(m, vocab));
  if (m.contains(kJsonKey)) CREST_RETURN_IF_ERROR(read_exact_steps(m, vocab));
  return vocab;
}

Status vocab_to_metadata(const VocabData& vocab, std::string_view tokenizer_json, Metadata& m) {
  const bool byte_level = vocab.kind == VocabKind::kByteLevelBpe;
  m.set(kPrefix + "model", Value::string(byte_level ? "gpt2" : "llama"));
  if (byte_level) {
    std::string pre = vocab.pre_name;
    if (pre.empty()) {
      if (tokenizer_json.empty())
        return make_error(ErrorCode::kUnsupported,
                          "the pre-tokeniser is none that GGUF has a name for, so the file would split text wrongly");
      pre = nearest_pre_name(vocab);
      log_warning("GGUF has no name for this pre-tokeniser: Crest will read it exactly, other programs as \"{}\"", pre);
      m.set(kJsonKey, Value::string(std::string(tokenizer_json)));
    }
    m.set(kPrefix + "pre", Value::string(std::move(pre)));
  } else {
    m.set(kPrefix + "pre", Value::string("default"));
  }
  m.set(kPrefix + "tokens", Value::strings(vocab.tokens));
  std::vector<int32_t> types;
  for (const TokenType type : vocab.types) types.push_back(static_cast<int32_t>(type));
  if (byte_level) {
    m.set(kPrefix + "token_type", Value::i32s(types));
    CREST_TRY(auto lines, text::merge_lines(vocab));
    m.set(kPrefix + "merges", Value::strings(std::move(lines)));
  } else {
    CREST_TRY(const auto scores, vocab.scores.empty() ? scores_from_merges(vocab) : vocab.scores);
    m.set(kPrefix + "scores", Value::f32s(scores));
    m.set(kPrefix + "token_type", Value::i32s(types));
    m.set(kPrefix + "add_space_prefix", Value::boolean(vocab.add_space_prefix));
  }
  // llama.cpp knows two ids that end a turn; a further one of ours fills the second when the files name none.
  std::vector<int32_t> ends;
  for (const TokenId id : vocab.end_of_generation_ids) {
    if (id != vocab.eos_id && id != vocab.eot_id && std::ranges::find(ends, id) == ends.end()) ends.push_back(id);
  }
  for (const IdField& field : kIds) {
    TokenId id = vocab.*field.field;
    if (field.field == &VocabData::eot_id && id == kNoToken && !ends.empty()) id = ends.front();
    if (id != kNoToken) m.set(kPrefix + field.key, Value::u32(static_cast<uint32_t>(id)));
  }
  if (!ends.empty()) m.set("crest.end_of_generation_ids", Value::i32s(ends));
  m.set(kPrefix + "add_bos_token", Value::boolean(vocab.add_bos));
  m.set(kPrefix + "add_eos_token", Value::boolean(vocab.add_eos));
  if (!vocab.chat_template.empty()) m.set("tokenizer.chat_template", Value::string(vocab.chat_template));
  std::vector<std::string> names;
  for (const auto& [name, text] : vocab.named_chat_templates) {
    m.set("tokenizer.chat_template." + name, Value::string(text));
    names.push_back(name);
  }
  if (!names.empty()) m.set("tokenizer.chat_templates", Value::strings(std::move(names)));
  return {};
}

Status pad_vocab(VocabData& vocab, int64_t rows, std::string_view source) {
  const auto wanted = static_cast<size_t>(rows);
  if (vocab.tokens.size() > wanted)
    return make_error(ErrorCode::kInvalidFile, "{}: the tokenizer has {} tokens, but the embedding has {} rows", source,
                      vocab.tokens.size(), rows);
  for (size_t i = vocab.tokens.size(); i < wanted; ++i) {
    vocab.tokens.push_back(fmt::format("[PAD{}]", i));
    vocab.types.push_back(TokenType::kUnused);
    if (!vocab.scores.empty()) vocab.scores.push_back(0);
  }
  return {};
}

}  // namespace crest::format
