#include "crest_sim/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace crest_sim {
namespace {

constexpr uint64_t kRedZone = 4096;
constexpr uint64_t kPage = 4096;

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

std::string title(const Allocation& a) {
  return fmt::format("allocation {}{}{} [{:#x}, {:#x}) of {} bytes", a.id, a.name.empty() ? "" : " ", a.name, a.base,
                     a.end(), a.bytes);
}

}  // namespace

const Allocation* AllocationTable::find(uint64_t address, uint64_t bytes) const {
  auto above = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                [](uint64_t value, const Allocation& a) { return value < a.base; });
  if (above == ranges_.begin()) return nullptr;
  const Allocation& candidate = *std::prev(above);
  if (candidate.freed || address >= candidate.end() || bytes > candidate.end() - address) return nullptr;
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

Memory::~Memory() { munmap(reinterpret_cast<void*>(arena_), arena_bytes_); }

void Memory::insert(Allocation allocation) {
  auto at = std::upper_bound(ranges_.begin(), ranges_.end(), allocation.base,
                             [](uint64_t value, const Allocation& a) { return value < a.base; });
  ranges_.insert(at, std::move(allocation));
  table_ = nullptr;
}

Result<uint64_t> Memory::allocate(uint64_t bytes, AllocationKind kind, std::string name, int device) {
  std::lock_guard lock(mutex_);
  uint64_t base = round_up(next_, bytes >= kPage ? kPage : 256);
  uint64_t left = arena_ + arena_bytes_ - base;
  if (bytes > left || left - bytes < 2 * kRedZone)
    return Error{
        fmt::format("cannot allocate {} bytes of device memory: {} bytes of address space are left", bytes, left)};
  next_ = base + std::max<uint64_t>(bytes, 1) + kRedZone;
  insert({base, bytes, kind, next_id_++, device, std::move(name), false});
  return base;
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
    uint64_t first = round_up(a.base, kPage), last = a.end() / kPage * kPage;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    if (a.kind == AllocationKind::kKernarg) ranges_.erase(it);  // one per launch: not kept for reports
    table_ = nullptr;
    return Unit{};
  }
  return Error{fmt::format("{:#x} is not the address of an allocation", base)};
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
  table_ = nullptr;
  return Unit{};
}

std::shared_ptr<const AllocationTable> Memory::table() const {
  std::lock_guard lock(mutex_);
  if (!table_) table_ = std::make_shared<const AllocationTable>(ranges_);
  return table_;
}

}  // namespace crest_sim
