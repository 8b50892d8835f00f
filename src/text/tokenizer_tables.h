#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/piece_cache.h"
#include "text/pretokenizer.h"
#include "text/rewrite.h"
#include "text/token_map.h"
#include "text/tokenizer.h"

namespace crest::text {

struct Tokenizer::Tables {
  VocabData vocab;
  TokenMap names;
  std::string text_bytes;
  std::vector<size_t> text_offsets;  ///< tokens + 1
  Rewriter normalizer;
  Rewriter pre_rewrite;
  PreTokenizer pre_tokenizer;
  std::optional<BpeModel> bpe;
  AddedTokenFinder added;
  AddedTokenFinder normalized_added;
  std::vector<TokenId> end_of_generation;  ///< sorted
  bool strips_start = false;               ///< decoding takes the space away that encoding put in front
  bool strips_after_added = false;         ///< ... and behind every added token

  std::string_view text(TokenId id) const {
    const auto index = static_cast<size_t>(id);
    return std::string_view(text_bytes).substr(text_offsets[index], text_offsets[index + 1] - text_offsets[index]);
  }
  bool is_valid(TokenId id) const { return id >= 0 && static_cast<size_t>(id) < vocab.tokens.size(); }
  TokenType type(TokenId id) const { return vocab.types[static_cast<size_t>(id)]; }
  /// Appends the bytes of a token; strip: the state between tokens.
  void append(TokenId id, const DecodeOptions& options, bool& strip, std::string& out) const;

  Status encode(std::string_view text, TrustedRanges trusted, bool add_special, std::vector<TokenId>& out) const;
  Status encode_plain(std::string_view text, bool at_start, PieceCache& cache, std::vector<TokenId>& out) const;
  Status encode_normalized(std::string_view text, bool at_start, PieceCache& cache, std::vector<TokenId>& out) const;
};

}  // namespace crest::text
