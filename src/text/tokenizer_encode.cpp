#include <limits>

#include "text/tokenizer_tables.h"

namespace crest::text {
namespace {

/// Shorter texts are encoded faster than a PieceCache is set up.
constexpr size_t kWorthCaching = 4096;
constexpr size_t kMaxTextBytes = std::numeric_limits<int32_t>::max();

}  // namespace

Status Tokenizer::Tables::encode_normalized(std::string_view text, bool at_start, PieceCache& cache,
                                            std::vector<TokenId>& out) const {
  std::string rewritten;
  if (!pre_rewrite.empty()) {
    CREST_TRY(rewritten, pre_rewrite.apply(text, at_start));
    text = rewritten;
  }
  if (text.size() > kMaxTextBytes) {
    return make_error(ErrorCode::kInvalidArgument, "text is {} bytes long, at most {} can be encoded at once",
                      text.size(), kMaxTextBytes);
  }
  CREST_TRY(std::vector<std::string_view> pieces, pre_tokenizer.split(text));
  if (vocab.kind == VocabKind::kSentencePieceBpe) {
    std::vector<std::string_view> parts;
    for (const std::string_view piece : pieces) bpe->split_independent(piece, parts);
    pieces.swap(parts);
  }
  for (const std::string_view piece : pieces) cache.encode(piece, out);
  return {};
}

Status Tokenizer::Tables::encode_plain(std::string_view text, bool at_start, PieceCache& cache,
                                       std::vector<TokenId>& out) const {
  std::string normalized;
  if (!normalizer.empty()) {
    CREST_TRY(normalized, normalizer.apply(text, at_start));
    text = normalized;
  }
  if (normalized_added.empty()) return encode_normalized(text, at_start, cache, out);
  for (const Fragment& fragment : normalized_added.cut(text, {})) {
    if (fragment.id != kNoToken) {
      out.push_back(fragment.id);
    } else {
      const std::string_view part = text.substr(fragment.begin, fragment.end - fragment.begin);
      CREST_RETURN_IF_ERROR(encode_normalized(part, at_start && fragment.begin == 0, cache, out));
    }
  }
  return {};
}

Status Tokenizer::Tables::encode(std::string_view text, TrustedRanges trusted, bool add_special,
                                 std::vector<TokenId>& out) const {
  if (text.size() > kMaxTextBytes) {
    return make_error(ErrorCode::kInvalidArgument, "text is {} bytes long, at most {} can be encoded at once",
                      text.size(), kMaxTextBytes);
  }
  const auto fragments = added.cut(text, trusted);
  const bool has_bos = !fragments.empty() && fragments.front().id != kNoToken && fragments.front().id == vocab.bos_id;
  const bool has_eos = !fragments.empty() && fragments.back().id != kNoToken && fragments.back().id == vocab.eos_id;
  PieceCache cache(*bpe, text.size() >= kWorthCaching);
  out.reserve(text.size() / 4 + 2);
  if (add_special && vocab.add_bos && vocab.bos_id != kNoToken && !has_bos) out.push_back(vocab.bos_id);
  for (const Fragment& fragment : fragments) {
    if (fragment.id != kNoToken) {
      out.push_back(fragment.id);
    } else {
      const std::string_view part = text.substr(fragment.begin, fragment.end - fragment.begin);
      CREST_RETURN_IF_ERROR(encode_plain(part, fragment.begin == 0, cache, out));
    }
  }
  if (add_special && vocab.add_eos && vocab.eos_id != kNoToken && !has_eos) out.push_back(vocab.eos_id);
  return {};
}

}  // namespace crest::text
