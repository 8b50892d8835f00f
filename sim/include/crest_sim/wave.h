// State of a wave and of a workgroup while they run.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "crest_sim/code_object.h"
#include "crest_sim/instruction.h"
#include "crest_sim/memory.h"

namespace crest_sim {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
};

enum class WaveState : uint8_t { kRunning, kAtBarrier, kEnded };
enum class MemorySpace : uint8_t { kGlobal, kLds, kScratch, kConstant };  // kConstant: SMEM
enum class AccessKind : uint8_t { kLoad, kStore, kAtomic, kLoadToLds };

/// What the last memory instruction of a wave touched, per lane. Memory handlers work in these arrays anyway, so the
/// record costs nothing when nobody looks.
struct MemoryAccess {
  MemorySpace space = MemorySpace::kGlobal;
  AccessKind kind = AccessKind::kLoad;
  uint8_t bytes = 0;       ///< per lane and part
  uint8_t parts = 0;       ///< 0: the instruction touched no memory; 2: paired LDS accesses
  uint64_t lanes = 0;      ///< lanes that accessed memory
  uint64_t clipped = 0;    ///< buffer lanes that the range check dropped
  uint64_t lds_lanes = 0;  ///< flat: the lanes of `lanes` that went to LDS (address[0] holds the LDS offset)
  uint64_t scratch_lanes = 0;
  /// Global: device address. LDS: byte offset in the workgroup's allocation. Scratch: byte offset in the lane's
  /// segment. kLoadToLds: address[0] global source, address[1] LDS destination.
  alignas(64) uint64_t address[2][64];
};

struct Workgroup;

struct alignas(64) Wave {
  uint32_t* v = nullptr;  ///< [row][lane]
  const Instruction* pc = nullptr;
  int32_t budget = 0;      ///< instructions left in this turn; a handler sets it to 0 to give way
  uint32_t lanes = 64;     ///< 32 or 64
  uint64_t full_exec = 0;  ///< all lanes of the wave size (not: of the workgroup)
  WaveState state = WaveState::kRunning;
  uint32_t index = 0;                 ///< in the workgroup
  uint32_t mode = 0;                  ///< MODE register
  uint32_t mxcsr = 0x1f80;            ///< host rounding and denormal control for f32 (see set_mode)
  uint32_t mxcsr_wide = 0x1f80;       ///< the same for f16 and f64, which have their own MODE fields
  const Instruction* code = nullptr;  ///< first instruction of the object
  Workgroup* workgroup = nullptr;
  uint64_t instructions = 0;  ///< executed so far
  // s_set_gpr_idx: index added to VGPR numbers, and which operands use it (1 src0, 2 src1, 4 src2, 8 dst).
  uint8_t gpr_index_enable = 0;
  bool vskip = false;
  uint16_t priority = 0;
  uint32_t vgpr_limit = 256, agpr_limit = 0;
  uint64_t mask_exec = 0;  ///< EXEC that `mask_row` was made for
  alignas(64) uint32_t s[cell::kCount];
  alignas(64) uint32_t mask_row[64];  ///< all ones for active lanes; see exec_mask_row()

  uint64_t exec() const { return lanes == 64 ? read64(cell::kExec) : s[cell::kExec]; }
  uint64_t vcc() const { return lanes == 64 ? read64(cell::kVcc) : s[cell::kVcc]; }
  uint64_t read64(uint32_t index) const {
    uint64_t value;
    std::memcpy(&value, &s[index], 8);
    return value;
  }
  void write64(uint32_t index, uint64_t value) { std::memcpy(&s[index], &value, 8); }
};

class WorkgroupObserver;
struct LaunchContext;

/// Bounds of an allocation.
struct MemoryWindow {
  uint64_t begin = 1, end = 0;
};

struct Workgroup {
  Dim3 id{0, 0, 0};
  uint64_t linear = 0;  ///< x fastest
  std::vector<Wave> waves;
  uint8_t* lds = nullptr;
  uint32_t lds_bytes = 0;
  uint8_t* scratch = nullptr;  ///< [wave][dword of the lane's segment][lane]
  uint32_t scratch_bytes = 0;  ///< per lane, a multiple of 4
  uint32_t barriers = 0;       ///< barriers passed
  uint64_t yields = 0;         ///< hints that the workgroup is waiting for another one
  const LaunchContext* launch = nullptr;
  const AllocationTable* memory = nullptr;
  MemoryWindow windows[16];  ///< allocations that instructions hit last, by a few bits of their pc
  uint64_t sequence = 0;     ///< place in the order of this round (see run/scheduler.h)
  MemoryAccess* access = nullptr;
  WorkgroupObserver* observer = nullptr;
  std::unique_ptr<uint32_t[], void (*)(uint32_t*)> registers{nullptr, +[](uint32_t* p) { std::free(p); }};
  std::vector<uint8_t> lds_storage, scratch_storage;

  MemoryWindow& window_of(const Instruction& instruction) { return windows[instruction.pc >> 2 & 15]; }
  uint32_t* scratch_of(const Wave& wave) const {
    return reinterpret_cast<uint32_t*>(scratch + size_t(wave.index) * scratch_bytes * wave.lanes);
  }
};

}  // namespace crest_sim
