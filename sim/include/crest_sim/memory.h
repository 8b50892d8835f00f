// The memory of the simulated machines. Device addresses are host addresses inside one large reserved range, of which
// pages exist only once touched: a 16 GiB allocation costs nothing until used. Every range is known exactly, so an
// access one byte behind an allocation, into a red zone or after free is found although the page may exist.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "crest_sim/result.h"

namespace crest_sim {

enum class AllocationKind : uint8_t { kDevice, kHost, kHostRegistered, kCode, kKernarg };

struct Allocation {
  uint64_t base = 0;
  uint64_t bytes = 0;
  AllocationKind kind = AllocationKind::kDevice;
  uint32_t id = 0;      ///< counts up; names the allocation in reports
  int32_t device = -1;  ///< ordinal of the owner, if any
  std::string name;
  bool freed = false;
  bool accessible = true;  ///< in the view of a device: false for other devices' memory without peer access

  uint64_t end() const { return base + bytes; }
};

/// Immutable view of the allocations at one moment, sorted by address; live and freed ones.
class AllocationTable {
 public:
  explicit AllocationTable(std::vector<Allocation> sorted) : ranges_(std::move(sorted)) {}
  /// The live allocation that holds all of [address, address + bytes), or nullptr.
  const Allocation* find(uint64_t address, uint64_t bytes) const;
  /// For messages: what lies at, before or behind an address ("3 bytes behind allocation 7 …", "inside freed …").
  std::string describe(uint64_t address) const;
  const std::vector<Allocation>& ranges() const { return ranges_; }

 private:
  std::vector<Allocation> ranges_;
};

class Memory {
 public:
  static Result<std::shared_ptr<Memory>> create();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Address of `bytes` zeroed bytes, aligned to 256 (4096 from one page on), with a red zone on both sides.
  Result<uint64_t> allocate(uint64_t bytes, AllocationKind kind = AllocationKind::kDevice, std::string name = {},
                            int device = -1);
  /// The pages are given back; the addresses are not used again, so later accesses are reported as use after free.
  Status free(uint64_t base);
  /// Makes ordinary host memory accessible to kernels.
  Status register_host(void* pointer, uint64_t bytes, std::string name = {});
  Status unregister_host(void* pointer);
  std::shared_ptr<const AllocationTable> table() const { return table(~uint64_t(0)); }
  /// As a device sees it: memory of a device whose bit is not set in `devices` is not accessible.
  std::shared_ptr<const AllocationTable> table(uint64_t devices) const;

  /// Puts a live allocation into shared memory (its contents stay) and returns the file descriptor, which stays the
  /// allocation's own. Nothing may access the allocation meanwhile.
  Result<int> share(uint64_t base);
  /// Maps `bytes` that another process shares. `descriptor` may be closed afterwards. Ends with free().
  Result<uint64_t> attach(int descriptor, uint64_t bytes, std::string name, int device);

  /// The reserved range, for shadow memory laid out in parallel (one shadow cell per so many bytes).
  uint64_t arena_base() const { return arena_; }
  uint64_t arena_bytes() const { return arena_bytes_; }

 private:
  Memory(uint64_t arena, uint64_t bytes) : arena_(arena), arena_bytes_(bytes), next_(arena + 65536) {}
  void insert(Allocation allocation);
  void release_pages(const Allocation& allocation);
  Result<uint64_t> place(uint64_t bytes, uint64_t alignment);

  uint64_t arena_, arena_bytes_, next_;
  uint32_t next_id_ = 1;
  mutable std::mutex mutex_;
  std::vector<Allocation> ranges_;  // sorted by base
  uint64_t freed_ = 0;              // of them
  std::map<uint64_t, int> shared_;  // descriptors of shared allocations, by base
  mutable std::map<uint64_t, std::shared_ptr<const AllocationTable>> tables_;  // made on demand, by devices
};

}  // namespace crest_sim
