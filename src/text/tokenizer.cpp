#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <limits>

#include "text/byte_alphabet.h"
#include "text/tokenizer_tables.h"

namespace crest::text {
namespace {

constexpr std::array<std::string_view, 6> kEndOfGenerationNames = {"<|im_end|>",      "<|endoftext|>", "<|eot_id|>",
                                                                   "<|end_of_text|>", "<|eom_id|>",    "<end_of_turn>"};

bool is_control_type(TokenType type) { return type == TokenType::kControl || type == TokenType::kUnknown; }
bool is_added_type(TokenType type) { return is_control_type(type) || type == TokenType::kUserDefined; }

Status check_id(std::string_view what, TokenId id, size_t count) {
  if (id == kNoToken || (id >= 0 && static_cast<size_t>(id) < count)) return {};
  return make_error(ErrorCode::kInvalidFile, "{} is {}, allowed are 0 to {}", what, id, count - 1);
}

Status check_vocab(const VocabData& vocab) {
  const size_t count = vocab.tokens.size();
  if (count == 0 || count > kMaxVocabEntries) {
    return make_error(ErrorCode::kInvalidFile, "the vocabulary has {} tokens, allowed are 1 to {}", count,
                      kMaxVocabEntries);
  }
  if (vocab.merges.size() > kMaxVocabEntries) {
    return make_error(ErrorCode::kInvalidFile, "the vocabulary has {} merges, at most {} are allowed",
                      vocab.merges.size(), kMaxVocabEntries);
  }
  if (vocab.types.size() != count) {
    return make_error(ErrorCode::kInvalidFile, "the vocabulary has {} tokens and {} token types", count,
                      vocab.types.size());
  }
  for (size_t i = 0; i < count; ++i) {
    if (vocab.types[i] < TokenType::kNormal || vocab.types[i] > TokenType::kByte) {
      return make_error(ErrorCode::kInvalidFile, "the type of token {} is {}, allowed are 1 to 6", i,
                        static_cast<int>(vocab.types[i]));
    }
  }
  if (!vocab.scores.empty() && vocab.scores.size() != count) {
    return make_error(ErrorCode::kInvalidFile, "the vocabulary has {} tokens and {} scores", count,
                      vocab.scores.size());
  }
  const std::array<std::pair<std::string_view, TokenId>, 5> ids = {{{"the BOS id", vocab.bos_id},
                                                                    {"the EOS id", vocab.eos_id},
                                                                    {"the EOT id", vocab.eot_id},
                                                                    {"the id of unknown text", vocab.unk_id},
                                                                    {"the padding id", vocab.pad_id}}};
  for (const auto& [what, id] : ids) CREST_RETURN_IF_ERROR(check_id(what, id, count));
  for (const TokenId id : vocab.end_of_generation_ids)
    CREST_RETURN_IF_ERROR(check_id("an end-of-generation id", id, count));
  for (const AddedToken& added : vocab.added) {
    CREST_RETURN_IF_ERROR(check_id("the id of an added token", added.id, count));
    if (added.id == kNoToken) return make_error(ErrorCode::kInvalidFile, "an added token has no id");
  }
  return {};
}

/// A vocabulary of words that nothing can be merged to encodes everything byte by byte, unnoticed.
Status check_has_merges(const VocabData& vocab) {
  if (!vocab.merges.empty() || vocab.kind != VocabKind::kByteLevelBpe || vocab.ignore_merges) return {};
  size_t words = 0;
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    words += vocab.types[i] == TokenType::kNormal && !vocab.tokens[i].empty() &&
             decode_character(vocab.tokens[i]).length < vocab.tokens[i].size();
  }
  if (words == 0) return {};
  return make_error(ErrorCode::kInvalidFile,
                    "the vocabulary has {} tokens of several bytes but no merges that make them", words);
}

std::string bytes_of_token(const VocabData& vocab, size_t id) {
  const std::string& name = vocab.tokens[id];
  const TokenType type = vocab.types[id];
  if (is_control_type(type)) return name;
  if (vocab.kind == VocabKind::kByteLevelBpe) {
    if (type == TokenType::kUserDefined) return name;
    return bytes_of_letters(name).value_or(name);
  }
  if (const auto byte = byte_of_hex_token(name); byte && type == TokenType::kByte)
    return std::string(1, static_cast<char>(*byte));
  std::string text;
  for (size_t i = 0; i < name.size();) {
    const bool is_space = std::string_view(name).substr(i).starts_with(kSpaceMark);
    text.push_back(is_space ? ' ' : name[i]);
    i += is_space ? kSpaceMark.size() : 1;
  }
  return text;
}

std::vector<TokenId> end_of_generation(const VocabData& vocab, const TokenMap& names) {
  std::vector<TokenId> ids = vocab.end_of_generation_ids;
  ids.push_back(vocab.eos_id);
  ids.push_back(vocab.eot_id);
  for (const std::string_view name : kEndOfGenerationNames) {
    const TokenId id = names.find(name);
    if (id != kNoToken && is_added_type(vocab.types[static_cast<size_t>(id)])) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::erase(ids, kNoToken);
  return ids;
}

/// Splits the added tokens into those looked for in raw text and those in normalised text.
Status find_added(const VocabData& vocab, const Rewriter& normalizer, std::vector<AddedTokenFinder::Entry>& raw,
                  std::vector<AddedTokenFinder::Entry>& normalized) {
  std::vector<bool> listed(vocab.tokens.size(), false);
  const auto add = [&](const AddedToken& token) -> Status {
    const auto index = static_cast<size_t>(token.id);
    const std::string& name = vocab.tokens[index];
    if (listed[index]) return {};
    listed[index] = true;
    if (name.empty()) return make_error(ErrorCode::kInvalidFile, "added token {} is empty", token.id);
    if (name.size() > kMaxAddedTokenBytes) {
      return make_error(ErrorCode::kInvalidFile, "added token {} is {} bytes long, at most {} are allowed", token.id,
                        name.size(), kMaxAddedTokenBytes);
    }
    const bool is_control = is_control_type(vocab.types[index]);
    if (is_control || !token.normalized || normalizer.empty()) {
      raw.push_back({name, token, is_control});
      return {};
    }
    CREST_TRY(std::string text, normalizer.apply(name, true));
    if (!text.empty()) normalized.push_back({std::move(text), token, false});
    return {};
  };
  for (const AddedToken& token : vocab.added) CREST_RETURN_IF_ERROR(add(token));
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (is_added_type(vocab.types[i])) CREST_RETURN_IF_ERROR(add({.id = static_cast<TokenId>(i)}));
  }
  return {};
}

bool has_step(std::span<const RewriteStep> steps, RewriteStep::Kind kind) {
  return std::any_of(steps.begin(), steps.end(), [kind](const RewriteStep& step) { return step.kind == kind; });
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Tables> tables) : tables_(std::move(tables)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::create(VocabData data) {
  CREST_RETURN_IF_ERROR(check_vocab(data));
  CREST_RETURN_IF_ERROR(check_has_merges(data));
  auto tables = std::make_unique<Tables>();
  tables->vocab = std::move(data);
  const VocabData& vocab = tables->vocab;
  tables->names = map_of_names(vocab.tokens);
  tables->text_offsets.push_back(0);
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    tables->text_bytes += bytes_of_token(vocab, i);
    tables->text_offsets.push_back(tables->text_bytes.size());
  }
  CREST_TRY(tables->normalizer, Rewriter::create(vocab.normalizer));
  CREST_TRY(tables->pre_rewrite, Rewriter::create(vocab.pre_rewrite));
  CREST_TRY(tables->pre_tokenizer, PreTokenizer::create(vocab.splits));
  tables->end_of_generation = end_of_generation(vocab, tables->names);
  // Where the unknown token is also the one that ends a text, unknown bytes must not turn into it.
  const bool unknown_ends =
      std::ranges::binary_search(tables->end_of_generation, vocab.unk_id) || vocab.unk_id == vocab.bos_id;
  CREST_TRY(tables->bpe, BpeModel::create(vocab, tables->names, unknown_ends ? kNoToken : vocab.unk_id));
  std::vector<AddedTokenFinder::Entry> raw, normalized;
  CREST_RETURN_IF_ERROR(find_added(vocab, tables->normalizer, raw, normalized));
  tables->added = AddedTokenFinder(std::move(raw));
  tables->normalized_added = AddedTokenFinder(std::move(normalized));
  tables->strips_start = vocab.add_space_prefix && vocab.kind == VocabKind::kSentencePieceBpe;
  tables->strips_after_added = tables->strips_start &&
                               !has_step(vocab.pre_rewrite, RewriteStep::Kind::kPrependAtStart) &&
                               !has_step(vocab.normalizer, RewriteStep::Kind::kPrependAtStart);
  return Tokenizer(std::move(tables));
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const std::pair<size_t, size_t> everything{0, text.size()};
  std::vector<TokenId> ids;
  CREST_RETURN_IF_ERROR(
      tables_->encode(text, TrustedRanges(&everything, options.parse_special ? 1 : 0), options.add_special, ids));
  return ids;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::span<const Segment> segments, bool add_special) const {
  std::string text;
  std::vector<std::pair<size_t, size_t>> trusted;
  for (const Segment& segment : segments) {
    const size_t begin = text.size();
    text += segment.text;
    if (!segment.trusted || segment.text.empty()) continue;
    if (!trusted.empty() && trusted.back().second == begin) {
      trusted.back().second = text.size();
    } else {
      trusted.emplace_back(begin, text.size());
    }
  }
  std::vector<TokenId> ids;
  CREST_RETURN_IF_ERROR(tables_->encode(text, trusted, add_special, ids));
  return ids;
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(tables_->vocab.tokens.size()); }
std::string_view Tokenizer::token_text(TokenId id) const {
  return is_valid(id) ? tables_->text(id) : std::string_view();
}
std::string_view Tokenizer::token_name(TokenId id) const {
  return is_valid(id) ? std::string_view(tables_->vocab.tokens[static_cast<size_t>(id)]) : std::string_view();
}
TokenType Tokenizer::token_type(TokenId id) const { return is_valid(id) ? tables_->type(id) : TokenType::kUnused; }

std::optional<TokenId> Tokenizer::find(std::string_view name) const {
  const TokenId id = tables_->names.find(name);
  return id == kNoToken ? std::nullopt : std::optional(id);
}

bool Tokenizer::is_control(TokenId id) const { return is_valid(id) && is_control_type(tables_->type(id)); }
bool Tokenizer::is_end_of_generation(TokenId id) const {
  return std::ranges::binary_search(tables_->end_of_generation, id);
}
std::span<const TokenId> Tokenizer::end_of_generation_ids() const { return tables_->end_of_generation; }
TokenId Tokenizer::bos_id() const { return tables_->vocab.bos_id; }
TokenId Tokenizer::eos_id() const { return tables_->vocab.eos_id; }
bool Tokenizer::adds_bos() const { return tables_->vocab.add_bos && tables_->vocab.bos_id != kNoToken; }
const VocabData& Tokenizer::vocab() const { return tables_->vocab; }

}  // namespace crest::text
