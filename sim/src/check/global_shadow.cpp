#include "check/global_shadow.h"

#include <algorithm>
#include <cstring>

namespace crest_sim {

GlobalPage& GlobalRaces::find(uint64_t number) {
  std::unique_ptr<GlobalPage>& page = pages_[number];
  if (!page) page = std::make_unique<GlobalPage>();  // zero: nobody touched it
  return *page;
}

void GlobalRaces::begin() {
  for (auto [page, dword] : split) {
    page->writer[dword] = page->reader[dword] = page->reader2[dword] = 0;
    page->bytes.reset();
  }
  split.clear();
  if (next_segment < (1u << 26)) return;
  pages_.clear();
  for (Slot& s : cache_) s = {};
  next_segment = 1;
}

uint32_t GlobalOrder::open(uint64_t workgroup, uint32_t epoch, WorkgroupCheck* owner) {
  segments.push_back({workgroup, epoch, 0, owner});
  return races->next_segment++;
}

void MemoryShadow::mark_uninitialised(uint64_t base, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes == 0) return;
  any_ = true;
  // Whole pages are a range; the ends are bits, so that neighbours on the same page keep theirs.
  uint64_t end = base + bytes, first = (base + kPage - 1) / kPage * kPage, last = end / kPage * kPage;
  if (first < last) {
    for (auto it = pages_.begin(); it != pages_.end();)
      it = it->first * kPage >= first && it->first * kPage < last ? pages_.erase(it) : std::next(it);
    ranges_[first] = std::max(ranges_[first], last);
    if (base < first) set(base, first - base, true);
    if (last < end) set(last, end - last, true);
  } else {
    set(base, bytes, true);
  }
}

void MemoryShadow::mark_initialised(uint64_t base, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (!any()) return;
  set(base, bytes, false);
}

bool MemoryShadow::in_range(uint64_t address) const {
  auto it = ranges_.upper_bound(address);
  return it != ranges_.begin() && address < std::prev(it)->second;
}

MemoryShadow::Bits* MemoryShadow::writable(uint64_t page) {
  std::unique_ptr<Bits>& bits = pages_[page];
  if (!bits) {
    bits = std::make_unique<Bits>();
    std::memset(bits->word, in_range(page * kPage) ? 0xff : 0, sizeof(bits->word));
  }
  return bits.get();
}

void MemoryShadow::set(uint64_t base, uint64_t bytes, bool value) {
  while (bytes) {
    uint64_t page = base / kPage, at = base % kPage, n = std::min(bytes, kPage - at);
    bool known = pages_.contains(page);
    if (value || known || in_range(base)) {
      Bits* bits = writable(page);
      for (uint64_t k = at; k < at + n;) {
        uint64_t word = k / 64, from = k % 64, count = std::min(64 - from, at + n - k);
        uint64_t mask = (count == 64 ? ~uint64_t(0) : (uint64_t(1) << count) - 1) << from;
        bits->word[word] = value ? bits->word[word] | mask : bits->word[word] & ~mask;
        k += count;
      }
    }
    base += n;
    bytes -= n;
  }
}

bool MemoryShadow::is_uninitialised(uint64_t address, uint32_t bytes) {
  std::lock_guard lock(mutex_);
  for (uint32_t k = 0; k < bytes; ++k) {
    uint64_t a = address + k;
    auto it = pages_.find(a / kPage);
    bool bit = it == pages_.end() ? in_range(a) : (it->second->word[a % kPage / 64] >> (a % 64)) & 1;
    if (!bit) return false;
  }
  return bytes != 0;
}

std::unique_ptr<GlobalRaces> MemoryShadow::take_races() {
  std::lock_guard lock(mutex_);
  std::unique_ptr<GlobalRaces> races;
  if (spare_.empty()) {
    races = std::make_unique<GlobalRaces>();
  } else {
    races = std::move(spare_.back());
    spare_.pop_back();
  }
  races->begin();
  return races;
}

void MemoryShadow::give_back(std::unique_ptr<GlobalRaces> races) {
  std::lock_guard lock(mutex_);
  if (races && spare_.size() < 2) spare_.push_back(std::move(races));
}

}  // namespace crest_sim
