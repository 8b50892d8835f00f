#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace crest::engine {

/// The recurrent state of a sequence after its first `position` tokens. Such a state cannot be truncated; a snapshot is
/// how a sequence goes back. It is valid for another prompt iff the first `position` tokens are equal, and for nothing
/// else.
struct Snapshot {
  int64_t position = 0;
  std::vector<float> state;   // all recurrent layers; empty for models that have none
  std::vector<float> logits;  // after the last of these tokens, or empty

  uint64_t bytes() const { return (state.size() + logits.size()) * sizeof(float); }
};

/// The snapshots of one sequence, by position, within a byte budget. When the budget is used up, the snapshot whose
/// loss costs the fewest re-evaluated tokens goes first; the newest one stays.
class Snapshots {
 public:
  explicit Snapshots(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  /// Replaces the snapshot of the same position. One that alone is above the budget is not kept.
  void add(Snapshot snapshot);
  const Snapshot* newest_up_to(int64_t position) const;
  bool has(int64_t position) const;
  void drop_after(int64_t position);
  void clear();
  uint64_t bytes() const { return bytes_; }
  std::span<const Snapshot> all() const { return snapshots_; }

 private:
  void drop_cheapest();
  uint64_t max_bytes_;
  uint64_t bytes_ = 0;
  std::vector<Snapshot> snapshots_;  // ascending position
};

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b);

/// Where the chunks of a prefill of [begin, end) end: at multiples of chunk_size (absolute, so that repeated prompts
/// are cut alike), at every mark in between, and at the end.
std::vector<int64_t> chunk_ends(int64_t begin, int64_t end, int64_t chunk_size, std::span<const int64_t> marks);

}  // namespace crest::engine
