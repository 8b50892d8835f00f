#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "text/token_map.h"
#include "text/vocab_data.h"

namespace crest::text {

/// SentencePiece writes a space as U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// What merging two neighbours gives; the smallest rank goes first.
struct MergeResult {
  uint32_t rank = UINT32_MAX;
  TokenId id = kNoToken;
};

/// (left, right) to result, by open addressing.
class MergeTable {
 public:
  MergeTable() = default;
  explicit MergeTable(size_t capacity);
  /// Of two equal pairs the first or the last counts.
  void insert(Merge pair, MergeResult result, bool last_wins);
  MergeResult find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    MergeResult result;
  };
  size_t position(uint64_t key) const;
  std::vector<Slot> slots_;
};

/// Byte-pair encoding of one piece of text: byte-level, or over characters (SentencePiece) by rank or by score.
/// O(n log n) in the length of the piece.
///
/// Text never gives control, unknown or unused tokens: where merging arrives at one, its parts are given instead. A
/// byte or character without a token becomes byte tokens, the unknown token, or nothing, whichever the vocabulary has
/// first.
class BpeModel {
 public:
  /// names: map of vocab.tokens, which must outlive the model. unknown: token for what has no other.
  static Result<BpeModel> create(const VocabData& vocab, const TokenMap& names, TokenId unknown);
  BpeModel(BpeModel&&) = default;
  BpeModel& operator=(BpeModel&&) = default;

  void encode_piece(std::string_view piece, std::vector<TokenId>& out) const;

  /// SentencePiece has no pre-tokeniser: cuts text between characters that stand side by side in no token, so that the
  /// parts can be encoded one by one.
  void split_independent(std::string_view text, std::vector<std::string_view>& parts) const;

 private:
  struct Symbol {
    uint32_t begin = 0;
    uint32_t length = 0;  ///< 0: merged into another
    TokenId id = kNoToken;
    int32_t previous = -1;
    int32_t next = -1;
  };

  Status build_ranked(const VocabData& vocab, const TokenMap& names);
  Status build_scored(const VocabData& vocab);
  void build_pieces(const VocabData& vocab);
  void build_pairs(const VocabData& vocab);
  /// The token of a whole text, if text may give it.
  TokenId find_piece(std::string_view text) const;
  MergeResult merge_of(std::string_view piece, const Symbol& left, const Symbol& right) const;
  BpeModel() = default;
  size_t first_symbols(std::string_view piece, std::span<Symbol> symbols) const;
  size_t merge_few(std::string_view piece, std::span<Symbol> symbols) const;
  size_t merge_many(std::string_view piece, std::span<Symbol> symbols) const;
  void append_symbols(std::string_view piece, std::span<const Symbol> symbols, std::vector<TokenId>& out) const;
  void append_parts(TokenId id, std::vector<TokenId>& out) const;
  bool has_byte_tokens(std::string_view text) const;

  bool byte_level_ = true;
  bool scored_ = false;
  bool ignore_merges_ = false;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  TokenId unknown_ = kNoToken;
  std::array<TokenId, 256> bytes_{};  ///< token of a byte, or kNoToken
  MergeTable merges_;
  const TokenMap* names_ = nullptr;
  TokenMap piece_map_;                        ///< byte-level with ignore_merges: bytes to token
  std::vector<std::string> piece_texts_;      ///< owns what piece_map_ views
  size_t longest_piece_ = 0;                  ///< in bytes
  std::vector<uint32_t> score_ranks_;         ///< by id: 0 is the best score
  std::vector<bool> is_text_;                 ///< by id: text may give it
  std::unordered_map<TokenId, Merge> parts_;  ///< of tokens that merges make and text must not give
  std::vector<bool> pairs_;                   ///< by pair_bit: may stand side by side in a token; empty: no splitting
};

}  // namespace crest::text
