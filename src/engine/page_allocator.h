#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace crest::engine {

/// Hands out the pages of the KV cache, lowest number first, so that memory which was never needed stays untouched.
class PageAllocator {
 public:
  explicit PageAllocator(int32_t pages);
  std::optional<int32_t> allocate();
  void release(int32_t page);
  int32_t total() const { return total_; }
  int32_t available() const { return static_cast<int32_t>(free_.size()); }

 private:
  int32_t total_;
  std::vector<int32_t> free_;  // a heap, smallest on top
};

}  // namespace crest::engine
