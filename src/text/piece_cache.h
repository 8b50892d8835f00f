#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "text/bpe.h"

namespace crest::text {

/// Encodes the pieces of one text and remembers where in the output the ids of recent ones stand: running text repeats
/// its words.
class PieceCache {
 public:
  PieceCache(const BpeModel& bpe, bool enabled) : bpe_(bpe), entries_(enabled ? kEntries : 0) {}

  /// Appends the ids of a piece to `out`, which must be the same vector in every call and only grow.
  void encode(std::string_view piece, std::vector<TokenId>& out) {
    if (entries_.empty() || piece.size() > kMaxPiece) return bpe_.encode_piece(piece, out);
    Entry& entry = entries_[hash_bytes(piece) % kEntries];
    const size_t begin = out.size();
    if (entry.count > 0 && std::string_view(entry.bytes.data(), entry.size) == piece) {
      out.resize(begin + entry.count);
      std::copy_n(out.data() + entry.begin, entry.count, out.data() + begin);
      return;
    }
    bpe_.encode_piece(piece, out);
    std::memcpy(entry.bytes.data(), piece.data(), piece.size());
    entry.size = static_cast<uint8_t>(piece.size());
    entry.begin = begin;
    entry.count = static_cast<uint32_t>(out.size() - begin);
  }

 private:
  static constexpr size_t kEntries = 4096;
  static constexpr size_t kMaxPiece = 35;
  struct Entry {
    size_t begin = 0;
    uint32_t count = 0;
    uint8_t size = 0;
    std::array<char, kMaxPiece> bytes{};
  };
  const BpeModel& bpe_;
  std::vector<Entry> entries_;
};

}  // namespace crest::text
