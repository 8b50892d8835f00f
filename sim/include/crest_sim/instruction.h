// A decoded instruction: everything the interpreter, the checks and the timing model need to know, resolved once.
//
// Registers live in two arrays of a Wave:
//   * vector file `v`: rows of `lanes` dwords. Row r < 256 is VGPR r, row 256 + i is AGPR i. `Operand::row` is the
//   dword
//     offset of the first row (register number × lanes), so that a handler needs one addition to find its lanes and the
//     high half of a 64-bit register is `lanes` dwords further.
//   * scalar file `s`: one dword per cell, indexed by the hardware's operand encoding (s0.., VCC, TTMP, M0, EXEC) and
//   by
//     the extra cells of `cell::` (SCC, apertures, null), so that reading any scalar is one load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace crest_sim {

struct Wave;
struct Instruction;
using ExecuteFn = void (*)(Wave&, const Instruction&);

namespace cell {
inline constexpr uint16_t kFlatScratch = 102;  // gfx9 only; ordinary SGPRs on RDNA3
inline constexpr uint16_t kXnackMask = 104;
inline constexpr uint16_t kVcc = 106;
inline constexpr uint16_t kTtmp = 108;
inline constexpr uint16_t kM0 = 124;  // on every architecture (RDNA3 encodes it as 125)
inline constexpr uint16_t kExec = 126;
inline constexpr uint16_t kScc = 128;
inline constexpr uint16_t kVccz = 129;   // filled before an instruction that reads it
inline constexpr uint16_t kExecz = 130;  // filled before an instruction that reads it
inline constexpr uint16_t kSharedBase = 132;
inline constexpr uint16_t kSharedLimit = 134;
inline constexpr uint16_t kPrivateBase = 136;
inline constexpr uint16_t kPrivateLimit = 138;
inline constexpr uint16_t kPopsWaveId = 140;
inline constexpr uint16_t kZero = 144;   // what `null` reads: 16 cells that stay 0
inline constexpr uint16_t kTrash = 160;  // where writes to `null` go: 16 cells that nobody reads
inline constexpr uint16_t kCount = 176;
}  // namespace cell

enum class OperandKind : uint8_t { kNone, kVector, kScalar, kLiteral };

/// Operand::mods. Which of them an encoding can have depends on its format.
enum OperandMod : uint8_t {
  kNeg = 1,   ///< -x; neg_lo of packed instructions; "signed" of integer WMMA/dot
  kAbs = 2,   ///< |x|
  kSext = 4,  ///< SDWA sext(x)
  kHigh = 8,  ///< 16-bit operand in the upper half of the register (op_sel, true16 .h); op_sel of packed instructions
  kHighHi = 16,  ///< op_sel_hi: what the upper result half reads
  kNegHi = 32,   ///< neg_hi
};

/// SDWA sub-dword selection, in the order of the encoding.
enum class Select : uint8_t { kByte0, kByte1, kByte2, kByte3, kWord0, kWord1, kDword };

struct Operand {
  OperandKind kind = OperandKind::kNone;
  uint8_t dwords = 1;  ///< registers covered (1 for 16-bit operands and for literals)
  uint8_t mods = 0;
  Select select = Select::kDword;
  uint16_t reg = 0;  ///< kVector: row number (AGPR i = 256 + i); kScalar: cell
  uint16_t reserved = 0;
  union {
    uint64_t literal = 0;  ///< kLiteral: the value as the operation reads it (sign-extended integers; 1.0 as its bits)
    uint64_t row;          ///< kVector: reg × lanes
  };

  bool is_vector() const { return kind == OperandKind::kVector; }
  bool is_scalar() const { return kind == OperandKind::kScalar; }
  bool is_literal() const { return kind == OperandKind::kLiteral; }
};

enum class InstructionClass : uint8_t {
  kUnknown,
  kNop,
  kWait,
  kSalu,
  kBranch,
  kMessage,
  kBarrier,
  kEnd,
  kSmem,
  kSmemStore,
  kSmemAtomic,
  kValu,
  kValuTrans,
  kValu64,  // trans: rcp, rsq, sqrt, exp, log, sin, cos; 64: quarter/half-rate f64
  kMatrix,
  kGlobalLoad,
  kGlobalStore,
  kGlobalAtomic,
  kFlatLoad,
  kFlatStore,
  kFlatAtomic,
  kBufferLoad,
  kBufferStore,
  kBufferAtomic,
  kBufferToLds,  // also global_load_lds
  kScratchLoad,
  kScratchStore,
  kLdsLoad,
  kLdsStore,
  kLdsAtomic,
  kLdsPermute,
  kCache,  // buffer_inv, gl0_inv, wbl2 …
};

/// How close to hardware a result is. Reported per executed mnemonic.
enum class Fidelity : uint8_t {
  kExact,        ///< bit for bit by the published ISA text
  kModelled,     ///< by a published, hardware-checked model or a documented rule of ours where the ISA text is silent
  kApproximate,  ///< hardware tables are unpublished (transcendentals): correct to about 1 ulp
};

enum class Dpp : uint8_t { kNone, kDpp16, kDpp8 };

/// Where each lane reads from, for DPP and the like. One shared object per pattern.
struct LaneMap {
  uint8_t source[64];
  uint64_t valid;  ///< lanes whose source exists (an inactive source lane is a run-time matter)
};

enum CacheBit : uint8_t { kCacheSc0 = 1, kCacheSc1 = 2, kCacheNt = 4, kCacheDlc = 8 };  // glc = sc0, slc = nt on RDNA3

enum InstructionFlag : uint16_t {
  kFlagOffen = 1,        // buffer: VGPR byte offset
  kFlagIdxen = 2,        // buffer: VGPR index
  kFlagLds = 4,          // buffer/global load into LDS
  kFlagReturn = 8,       // atomic with return
  kFlagSaddr = 16,       // global/scratch: scalar base present
  kFlagVaddr = 32,       // scratch: vector offset present
  kFlagReadsExecz = 64,  // src_vccz/src_execz occur
  kFlagTrue16 = 128,     // 16-bit operands name register halves
  kFlagGds = 256,
  kFlagKeepHalf = 512,  // a 16-bit result leaves the other half of its register alone
  kFlagSparse = 1024,   // SMFMAC: C is the destination, src2 the index
};

/// Registers that an instruction uses without naming them as operands (from LLVM's instruction tables).
enum ImplicitUse : uint16_t {
  kReadsScc = 1,
  kWritesScc = 2,
  kReadsVcc = 4,
  kWritesVcc = 8,
  kReadsExec = 16,
  kWritesExec = 32,
  kReadsM0 = 64,
  kWritesM0 = 128,
  kReadsMode = 256,
};

struct Instruction {
  ExecuteFn execute = nullptr;
  Operand dst[2];
  Operand src[5];
  uint8_t dst_count = 0;
  uint8_t src_count = 0;
  uint8_t size = 4;       ///< bytes
  uint8_t step = 1;       ///< instructions to advance; > 1 jumps over following waits and nops (plain loop only)
  uint16_t mnemonic = 0;  ///< index for mnemonic_info()
  InstructionClass cls = InstructionClass::kUnknown;
  Fidelity fidelity = Fidelity::kExact;
  uint32_t pc = 0;      ///< byte offset from the start of the code section
  int32_t target = -1;  ///< branches: index of the target instruction; -1: none or not an instruction
  int32_t offset = 0;   ///< offset:, offset0:, simm16, immediate of the instruction's own
  int32_t offset2 = 0;  ///< offset1: and second immediates
  uint16_t flags = 0;
  uint16_t implicit = 0;  ///< ImplicitUse
  uint8_t cache = 0;
  bool clamp = false;
  uint8_t omod = 0;  ///< 0 none, 1 ×2, 2 ×4, 3 ÷2
  Dpp dpp = Dpp::kNone;
  uint8_t row_mask = 15;
  uint8_t bank_mask = 15;
  bool bound_ctrl = false;
  bool fetch_inactive = false;
  bool sdwa = false;
  Select dst_select = Select::kDword;
  uint8_t dst_unused = 0;                ///< SDWA: 0 pad, 1 sign-extend, 2 preserve
  uint8_t cbsz = 0, abid = 0, blgp = 0;  ///< MFMA broadcast/format controls
  uint16_t dpp_ctrl = 0;
  uint16_t wait_vm = 0xffff, wait_lgkm = 0xffff, wait_exp = 0xffff,
           wait_vs = 0xffff;            ///< s_waitcnt*: 0xffff = not waited for
  const LaneMap* lane_map = nullptr;    ///< DPP
  const void* data = nullptr;           ///< descriptor of the instruction's family (matrix operations)
  const Instruction* second = nullptr;  ///< VOPD: the Y half; both halves read before either writes
  ExecuteFn inner = nullptr;            ///< variant chosen at run time (by MODE)
  ExecuteFn wrapped = nullptr;          ///< the operation itself when `execute` wraps it
};

struct MnemonicInfo {
  std::string_view name;  ///< base mnemonic without encoding suffix: "v_add_f32"
  InstructionClass cls;
  Fidelity fidelity;
};

/// Names are interned for the life of the process; safe to call from any thread.
const MnemonicInfo& mnemonic_info(uint16_t mnemonic);
size_t mnemonic_count();

}  // namespace crest_sim
