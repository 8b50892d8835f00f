#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"

namespace crest::text {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;
/// More tokens or merges than any real vocabulary has: files that claim more are refused.
inline constexpr uint64_t kMaxVocabEntries = 1u << 24;

enum class VocabKind {
  kByteLevelBpe,      ///< GGUF "gpt2": text is split by patterns, then bytes are merged by rank
  kSentencePieceBpe,  ///< GGUF "llama": spaces become U+2581, characters are merged by score (or by rank when there are
                      ///< merges)
};

/// Numbers as in GGUF's tokenizer.ggml.token_type.
enum class TokenType : uint8_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };

/// tokens[left] and tokens[right] become the token whose text is their concatenation; the index in VocabData::merges is
/// the rank.
struct Merge {
  TokenId left = kNoToken;
  TokenId right = kNoToken;
  bool operator==(const Merge&) const = default;
};

/// How a token that is cut out of the text before anything else is looked for. Whether it is a control token is in its
/// TokenType. Control, user-defined and unknown tokens without an entry are looked for with the default flags.
struct AddedToken {
  TokenId id = kNoToken;
  bool single_word = false;  ///< only where no word character touches it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space behind it along
  bool normalized = false;   ///< looked for in the normalised text (never so for control tokens)
  bool operator==(const AddedToken&) const = default;
};

/// One rewriting of the text between two added tokens.
struct RewriteStep {
  enum class Kind {
    kNfc,
    kNfd,
    kReplace,               ///< every match of `pattern` becomes `content`
    kPrepend,               ///< `content` goes in front of text that is not empty
    kPrependUnlessPresent,  ///< ... unless it already starts with it
    kPrependAtStart,        ///< as kPrependUnlessPresent, but only at the start of the whole input
  };
  Kind kind = Kind::kNfc;
  std::string pattern;
  bool is_regex = false;
  std::string content;
  bool operator==(const RewriteStep&) const = default;
};

/// What happens to a match of a pre-tokeniser's pattern (names as in tokenizer.json).
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// One pre-tokeniser step: each piece of the step before is split again.
struct SplitStep {
  std::string pattern;
  bool is_regex = true;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
  bool operator==(const SplitStep&) const = default;
};

/// Score of a token that merges cannot make: the text of an added token that no two pieces join to.
inline constexpr float kUnmergedScore = -1e9F;

/// All that a Tokenizer needs, whatever file it came from. Nothing in it is checked before Tokenizer::create.
struct VocabData {
  VocabKind kind = VocabKind::kByteLevelBpe;

  /// By id, spelled as in the file ("Ġthe", "▁the", "<0x0A>", "<|im_end|>"). A hole in the ids is an unused token "".
  std::vector<std::string> tokens;
  std::vector<TokenType> types;  ///< same length
  std::vector<float> scores;     ///< same length, or empty; required for SentencePiece without merges. From
                                 ///< kUnmergedScore down: no merge makes the token
  std::vector<Merge> merges;     ///< by rank
  std::vector<AddedToken> added;

  /// GGUF's tokenizer.ggml.pre that stands for the steps below; "" when they match none that we know.
  std::string pre_name;
  std::vector<RewriteStep> normalizer;   ///< on the text between added tokens
  std::vector<RewriteStep> pre_rewrite;  ///< after the normaliser and after `normalized` added tokens were cut out
  std::vector<SplitStep> splits;

  bool ignore_merges = false;     ///< a piece that is itself a token is taken without merging
  bool byte_fallback = false;     ///< characters without a token become <0xXX> tokens (SentencePiece)
  bool fuse_unknown = false;      ///< neighbouring unknown characters become one unknown token
  bool last_merge_wins = false;   ///< of two equal merges the later one counts (tokenizer.json) or the earlier (GGUF)
  bool add_space_prefix = false;  ///< SentencePiece: encoding puts a space in front, decoding takes it away
  bool add_bos = false;
  bool add_eos = false;

  TokenId bos_id = kNoToken;
  TokenId eos_id = kNoToken;
  TokenId eot_id = kNoToken;
  TokenId unk_id = kNoToken;
  TokenId pad_id = kNoToken;
  /// Further ids that end a generation (generation_config.json lists, eom, ...). The tokeniser adds eos_id, eot_id and
  /// control tokens with well-known names ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", ...).
  std::vector<TokenId> end_of_generation_ids;

  std::string chat_template;                                              ///< the default one; "" when there is none
  std::vector<std::pair<std::string, std::string>> named_chat_templates;  ///< name, template ("tool_use", ...)
};

/// For GGUF files. The order is: kind = vocab_kind_from_gguf(tokenizer.ggml.model); tokens, types, scores, ids;
/// set_gguf_pretokenizer(vocab, tokenizer.ggml.pre), which sets steps and defaults (add_bos, add_space_prefix,
/// ignore_merges; the ids 1, 2, 0 of "llama" where none were set); then tokenizer.ggml.add_bos_token,
/// add_eos_token and set_space_prefix(vocab, add_space_prefix) where the file has them; merges = resolve_merges(...).
Result<VocabKind> vocab_kind_from_gguf(std::string_view model);

/// Sets the steps for GGUF's name of a pre-tokeniser: gpt2, llama3/llama-bpe, qwen2, qwen35, smollm, default and the
/// aliases llama.cpp writes. An unknown name: a warning, and the steps of "default". Ignored for SentencePiece.
void set_gguf_pretokenizer(VocabData& vocab, std::string_view name);
void set_space_prefix(VocabData& vocab, bool add_space_prefix);
/// The name whose steps are those of the vocabulary, for writing GGUF; "" when there is none.
std::string gguf_pretokenizer_name(const VocabData& vocab);

/// "left right" lines (GGUF's tokenizer.ggml.merges) to ids. Errors name the first merge that does not refer to tokens.
Result<std::vector<Merge>> resolve_merges(std::span<const std::string> tokens,
                                          std::span<const std::string_view> merges);
/// tokens[left] + " " + tokens[right], as GGUF wants it; an error when a token contains a space.
Result<std::vector<std::string>> merge_lines(const VocabData& vocab);

/// The texts of a Hugging Face folder's files; only tokenizer_json is required, the others may be empty.
struct HfTokenizerFiles {
  std::string_view tokenizer_json;
  std::string_view tokenizer_config_json;
  std::string_view special_tokens_map_json;
  std::string_view generation_config_json;
  std::string_view config_json;
  std::string_view chat_template_jinja;  ///< chat_template.jinja goes before tokenizer_config.json's
  std::string_view chat_template_json;
};

/// BPE models of tokenizer.json, byte-level and SentencePiece-like (Llama 2, Gemma). A component that Crest does not
/// have is an error that names it.
Result<VocabData> vocab_from_tokenizer_json(const HfTokenizerFiles& files);

}  // namespace crest::text
