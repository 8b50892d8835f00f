#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "engine/cache_storage.h"
#include "engine/snapshots.h"

namespace crest::engine {

/// One sequence's share of the caches: which tokens were evaluated, the pages of their keys and values, the slot of the
/// recurrent state, and snapshots to go back to. The storage must outlive it.
class Sequence {
 public:
  /// Errors: no free slot. max_tokens bounds the length; snapshot_bytes the memory of snapshots.
  static Result<std::unique_ptr<Sequence>> create(CacheStorage& storage, int64_t max_tokens, uint64_t snapshot_bytes);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  int64_t length() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t max_tokens() const { return max_tokens_; }
  std::span<const int32_t> tokens() const { return tokens_; }
  std::span<const int32_t> pages() const { return pages_; }
  int32_t slot() const { return slot_; }
  const Snapshots& snapshots() const { return snapshots_; }

  /// Gets pages for `count` more tokens. Error kResourceExhausted: the context or the pool is used up.
  Status reserve(int64_t count);
  /// The tokens were evaluated: pages and state hold them.
  void append(std::span<const int32_t> tokens) { tokens_.insert(tokens_.end(), tokens.begin(), tokens.end()); }

  /// Goes to the longest state that is one of the prompt's beginnings and returns its length. Recurrent models can only
  /// go back to snapshots. The whole prompt is kept only if the logits after it are known: see kept_logits.
  int64_t reuse(std::span<const int32_t> prompt);
  /// Logits after the last token, if a snapshot of this position has them; else empty.
  std::span<const float> kept_logits() const;
  /// Remembers the present state, and the logits after the last token unless empty.
  void take_snapshot(std::span<const float> logits = {});
  /// Forgets everything.
  void clear();

  /// Everything of the sequence as bytes, and back; restore() refuses what does not fit together and leaves the
  /// sequence empty then. token_limit: ids must be below.
  Status save(class SessionWriter& writer) const;
  Status restore(class SessionReader& reader, int64_t token_limit);

 private:
  Sequence(CacheStorage& storage, int64_t max_tokens, uint64_t snapshot_bytes, int32_t slot)
      : storage_(storage), max_tokens_(max_tokens), slot_(slot), snapshots_(snapshot_bytes) {}
  void truncate(int64_t length);

  CacheStorage& storage_;
  int64_t max_tokens_;
  int32_t slot_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> pages_;
  Snapshots snapshots_;
};

}  // namespace crest::engine
