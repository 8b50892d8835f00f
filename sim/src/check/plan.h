// What the checks need to know about an instruction, worked out once per kernel.
#pragma once

#include <vector>

#include "crest_sim/check.h"
#include "crest_sim/code_object.h"
#include "crest_sim/instruction.h"
#include "crest_sim/target.h"

namespace crest_sim {

/// Registers in one numbering: VGPR and AGPR rows, then scalar cells.
inline constexpr uint32_t kVectorRows = 512, kScalarFirst = 512, kRegisters = 512 + cell::kCount;
inline constexpr uint32_t kHotWords = (kRegisters + 63) / 64;

struct RegisterRange {
  uint16_t first = 0;
  uint16_t count = 0;
};

/// How definedness travels from sources to results.
enum class Flow : uint8_t {
  kNone,
  kVector,     ///< any undefined source lane makes the result lane undefined
  kPerDword,   ///< dword k of the result depends on dword k of the source
  kPackedF32,  ///< v_pk_*_f32: op_sel chooses the dwords
  kUpward,     ///< 64-bit sums and left shifts: the low dword does not depend on the high ones
  kDownward,   ///< 64-bit right shifts: the high dword does not depend on the low one
  kSelect,     ///< v_cndmask
  kCarry,      ///< third source is a lane mask
  kCompare,    ///< result is a lane mask
  kReadLane,
  kReadFirstLane,
  kWriteLane,
  kPermLane16,
  kPermLaneX16,
  kPermLane64,
  kSwap,
  kClear,  ///< x ^ x, x - x
  kMatrix,
  kBitwise,  ///< SALU and/or/xor/not…: bit by bit
  kScalarMove,
  kScalarShift,
  kScalarSum,  ///< bits below the lowest undefined one are known
  kScalarSelect,
  kSaveExec,
  kScalar,  ///< any undefined source bit makes the whole result undefined
  kScalarCompare,
  kSink,      ///< branches and jumps
  kMemory,    ///< see the memory hooks
  kExchange,  ///< ds_bpermute, ds_permute, ds_swizzle
};

/// Bitwise SALU operations by truth table, and what SAVEEXEC does.
enum class BitOp : uint8_t { kAnd, kOr, kXor, kAndNot, kOrNot, kNand, kNor, kXnor, kNot, kNotAnd, kNotOr };

enum class Port : uint8_t { kOther, kSalu, kValu, kTrans, kMatrix, kMemory, kLds };

enum PlanFlag : uint32_t {
  kPlanBefore = 1,  ///< the slow path looks at it every time
  kPlanAfter = 2,   ///< touches memory
  kPlanMark = 4,    ///< its results are dangerous for some instructions (see hazards.cpp)
  kPlanSkip = 8,    ///< has no effect of its own: not executed
  kPlanWait = 16,
  kPlanNop = 32,
  kPlanBranch = 64,
  kPlanWritesScalar = 128,  ///< VALU with a scalar result
  kPlanWritesExec = 256,    ///< VALU that writes EXEC
  kPlanDot = 512,
  kPlanPartial = 1024,  ///< SDWA or op_sel result
  kPlanXdl = 2048,      ///< MFMA on the narrow-type unit
  kPlanWide = 4096,     ///< store of more than 8 bytes per lane
  kPlanStore = 8192,
  kPlanF64 = 16384,       ///< f64 MFMA
  kPlanDivides = 32768,   ///< v_div_fmas
  kPlanSwapRows = 65536,  ///< v_permlane*_swap
};

struct CheckPlan {
  uint64_t mask[kHotWords] = {};  ///< registers touched, as bits of the hot words
  uint8_t word[kHotWords] = {};
  uint8_t words = 0;
  uint32_t flags = 0;
  Flow flow = Flow::kNone;
  BitOp op = BitOp::kAnd;
  Port port = Port::kOther;
  uint8_t nops = 0;    ///< issue slots of s_nop beyond the first
  uint8_t passes = 0;  ///< MFMA: issue slots of four clocks
  uint8_t matrix_m = 0, matrix_blocks = 0;
  uint8_t reads = 0, writes = 0;
  RegisterRange read[9];
  RegisterRange write[4];
  const Instruction* instruction = nullptr;
};

std::vector<CheckPlan> make_plans(const Instruction* code, size_t count, const TargetInfo& target, uint32_t lanes,
                                  const CheckOptions& options);

/// "v[4:5]", "a7", "s3", "vcc", for messages.
std::string register_name(uint32_t number);

}  // namespace crest_sim
