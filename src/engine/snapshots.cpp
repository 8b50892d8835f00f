#include "engine/snapshots.h"

#include <algorithm>
#include <iterator>

namespace crest::engine {

void Snapshots::add(Snapshot snapshot) {
  const auto at = std::lower_bound(snapshots_.begin(), snapshots_.end(), snapshot.position,
                                   [](const Snapshot& a, int64_t position) { return a.position < position; });
  if (snapshot.bytes() > max_bytes_) return;
  bytes_ += snapshot.bytes();
  if (at != snapshots_.end() && at->position == snapshot.position) {
    bytes_ -= at->bytes();
    *at = std::move(snapshot);
  } else {
    snapshots_.insert(at, std::move(snapshot));
  }
  while (bytes_ > max_bytes_) drop_cheapest();
}

void Snapshots::drop_cheapest() {
  size_t cheapest = 0;
  int64_t least = -1;
  for (size_t i = 0; i + 1 < snapshots_.size() || i == 0; ++i) {
    const int64_t gap = snapshots_[i].position - (i == 0 ? 0 : snapshots_[i - 1].position);
    if (least < 0 || gap < least) {
      least = gap;
      cheapest = i;
    }
  }
  bytes_ -= snapshots_[cheapest].bytes();
  snapshots_.erase(snapshots_.begin() + static_cast<ptrdiff_t>(cheapest));
}

const Snapshot* Snapshots::newest_up_to(int64_t position) const {
  const Snapshot* found = nullptr;
  for (const auto& snapshot : snapshots_) {
    if (snapshot.position <= position) found = &snapshot;
  }
  return found;
}

bool Snapshots::has(int64_t position) const {
  const Snapshot* snapshot = newest_up_to(position);
  return snapshot != nullptr && snapshot->position == position;
}

void Snapshots::drop_after(int64_t position) {
  while (!snapshots_.empty() && snapshots_.back().position > position) {
    bytes_ -= snapshots_.back().bytes();
    snapshots_.pop_back();
  }
}

void Snapshots::clear() {
  snapshots_.clear();
  bytes_ = 0;
}

int64_t common_prefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

std::vector<int64_t> chunk_ends(int64_t begin, int64_t end, int64_t chunk_size, std::span<const int64_t> marks) {
  std::vector<int64_t> ends;
  while (begin < end) {
    int64_t next = std::min(end, (begin / chunk_size + 1) * chunk_size);
    for (const int64_t mark : marks) {
      if (mark > begin) next = std::min(next, mark);
    }
    ends.push_back(next);
    begin = next;
  }
  return ends;
}

}  // namespace crest::engine
