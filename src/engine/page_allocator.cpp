#include "engine/page_allocator.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/result.h"

namespace crest::engine {

PageAllocator::PageAllocator(int32_t pages) : total_(pages), free_(pages) { std::iota(free_.begin(), free_.end(), 0); }

std::optional<int32_t> PageAllocator::allocate() {
  if (free_.empty()) return std::nullopt;
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t page = free_.back();
  free_.pop_back();
  return page;
}

void PageAllocator::release(int32_t page) {
  CREST_CHECK(page >= 0 && page < total_ && available() < total_, "page {}", page);
  free_.push_back(page);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

}  // namespace crest::engine
