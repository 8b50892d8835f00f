// What the checks remember about waves, workgroups and the launch.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "check/global_shadow.h"
#include "check/lds_shadow.h"
#include "check/plan.h"
#include "crest_sim/device.h"
#include "crest_sim/wave.h"

namespace crest_sim {

class LaunchCheck;
struct WorkgroupCheck;

/// A memory instruction that a counter still covers.
struct Outstanding {
  const CheckPlan* plan = nullptr;
  RegisterRange target;  ///< registers that will be written; count 0: none
  uint32_t number = 0;   ///< counts the wave's memory instructions
  uint32_t tag = 0;      ///< of the LDS shadow
  bool to_lds = false;
  bool writes_lds = false;
};

/// Operations of one counter in the order of issue. The hardware's counters hold 63 at most, so older ones are done.
struct OutstandingQueue {
  static constexpr uint32_t kSize = 64;
  Outstanding at[kSize];
  uint32_t first = 0, count = 0;

  Outstanding& oldest() { return at[first % kSize]; }
  Outstanding& operator[](uint32_t n) { return at[(first + n) % kSize]; }
  void pop() { ++first, --count; }
};

/// A taken branch fetches its target: at least 32 clocks (assumed; AMD publishes no figure).
inline constexpr uint32_t kTakenBranchSlots = 8;

enum class Counter : uint8_t { kVm, kVs, kLds, kSmem };
inline constexpr int kCounters = 4;

struct alignas(64) WaveCheck {
  /// Registers that need a closer look: waiting for memory, undefined (in part), or dangerous to use too soon. `hot` is
  /// all of these.
  uint64_t hot[kHotWords] = {}, pending_set[kHotWords] = {}, undefined_set[kHotWords] = {}, marked_set[kHotWords] = {};
  const CheckPlan* plans = nullptr;
  uint32_t slot = 1024;      ///< issue slots since the wave began; a lower bound of the time in units of four clocks
  uint32_t matrix_free = 0;  ///< slot at which the matrix unit takes the next MFMA
  const CheckPlan* recent[16] = {};
  uint32_t recent_slot[16] = {};
  uint32_t recent_next = 0;
  uint32_t memory_number = 0;

  OutstandingQueue queue[kCounters];
  uint8_t pending[kRegisters] = {};
  uint32_t mark_slot[kRegisters] = {};
  const CheckPlan* mark[kRegisters] = {};
  uint64_t undefined[kVectorRows] = {};        ///< lanes
  uint32_t undefined_bits[cell::kCount] = {};  ///< bits
  std::vector<uint64_t> undefined_scratch;     ///< lanes, per dword of the segment

  void add(uint64_t* set, uint32_t r) {
    uint64_t bit = uint64_t(1) << (r % 64);
    set[r / 64] |= bit;
    hot[r / 64] |= bit;
  }
  void remove(uint64_t* set, uint32_t r) {
    set[r / 64] &= ~(uint64_t(1) << (r % 64));
    hot[r / 64] = pending_set[r / 64] | undefined_set[r / 64] | marked_set[r / 64];
  }
  bool touches(const uint64_t* set, const CheckPlan& p) const {
    uint64_t x = 0;
    for (uint32_t k = 0; k < p.words; ++k) x |= set[p.word[k]] & p.mask[k];
    return x != 0;
  }
  /// The quick test of the interpreter loop.
  bool touches_hot(const CheckPlan& p) const {
    uint64_t x = (hot[p.word[0]] & p.mask[0]) | (hot[p.word[1]] & p.mask[1]) | (hot[p.word[2]] & p.mask[2]);
    for (uint32_t k = 3; k < p.words; ++k) x |= hot[p.word[k]] & p.mask[k];
    return x != 0;
  }
};

/// LDS writes of a wave that had not been waited for when it reached a barrier.
struct LateWrite {
  uint32_t tag;          ///< as in the LDS shadow
  uint32_t instruction;  ///< index
  uint32_t number;       ///< of the operation
};

struct WorkgroupCheck final : WorkgroupObserver {
  LaunchCheck* launch = nullptr;
  WorkgroupObserver* next = nullptr;  ///< what else follows the workgroup
  Workgroup* workgroup = nullptr;
  std::vector<WaveCheck> waves;
  LdsShadow lds;
  std::vector<LateWrite> late;
  uint32_t segment = 0;  ///< in the launch's GlobalOrder
  uint64_t acquired = 0;
  bool dirty = false;  ///< plain accesses since the last release

  void start(Workgroup& g);
  void finish();
  void barrier_released(Workgroup& g) override;
};

/// The check that a wave runs under; only in the loop with checks.
inline WorkgroupCheck& check_of(const Workgroup& g) { return static_cast<WorkgroupCheck&>(*g.observer); }
inline WaveCheck& check_of(const Wave& w) { return check_of(*w.workgroup).waves[w.index]; }

/// Everything about one launch. Used from one thread at a time if global races are checked, otherwise only the report
/// list is shared.
class LaunchCheck {
 public:
  LaunchCheck(const LaunchContext& context, const Instruction* code, const CheckOptions& options,
              std::shared_ptr<const std::vector<CheckPlan>> plans, std::shared_ptr<MemoryShadow> memory);
  ~LaunchCheck();
  LaunchCheck(const LaunchCheck&) = delete;
  LaunchCheck& operator=(const LaunchCheck&) = delete;

  const LaunchContext& context;
  const Instruction* code;
  const CheckOptions options;
  const std::shared_ptr<const std::vector<CheckPlan>> plans;
  const std::shared_ptr<MemoryShadow> memory;
  GlobalOrder order;
  const bool cdna, gfx950, gfx1100;

  struct Finding {
    CheckKind kind;
    const Instruction* instruction = nullptr;
    int lane = -1;
    uint64_t address = 0;
    std::string message;
    const Instruction* other = nullptr;
    uint64_t other_workgroup = ~uint64_t(0);  ///< linear; default: the same
    int other_wave = -1;
  };
  /// False if the same finding was known already: the caller need not make a message.
  bool is_new(CheckKind kind, const Instruction& i, const Instruction* other);
  void report(const Wave& wave, Finding finding);
  std::vector<CheckReport> take_reports();

  std::mutex pool_mutex;
  std::vector<std::unique_ptr<WorkgroupCheck>> pool;

 private:
  using Key = std::tuple<CheckKind, uint32_t, uint32_t>;
  std::mutex mutex_;
  std::map<Key, CheckReport> reports_;
};

inline uint32_t index_of(const LaunchCheck& launch, const Instruction& i) {
  return static_cast<uint32_t>(&i - launch.code);
}

/// Hooks of the interpreter loop.
void check_before(Wave& wave, const Instruction& instruction, const CheckPlan& plan);
void check_after(Wave& wave, const Instruction& instruction, const CheckPlan& plan, const MemoryAccess& access);
void check_wait(Wave& wave, const Instruction& instruction);
void mark_results(WaveCheck& check, const CheckPlan& plan);

// Parts of the above.
void check_hazards(Wave& wave, const Instruction& instruction, const CheckPlan& plan);
/// Forgets marks that an instruction overwrites, or that are too old to matter.
void drop_marks(const LaunchCheck& launch, WaveCheck& check, const CheckPlan& plan);
void check_pending(Wave& wave, const Instruction& instruction, const CheckPlan& plan);
void issue_memory(Wave& wave, const Instruction& instruction, const CheckPlan& plan, const MemoryAccess& access);
void propagate(Wave& wave, const Instruction& instruction, const CheckPlan& plan);
void check_lds(Wave& wave, const Instruction& instruction, const CheckPlan& plan, const MemoryAccess& access);
void check_global(Wave& wave, const Instruction& instruction, const CheckPlan& plan, const MemoryAccess& access);
void check_scratch(Wave& wave, const Instruction& instruction, const CheckPlan& plan, const MemoryAccess& access);
/// True while no counter proves that the wave's operation of this number is done.
bool is_outstanding(WaveCheck& check, uint32_t number);

/// Sets which lanes of a register are undefined and keeps the hot bits right.
void set_undefined(WaveCheck& check, uint32_t row, uint64_t lanes, uint64_t value);
void set_undefined_bits(WaveCheck& check, uint32_t cell, uint32_t bits);

}  // namespace crest_sim
