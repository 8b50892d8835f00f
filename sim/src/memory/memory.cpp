#include "crest_sim/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace crest_sim {
namespace {

constexpr uint64_t kRedZone = 4096;
constexpr uint64_t kPage = 4096;

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/// Freed ranges that are remembered by name. Older ones are still no part of any allocation.
constexpr uint64_t kMaxFreed = 4096;

std::string title(const Allocation& a) {
  std::string text = fmt::format("allocation {}{}{} [{:#x}, {:#x}) of {} bytes", a.id, a.name.empty() ? "" : " ",
                                 a.name, a.base, a.end(), a.bytes);
  if (!a.accessible)
    text += fmt::format(" on device {}, which this device cannot reach: peer access is not enabled", a.device);
  return text;
}

struct Pages {
  uint64_t first, last;
  void* pointer() const { return reinterpret_cast<void*>(first); }
  uint64_t bytes() const { return last - first; }
};

/// No two allocations share a page: a red zone of a page lies between them.
Pages pages_of(const Allocation& a) { return {a.base / kPage * kPage, round_up(a.end(), kPage)}; }

}  // namespace

const Allocation* AllocationTable::find(uint64_t address, uint64_t bytes) const {
  auto above = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](uint64_t value, const Allocation& a) { return value < a.base; });
  if (above == ranges_.begin()) return nullptr;
  const Allocation& candidate = *std::prev(above);
  if (candidate.freed || !candidate.accessible || address >= candidate.end() || bytes > candidate.end() - address)
    return nullptr;
  return &candidate;
}

std::string AllocationTable::describe(uint64_t address) const {
  auto above = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](uint64_t value, const Allocation& a) { return value < a.base; });
  if (above != ranges_.begin()) {
    const Allocation& below = *std::prev(above);
    if (address < below.end())
      return fmt::format("{} bytes into {}{}", address - below.base, below.freed ? "freed " : "", title(below));
    if (above == ranges_.end() || address - below.end() <= above->base - address)
      return fmt::format("{} bytes behind the end of {}{}", address - below.end(), below.freed ? "freed " : "",
                         title(below));
  }
  if (above != ranges_.end())
    return fmt::format("{} bytes before {}{}", above->base - address, above->freed ? "freed " : "", title(*above));
  return "no allocation exists";
}

Result<std::shared_ptr<Memory>> Memory::create() {
  for (uint64_t bytes = uint64_t(1) << 43; bytes >= uint64_t(1) << 33; bytes >>= 1) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) continue;
    return std::shared_ptr<Memory>(new Memory(reinterpret_cast<uint64_t>(p), bytes));
  }
  return Error{"cannot reserve address space for device memory (8 GiB at least are needed; see ulimit -v)"};
}

Memory::~Memory() {
  for (auto [base, descriptor] : shared_) close(descriptor);
  munmap(reinterpret_cast<void*>(arena_), arena_bytes_);
}

void Memory::insert(Allocation allocation) {
  auto at = std::upper_bound(ranges_.begin(), ranges_.end(), allocation.base,
                             [](uint64_t value, const Allocation& a) { return value < a.base; });
  ranges_.insert(at, std::move(allocation));
  tables_.clear();
}

/// Address space is given out once, so that stale pointers stay recognisable; only when it has all been used do freed
/// ranges serve again, oldest first.
Result<uint64_t> Memory::place(uint64_t bytes, uint64_t alignment) {
  uint64_t base = round_up(next_, alignment), end = arena_ + arena_bytes_;
  if (bytes <= end - base && end - base - bytes >= 2 * kRedZone) {
    next_ = base + std::max<uint64_t>(bytes, 1) + kRedZone;
    return base;
  }
  auto oldest = ranges_.end();
  for (auto it = ranges_.begin(); it != ranges_.end(); ++it)
    if (it->freed && it->bytes >= bytes && it->base % alignment == 0 &&
        (oldest == ranges_.end() || it->id < oldest->id))
      oldest = it;
  if (oldest == ranges_.end())
    return Error{fmt::format("cannot allocate {} bytes of device memory: {} bytes of address space are left", bytes,
                             end - base)};
  base = oldest->base;
  ranges_.erase(oldest);
  --freed_;
  return base;
}

Result<uint64_t> Memory::allocate(uint64_t bytes, AllocationKind kind, std::string name, int device) {
  std::lock_guard lock(mutex_);
  auto base = place(bytes, bytes >= kPage ? kPage : 256);
  if (base) insert({*base, bytes, kind, next_id_++, device, std::move(name), false});
  return base;
}

void Memory::release_pages(const Allocation& a) {
  Pages pages = pages_of(a);
  auto shared = shared_.find(a.base);
  if (shared != shared_.end()) {
    mmap(pages.pointer(), pages.bytes(), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    close(shared->second);
    shared_.erase(shared);
    return;
  }
  madvise(pages.pointer(), pages.bytes(), MADV_DONTNEED);
}

Status Memory::free(uint64_t base) {
  std::lock_guard lock(mutex_);
  auto it = std::lower_bound(ranges_.begin(), ranges_.end(), base,
                             [](const Allocation& a, uint64_t value) { return a.base < value; });
  for (; it != ranges_.end() && it->base == base; ++it) {
    Allocation& a = *it;
    if (a.kind == AllocationKind::kHostRegistered) continue;
    if (a.freed) return Error{fmt::format("{} was freed before", title(a))};
    a.freed = true;
    release_pages(a);
    tables_.clear();
    if (++freed_ <= kMaxFreed) return Unit{};
    auto older = [](const Allocation& x, const Allocation& y) { return x.freed != y.freed ? x.freed : x.id < y.id; };
    ranges_.erase(std::min_element(ranges_.begin(), ranges_.end(), older));
    --freed_;
    return Unit{};
  }
  return Error{fmt::format("{:#x} is not the address of an allocation", base)};
}

Result<int> Memory::share(uint64_t base) {
  std::lock_guard lock(mutex_);
  if (auto known = shared_.find(base); known != shared_.end()) return known->second;
  auto it = std::find_if(ranges_.begin(), ranges_.end(), [&](const Allocation& a) {
    return a.base == base && !a.freed && a.kind != AllocationKind::kHostRegistered;
  });
  if (it == ranges_.end()) return Error{fmt::format("{:#x} is not the address of an allocation", base)};
  Pages pages = pages_of(*it);
  int descriptor = memfd_create("crest_sim", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(pages.bytes())) != 0) {
    if (descriptor >= 0) close(descriptor);
    return Error{fmt::format("cannot share {} bytes: {}", pages.bytes(), std::strerror(errno))};
  }
  // Only pages that exist are copied: a large allocation may be nearly empty.
  std::vector<unsigned char> present(pages.bytes() / kPage);
  bool known = mincore(pages.pointer(), pages.bytes(), present.data()) == 0;
  for (uint64_t page = 0; page < present.size(); ++page) {
    if (known && !(present[page] & 1)) continue;
    const void* from = reinterpret_cast<const void*>(pages.first + page * kPage);
    if (pwrite(descriptor, from, kPage, static_cast<off_t>(page * kPage)) == static_cast<ssize_t>(kPage)) continue;
    close(descriptor);
    return Error{fmt::format("cannot share {} bytes: {}", pages.bytes(), std::strerror(errno))};
  }
  if (mmap(pages.pointer(), pages.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) ==
      MAP_FAILED) {
    close(descriptor);
    return Error{fmt::format("cannot share {} bytes: {}", pages.bytes(), std::strerror(errno))};
  }
  shared_[base] = descriptor;
  return descriptor;
}

Result<uint64_t> Memory::attach(int descriptor, uint64_t bytes, std::string name, int device) {
  std::lock_guard lock(mutex_);
  auto base = place(bytes, kPage);
  if (!base) return base;
  int own = dup(descriptor);
  Allocation a{*base, bytes, AllocationKind::kDevice, next_id_++, device, std::move(name), false};
  Pages pages = pages_of(a);
  void* p = own < 0 ? MAP_FAILED
                    : mmap(pages.pointer(), pages.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, own, 0);
  if (p == MAP_FAILED) {
    if (own >= 0) close(own);
    return Error{fmt::format("cannot map {} shared bytes: {}", bytes, std::strerror(errno))};
  }
  shared_[*base] = own;
  insert(std::move(a));
  return base;
}

Status Memory::register_host(void* pointer, uint64_t bytes, std::string name) {
  std::lock_guard lock(mutex_);
  uint64_t base = reinterpret_cast<uint64_t>(pointer);
  for (const Allocation& a : ranges_)
    if (!a.freed && base < a.end() && a.base < base + bytes)
      return Error{fmt::format("host memory {:#x} overlaps {}", base, title(a))};
  insert({base, bytes, AllocationKind::kHostRegistered, next_id_++, -1, std::move(name), false});
  return Unit{};
}

Status Memory::unregister_host(void* pointer) {
  std::lock_guard lock(mutex_);
  auto it = std::find_if(ranges_.begin(), ranges_.end(), [&](const Allocation& a) {
    return a.base == reinterpret_cast<uint64_t>(pointer) && a.kind == AllocationKind::kHostRegistered;
  });
  if (it == ranges_.end())
    return Error{fmt::format("{:#x} is not registered host memory", reinterpret_cast<uint64_t>(pointer))};
  ranges_.erase(it);
  tables_.clear();
  return Unit{};
}

std::shared_ptr<const AllocationTable> Memory::table(uint64_t devices) const {
  std::lock_guard lock(mutex_);
  std::shared_ptr<const AllocationTable>& table = tables_[devices];
  if (table) return table;
  std::vector<Allocation> view = ranges_;
  for (Allocation& a : view) {
    bool owned = a.device >= 0 && a.device < 64 && a.kind != AllocationKind::kHost;
    a.accessible = !owned || (devices >> a.device & 1);
  }
  table = std::make_shared<const AllocationTable>(std::move(view));
  return table;
}

}  // namespace crest_sim
