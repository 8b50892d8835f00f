#include "text/bpe.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text/byte_alphabet.h"
#include "text/unicode.h"

namespace crest::text {
namespace {

constexpr size_t kFewSymbols = 64;
constexpr size_t kPairBits = size_t{1} << 20;

size_t pair_bit(char32_t first, char32_t second) {
  const uint64_t pair = uint64_t{first} << 32 | second;
  return (pair * 0x9E3779B97F4A7C15) >> 44;
}

uint64_t key_of(TokenId left, TokenId right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

/// A merge that may be done; out of date once one of its symbols has changed.
struct Candidate {
  uint32_t rank;
  int32_t left;
  int32_t right;
  uint32_t length;
  TokenId id;
};

struct IsWorse {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

}  // namespace

MergeTable::MergeTable(size_t capacity) : slots_(std::bit_ceil(capacity + capacity / 2 + 2)) {}

size_t MergeTable::position(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  size_t at = (key * 0x9E3779B97F4A7C15) >> 20 & mask;
  while (slots_[at].key != key && slots_[at].key != UINT64_MAX) at = (at + 1) & mask;
  return at;
}

void MergeTable::insert(Merge pair, MergeResult result, bool last_wins) {
  const uint64_t key = key_of(pair.left, pair.right);
  Slot& slot = slots_[position(key)];
  if (slot.key != key || last_wins) slot = {key, result};
}

MergeResult MergeTable::find(TokenId left, TokenId right) const {
  // kNoToken on a side is no key of any slot but of the empty ones, whose result is "none".
  return slots_[position(key_of(left, right))].result;
}

Result<BpeModel> BpeModel::create(const VocabData& vocab, const TokenMap& names, TokenId unknown) {
  BpeModel model;
  model.byte_level_ = vocab.kind == VocabKind::kByteLevelBpe;
  model.names_ = &names;
  model.scored_ = !model.byte_level_ && vocab.merges.empty();
  model.ignore_merges_ = vocab.ignore_merges;
  model.byte_fallback_ = vocab.byte_fallback;
  model.fuse_unknown_ = vocab.fuse_unknown;
  model.unknown_ = unknown;
  for (const TokenType type : vocab.types) {
    model.is_text_.push_back(type == TokenType::kNormal || type == TokenType::kUserDefined ||
                             (model.byte_level_ && type == TokenType::kByte));
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    std::string name;
    if (model.byte_level_) {
      append_character(name, byte_alphabet()[byte]);
    } else {
      name = hex_token_of_byte(static_cast<uint8_t>(byte));
    }
    const TokenId id = names.find(name);
    const bool usable =
        id != kNoToken && (model.byte_level_ ? model.is_text_[static_cast<size_t>(id)]
                                             : vocab.types[static_cast<size_t>(id)] != TokenType::kControl);
    model.bytes_[byte] = usable ? id : kNoToken;
  }
  model.build_pieces(vocab);
  model.build_pairs(vocab);
  CREST_RETURN_IF_ERROR(model.scored_ ? model.build_scored(vocab) : model.build_ranked(vocab, names));
  return model;
}

Status BpeModel::build_ranked(const VocabData& vocab, const TokenMap& names) {
  merges_ = MergeTable(vocab.merges.size());
  const auto count = static_cast<TokenId>(vocab.tokens.size());
  std::string text;
  for (size_t rank = 0; rank < vocab.merges.size(); ++rank) {
    const auto [left, right] = vocab.merges[rank];
    if (left < 0 || right < 0 || left >= count || right >= count) {
      return make_error(ErrorCode::kInvalidFile, "merge {} refers to the ids {} and {}, the vocabulary has {} tokens",
                        rank, left, right, count);
    }
    const std::string& first = vocab.tokens[static_cast<size_t>(left)];
    const std::string& second = vocab.tokens[static_cast<size_t>(right)];
    if (first.empty() || second.empty())
      return make_error(ErrorCode::kInvalidFile, "merge {} contains an empty token", rank);
    text.assign(first).append(second);
    const TokenId id = names.find(text);
    if (id == kNoToken) {
      return make_error(ErrorCode::kInvalidFile,
                        "merge {} (\"{}\" \"{}\") makes \"{}\", which is not in the vocabulary", rank, first, second,
                        text);
    }
    merges_.insert({left, right}, {static_cast<uint32_t>(rank), id}, vocab.last_merge_wins);
    if (!is_text_[static_cast<size_t>(id)]) parts_.emplace(id, Merge{left, right});
  }
  return {};
}

Status BpeModel::build_scored(const VocabData& vocab) {
  if (vocab.scores.size() != vocab.tokens.size()) {
    return make_error(ErrorCode::kInvalidFile,
                      "the vocabulary has {} tokens and {} scores (one each is needed where there are no merges)",
                      vocab.tokens.size(), vocab.scores.size());
  }
  for (size_t i = 0; i < vocab.scores.size(); ++i) {
    if (std::isnan(vocab.scores[i]))
      return make_error(ErrorCode::kInvalidFile, "the score of token {} is not a number", i);
  }
  std::vector<uint32_t> order(vocab.scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return vocab.scores[a] > vocab.scores[b]; });
  score_ranks_.resize(order.size());
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && vocab.scores[order[i]] != vocab.scores[order[i - 1]]) rank = static_cast<uint32_t>(i);
    score_ranks_[order[i]] = vocab.scores[order[i]] <= kUnmergedScore ? MergeResult{}.rank : rank;
  }
  return {};
}

void BpeModel::build_pieces(const VocabData& vocab) {
  if (byte_level_ && !ignore_merges_) return;
  if (byte_level_) {
    piece_map_ = TokenMap(vocab.tokens.size());
    piece_texts_.reserve(vocab.tokens.size());
  }
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    const std::string_view text = vocab.tokens[i];
    if (!is_text_[i] || text.empty()) continue;
    if (byte_level_) {
      auto bytes = bytes_of_letters(text);
      if (bytes) piece_map_.insert(piece_texts_.emplace_back(*std::move(bytes)), static_cast<TokenId>(i));
      continue;
    }
    longest_piece_ = std::max(longest_piece_, text.size());
  }
}

void BpeModel::build_pairs(const VocabData& vocab) {
  const bool all_bytes = byte_fallback_ && std::find(bytes_.begin(), bytes_.end(), kNoToken) == bytes_.end();
  if (byte_level_ || ignore_merges_ || (fuse_unknown_ && !all_bytes)) return;
  pairs_.resize(kPairBits);
  for (const std::string& token : vocab.tokens) {
    char32_t previous = kCodeSpace;
    for (std::string_view rest = token; !rest.empty();) {
      const auto [code, length] = decode_character(rest);
      if (previous != kCodeSpace) pairs_[pair_bit(previous, code)] = true;
      previous = code;
      rest.remove_prefix(length);
    }
  }
}

TokenId BpeModel::find_piece(std::string_view text) const {
  if (byte_level_) return piece_map_.find(text);
  if (text.size() > longest_piece_) return kNoToken;
  const TokenId id = names_->find(text);
  return id != kNoToken && is_text_[static_cast<size_t>(id)] ? id : kNoToken;
}

void BpeModel::split_independent(std::string_view text, std::vector<std::string_view>& parts) const {
  size_t begin = 0;
  char32_t previous = kCodeSpace;
  for (size_t i = 0; !pairs_.empty() && i < text.size();) {
    const auto [code, length] = decode_character(text.substr(i));
    if (previous != kCodeSpace && !pairs_[pair_bit(previous, code)]) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i;
    }
    previous = code;
    i += length;
  }
  if (begin < text.size()) parts.push_back(text.substr(begin));
}

bool BpeModel::has_byte_tokens(std::string_view text) const {
  return byte_fallback_ &&
         std::all_of(text.begin(), text.end(), [&](char c) { return bytes_[static_cast<uint8_t>(c)] != kNoToken; });
}

size_t BpeModel::first_symbols(std::string_view piece, std::span<Symbol> symbols) const {
  size_t count = 0;
  for (uint32_t i = 0; i < piece.size();) {
    uint32_t length = 1;
    TokenId id = kNoToken;
    if (byte_level_) {
      id = bytes_[static_cast<uint8_t>(piece[i])];
    } else {
      length = decode_character(piece.substr(i)).length;
      id = find_piece(piece.substr(i, length));
    }
    // What cannot be expressed at all is gone before merging, so that its neighbours meet.
    const bool dropped = id == kNoToken && unknown_ == kNoToken && !scored_ &&
                         (byte_level_ || !has_byte_tokens(piece.substr(i, length)));
    if (!dropped) symbols[count++] = {i, length, id, -1, -1};
    i += length;
  }
  return count;
}

MergeResult BpeModel::merge_of(std::string_view piece, const Symbol& left, const Symbol& right) const {
  if (!scored_) {
    if (left.id == kNoToken || right.id == kNoToken) return {};
    return merges_.find(left.id, right.id);
  }
  const TokenId id = find_piece(piece.substr(left.begin, left.length + right.length));
  if (id == kNoToken) return {};
  const uint32_t rank = score_ranks_[static_cast<size_t>(id)];
  return rank == MergeResult{}.rank ? MergeResult{} : MergeResult{rank, id};
}

size_t BpeModel::merge_few(std::string_view piece, std::span<Symbol> symbols) const {
  std::array<MergeResult, kFewSymbols> merges;
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) merges[i] = merge_of(piece, symbols[i], symbols[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i].rank < merges[best].rank) best = i;
    }
    if (merges[best].id == kNoToken) break;
    symbols[best].length += symbols[best + 1].length;
    symbols[best].id = merges[best].id;
    --count;
    for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (best + 1 < count) merges[best] = merge_of(piece, symbols[best], symbols[best + 1]);
    if (best > 0) merges[best - 1] = merge_of(piece, symbols[best - 1], symbols[best]);
  }
  return count;
}

size_t BpeModel::merge_many(std::string_view piece, std::span<Symbol> symbols) const {
  std::vector<Candidate> heap;
  heap.reserve(symbols.size());
  const auto candidate = [&](int32_t left, int32_t right) -> Candidate {
    const Symbol &a = symbols[static_cast<size_t>(left)], &b = symbols[static_cast<size_t>(right)];
    const MergeResult result = merge_of(piece, a, b);
    return {result.rank, left, right, a.length + b.length, result.id};
  };
  const auto push = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const Candidate next = candidate(left, right);
    if (next.id == kNoToken) return;
    heap.push_back(next);
    std::push_heap(heap.begin(), heap.end(), IsWorse{});
  };
  for (size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<int32_t>(i) + 1 : -1;
    if (i == 0) continue;
    const Candidate next = candidate(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
    if (next.id != kNoToken) heap.push_back(next);
  }
  std::make_heap(heap.begin(), heap.end(), IsWorse{});
  while (!heap.empty()) {
    const Candidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), IsWorse{});
    heap.pop_back();
    Symbol &left = symbols[static_cast<size_t>(best.left)], &right = symbols[static_cast<size_t>(best.right)];
    if (left.length == 0 || right.length == 0 || left.length + right.length != best.length || left.next != best.right)
      continue;
    left.length = best.length;
    left.id = best.id;
    left.next = right.next;
    right.length = 0;
    if (right.next >= 0) symbols[static_cast<size_t>(right.next)].previous = best.left;
    push(left.previous, best.left);
    push(best.left, left.next);
  }
  const auto end =
      std::remove_if(symbols.begin(), symbols.end(), [](const Symbol& symbol) { return symbol.length == 0; });
  return static_cast<size_t>(end - symbols.begin());
}

void BpeModel::append_parts(TokenId id, std::vector<TokenId>& out) const {
  std::vector<TokenId> stack = {id};
  while (!stack.empty()) {
    const TokenId top = stack.back();
    stack.pop_back();
    const auto parts = parts_.find(top);
    if (is_text_[static_cast<size_t>(top)]) {
      out.push_back(top);
    } else if (parts != parts_.end()) {
      stack.push_back(parts->second.right);
      stack.push_back(parts->second.left);
    } else if (unknown_ != kNoToken) {
      out.push_back(unknown_);
    }
  }
}

void BpeModel::append_symbols(std::string_view piece, std::span<const Symbol> symbols,
                              std::vector<TokenId>& out) const {
  bool after_unknown = false;
  for (const Symbol& symbol : symbols) {
    const std::string_view text = piece.substr(symbol.begin, symbol.length);
    if (symbol.id != kNoToken) {
      is_text_[static_cast<size_t>(symbol.id)] ? out.push_back(symbol.id) : append_parts(symbol.id, out);
      after_unknown = false;
    } else if (!byte_level_ && has_byte_tokens(text)) {
      for (const char byte : text) out.push_back(bytes_[static_cast<uint8_t>(byte)]);
      after_unknown = false;
    } else {
      if (unknown_ != kNoToken && !(after_unknown && fuse_unknown_)) out.push_back(unknown_);
      after_unknown = true;
    }
  }
}

void BpeModel::encode_piece(std::string_view piece, std::vector<TokenId>& out) const {
  if (ignore_merges_) {
    if (const TokenId id = find_piece(piece); id != kNoToken) {
      out.push_back(id);
      return;
    }
  }
  if (piece.size() <= kFewSymbols) {
    std::array<Symbol, kFewSymbols> symbols;
    const size_t count = merge_few(piece, std::span(symbols).first(first_symbols(piece, symbols)));
    append_symbols(piece, std::span(symbols).first(count), out);
    return;
  }
  std::vector<Symbol> symbols(piece.size());
  symbols.resize(first_symbols(piece, symbols));
  const size_t count = symbols.size() <= kFewSymbols ? merge_few(piece, symbols) : merge_many(piece, symbols);
  append_symbols(piece, std::span(symbols).first(count), out);
}

}  // namespace crest::text
