// Shadow of global memory: which bytes were never written, and which workgroups touched which dwords in a launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "crest_sim/memory.h"

namespace crest_sim {

struct WorkgroupCheck;

/// Who touched the dwords of one page. A tag is segment << 5 | wave; a segment is what a workgroup did between two
/// points where it could be ordered with others. Tags below the launch's base are older.
struct GlobalPage {
  static constexpr uint32_t kDwords = 1024;
  static constexpr uint32_t kSplit = 0xffffffff;  ///< see `bytes`
  uint32_t writer[kDwords], writer_meta[kDwords];
  uint32_t reader[kDwords], reader_meta[kDwords];
  uint32_t reader2[kDwords], reader2_meta[kDwords];  ///< the one before `reader`

  struct ByteRecord {
    uint32_t writer, writer_meta, reader, reader_meta;
  };
  std::unique_ptr<std::unordered_map<uint32_t, ByteRecord>> bytes;  ///< of dwords used at byte granularity
};

class GlobalRaces {
 public:
  GlobalPage& page(uint64_t number) {
    Slot& s = cache_[number % kCache];
    if (s.number != number) s = {number, &find(number)};
    return *s.page;
  }
  /// For a new launch: the tags of older ones mean nothing.
  void begin();
  uint32_t next_segment = 1;
  std::vector<std::pair<GlobalPage*, uint32_t>> split;

 private:
  static constexpr uint32_t kCache = 64;
  struct Slot {
    uint64_t number = ~uint64_t(0);
    GlobalPage* page = nullptr;
  };
  GlobalPage& find(uint64_t number);
  Slot cache_[kCache];
  std::unordered_map<uint64_t, std::unique_ptr<GlobalPage>> pages_;
};

/// Which segments come before which. A workgroup that reads what another one wrote as a synchronisation (atomic or
/// coherent access) sees everything that was released until then.
struct GlobalOrder {
  struct Segment {
    uint64_t workgroup = 0;
    uint32_t epoch = 0;
    uint64_t released = 0;  ///< time; 0: still open
    WorkgroupCheck* owner = nullptr;
  };
  std::unique_ptr<GlobalRaces> races;
  std::vector<Segment> segments;
  uint32_t first_segment = 0;
  uint64_t time = 0;

  Segment& operator[](uint32_t tag) { return segments[(tag >> 5) - first_segment]; }
  uint32_t base_tag() const { return first_segment << 5; }
  uint32_t open(uint64_t workgroup, uint32_t epoch, WorkgroupCheck* owner);
};

/// Belongs to a Checker.
class MemoryShadow {
 public:
  void mark_uninitialised(uint64_t base, uint64_t bytes);
  void mark_initialised(uint64_t base, uint64_t bytes);
  bool any() const { return any_.load(std::memory_order_relaxed); }
  /// True if none of the bytes was ever written.
  bool is_uninitialised(uint64_t address, uint32_t bytes);

  std::unique_ptr<GlobalRaces> take_races();
  void give_back(std::unique_ptr<GlobalRaces> races);

 private:
  static constexpr uint64_t kPage = 4096;
  struct Bits {
    uint64_t word[kPage / 64];  ///< set: not written
  };
  bool in_range(uint64_t address) const;
  Bits* writable(uint64_t page);
  void set(uint64_t base, uint64_t bytes, bool value);

  std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::map<uint64_t, uint64_t> ranges_;  ///< begin → end of what was marked as a whole
  std::unordered_map<uint64_t, std::unique_ptr<Bits>> pages_;
  std::vector<std::unique_ptr<GlobalRaces>> spare_;
};

}  // namespace crest_sim
