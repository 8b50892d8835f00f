#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "text/segment.h"
#include "text/vocab_data.h"

namespace crest::text {

struct EncodeOptions {
  bool parse_special = false;  ///< control tokens spelled in the text become control tokens (trusted text)
  bool add_special = false;    ///< BOS in front (unless the text starts with it) and EOS behind, as the file says
};

struct DecodeOptions {
  bool skip_special = false;  ///< leave control tokens out; user-defined ones (<think>, <tool_call>) always stay
  /// The ids are a whole text: the space that SentencePiece encoding put in front is taken away again.
  bool at_start = true;
};

/// Text to ids and back. Immutable after create; all functions may be called from several threads.
///
/// Bytes that are not UTF-8 are kept: they are split like U+FFFD would be and encoded as what they are, so that
/// decode(encode(x)) is x, up to the normalisation that the file asks for (NFC; U+2581 becomes a space in
/// SentencePiece).
class Tokenizer {
 public:
  /// Checks the vocabulary (types, ids, merges, patterns) and builds the look-up tables.
  static Result<Tokenizer> create(VocabData vocab);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Errors: a pattern of the file ran out of its budget on this text; text of 2 GiB and more.
  Result<std::vector<TokenId>> encode(std::string_view text, EncodeOptions options = {}) const;
  /// As encode on the concatenation: pieces may reach over the seams, control tokens may not leave trusted text.
  Result<std::vector<TokenId>> encode(std::span<const Segment> segments, bool add_special = false) const;

  /// The bytes of the ids, possibly not UTF-8 (see to_valid_utf8). Ids outside the vocabulary: an error.
  Result<std::string> decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  int32_t vocab_size() const;
  bool is_valid(TokenId id) const { return id >= 0 && id < vocab_size(); }
  /// The bytes that a token stands for in running text ("" for an id outside the vocabulary).
  std::string_view token_text(TokenId id) const;
  /// The token as the file spells it.
  std::string_view token_name(TokenId id) const;
  TokenType token_type(TokenId id) const;
  /// Id of a token by its name, control tokens included.
  std::optional<TokenId> find(std::string_view name) const;

  /// Control or unknown token: never text.
  bool is_control(TokenId id) const;
  bool is_end_of_generation(TokenId id) const;
  /// Sorted.
  std::span<const TokenId> end_of_generation_ids() const;
  TokenId bos_id() const;
  TokenId eos_id() const;
  bool adds_bos() const;

  /// The checked vocabulary, as given.
  const VocabData& vocab() const;

 private:
  friend class StreamDecoder;
  struct Tables;
  explicit Tokenizer(std::unique_ptr<const Tables> tables);
  std::unique_ptr<const Tables> tables_;
};

/// Ids one by one to text that is valid UTF-8 after every call: the first bytes of an unfinished character are held
/// back until it is complete. Bytes that can no longer become a character (what follows does not continue them, or
/// finish() is called because the generation was cut) become one U+FFFD per maximal unfinished sequence. The
/// concatenation of all results equals to_valid_utf8(decode(ids, options)), wherever the generation is cut.
class StreamDecoder {
 public:
  /// at_start is false by default: a generated answer continues the prompt, its first space is part of it.
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options = {.skip_special = true, .at_start = false});
  /// An id outside the vocabulary adds nothing.
  std::string push(TokenId id);
  std::string finish();
  /// Bytes held back.
  std::string_view pending() const { return pending_; }

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  bool strip_space_;
  std::string pending_;
};

/// Replaces every maximal sequence of bytes that is not UTF-8 by U+FFFD, as Unicode recommends (section 3.9).
std::string to_valid_utf8(std::string_view bytes);

}  // namespace crest::text
