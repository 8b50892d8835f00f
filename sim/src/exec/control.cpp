// Branches, barriers, mode registers and everything that only matters to checks and timing.
#include "exec/common.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

void nop(Wave&, const Instruction&) {}

void jump(Wave& w, const Instruction& i, int32_t index, u64 address) {
  if (index < 0)
    raise_fault(w, i, FaultKind::kBranchTarget, -1, address, "branch to an address where no instruction starts");
  w.pc = w.code + index;
}

u64 code_address(const Wave& w) {
  const LaunchContext& launch = *w.workgroup->launch;
  return launch.image_base + launch.code->section_address;
}

void jump_to_address(Wave& w, const Instruction& i, u64 address) {
  const LaunchContext& launch = *w.workgroup->launch;
  jump(w, i, launch.code->index_at(address - launch.image_base), address);
}

template <class Condition>
void branch_if(Wave& w, const Instruction& i) {
  if (Condition{}(w)) jump(w, i, i.target, i.pc + 4 + static_cast<u64>(static_cast<int64_t>(i.offset) * 4));
}
template <class Condition>
void add_branch(Registry& r, const char* name, Condition) {
  r.add<branch_if<Condition>>(name);
}

void register_branches(Registry& r) {
  add_branch(r, "s_branch", [](Wave&) { return true; });
  add_branch(r, "s_cbranch_scc0", [](Wave& w) { return w.s[cell::kScc] == 0; });
  add_branch(r, "s_cbranch_scc1", [](Wave& w) { return w.s[cell::kScc] != 0; });
  add_branch(r, "s_cbranch_vccz", [](Wave& w) { return w.vcc() == 0; });
  add_branch(r, "s_cbranch_vccnz", [](Wave& w) { return w.vcc() != 0; });
  add_branch(r, "s_cbranch_execz", [](Wave& w) { return w.exec() == 0; });
  add_branch(r, "s_cbranch_execnz", [](Wave& w) { return w.exec() != 0; });
  for (auto name :
       {"s_cbranch_cdbgsys", "s_cbranch_cdbguser", "s_cbranch_cdbgsys_or_user", "s_cbranch_cdbgsys_and_user"})
    add_branch(r, name, [](Wave&) { return false; });
  r.add<[](Wave& w, const Instruction& i) { w.write64(i.dst[0].reg, code_address(w) + i.pc + i.size); }>("s_getpc_b64");
  r.add<[](Wave& w, const Instruction& i) { jump_to_address(w, i, scalar64(w, i.src[0])); }>("s_setpc_b64");
  r.add<[](Wave& w, const Instruction& i) {
    u64 to = scalar64(w, i.src[0]);
    w.write64(i.dst[0].reg, code_address(w) + i.pc + i.size);
    jump_to_address(w, i, to);
  }>("s_swappc_b64");
  r.add<[](Wave& w, const Instruction& i) {
    w.write64(i.dst[0].reg, code_address(w) + i.pc + i.size);
    jump(w, i, i.target, i.pc);
  }>("s_call_b64");
}

void end(Wave& w, const Instruction&) {
  w.state = WaveState::kEnded;
  w.budget = 0;
}

void barrier(Wave& w, const Instruction&) {
  w.state = WaveState::kAtBarrier;
  w.budget = 0;
}

void sleep(Wave& w, const Instruction&) {
  ++w.workgroup->yields;
  w.budget = 0;
}

void trap(Wave& w, const Instruction& i) {
  raise_fault(w, i, FaultKind::kTrap, -1, static_cast<u32>(i.offset),
              "s_trap: the kernel called the trap handler (abort or failed assertion)");
}

/// Fields of a hardware register as s_getreg and s_setreg name them.
struct HwReg {
  u32 id, offset, mask;
  explicit HwReg(const Instruction& i) {
    u32 imm = static_cast<u32>(i.offset) & 0xffff;
    id = imm & 63;
    offset = (imm >> 6) & 31;
    u32 size = (imm >> 11) + 1;
    mask = size >= 32 ? ~0u : (1u << size) - 1;
  }
};

constexpr u32 kRegMode = 1, kRegStatus = 2, kRegMemBases = 15, kRegShaderCycles = 29;

u32 read_hwreg(Wave& w, u32 id) {
  switch (id) {
    case kRegMode:
      return w.mode;
    case kRegStatus:
      return w.s[cell::kScc] | static_cast<u32>(w.exec() == 0) << 9 | static_cast<u32>(w.vcc() == 0) << 10;
    case kRegMemBases:
      return 0x00010002;  // apertures of LDS and scratch, bits 63:48 of their addresses
    case kRegShaderCycles:
      return static_cast<u32>(w.instructions) & 0xfffff;
    default:
      return 0;
  }
}

void getreg(Wave& w, const Instruction& i) {
  HwReg h(i);
  w.s[i.dst[0].reg] = (read_hwreg(w, h.id) >> h.offset) & h.mask;
}

void enter_mode(Wave& w, u32 mode) {
  set_mode(w, mode);
  _mm_setcsr(w.mxcsr);
}

void write_hwreg(Wave& w, const Instruction& i, u32 value) {
  HwReg h(i);
  if (h.id == kRegMode) enter_mode(w, (w.mode & ~(h.mask << h.offset)) | (value & h.mask) << h.offset);
}

/// Messages with an answer: only the clock has one here that does not depend on a driver.
template <bool Wide>
void send_message(Wave& w, const Instruction& i) {
  constexpr int32_t kGetRealTime = 131;
  if (i.offset != kGetRealTime)
    raise_fault(w, i, FaultKind::kUnknownInstruction, -1, static_cast<u32>(i.offset),
                "s_sendmsg_rtn: the simulator answers MSG_RTN_GET_REALTIME only");
  if (Wide)
    w.write64(i.dst[0].reg, w.instructions);
  else
    w.s[i.dst[0].reg] = static_cast<u32>(w.instructions);
}

void register_modes(Registry& r) {
  r.add<send_message<false>>("s_sendmsg_rtn_b32");
  r.add<send_message<true>>("s_sendmsg_rtn_b64");
  r.add<getreg>("s_getreg_b32");
  r.add<[](Wave& w, const Instruction& i) { write_hwreg(w, i, scalar(w, i.src[i.src_count - 1])); }>("s_setreg_b32");
  r.add<[](Wave& w, const Instruction& i) { write_hwreg(w, i, scalar(w, i.src[i.src_count - 1])); }>(
      "s_setreg_imm32_b32");
  r.add<[](Wave& w, const Instruction& i) { enter_mode(w, (w.mode & ~15u) | (static_cast<u32>(i.offset) & 15)); }>(
      "s_round_mode");
  r.add<[](Wave& w, const Instruction& i) {
    enter_mode(w, (w.mode & ~0xf0u) | (static_cast<u32>(i.offset) & 15) << 4);
  }>("s_denorm_mode");
  r.add<[](Wave& w, const Instruction& i) { w.priority = static_cast<uint16_t>(i.offset & 3); }>("s_setprio");
}

/// Relative VGPR indexing and vskip change how later instructions are read, so the turn ends and the slower loop goes
/// on.
void set_index_mode(Wave& w, u32 enable) {
  w.gpr_index_enable = static_cast<uint8_t>(enable & 15);
  w.mode = (w.mode & ~(1u << 27)) | (enable ? 1u << 27 : 0);
  w.budget = 0;
}

void register_indexing(Registry& r) {
  r.add<[](Wave& w, const Instruction& i) {
    u32 enable = static_cast<u32>(i.offset) & 15;
    w.s[cell::kM0] = (w.s[cell::kM0] & ~0xf0ffu) | (scalar(w, i.src[0]) & 255) | enable << 12;
    set_index_mode(w, enable | 16);
    w.gpr_index_enable |= 16;
  }>("s_set_gpr_idx_on");
  r.add<[](Wave& w, const Instruction&) { set_index_mode(w, 0); }>("s_set_gpr_idx_off");
  r.add<[](Wave& w, const Instruction& i) { w.s[cell::kM0] = (w.s[cell::kM0] & ~255u) | (scalar(w, i.src[0]) & 255); }>(
      "s_set_gpr_idx_idx");
  r.add<[](Wave& w, const Instruction& i) {
    u32 enable = static_cast<u32>(i.offset) & 15;
    w.s[cell::kM0] = (w.s[cell::kM0] & ~0xf000u) | enable << 12;
    w.gpr_index_enable = static_cast<uint8_t>(enable | (w.gpr_index_enable & 16));
  }>("s_set_gpr_idx_mode");
  r.add<[](Wave& w, const Instruction& i) {
    w.vskip = (scalar(w, i.src[0]) >> (scalar(w, i.src[1]) & 31)) & 1;
    w.mode = (w.mode & ~(1u << 28)) | (w.vskip ? 1u << 28 : 0);
    w.budget = 0;
  }>("s_setvskip");
}

}  // namespace

void register_control(Registry& r) {
  register_branches(r);
  register_modes(r);
  register_indexing(r);
  r.add<end>("s_endpgm");
  r.add<end>("s_endpgm_saved");
  r.add<barrier>("s_barrier");
  r.add<sleep>("s_sleep");
  r.add<trap>("s_trap");
  for (auto name : {"s_nop",
                    "s_waitcnt",
                    "s_waitcnt_vscnt",
                    "s_waitcnt_vmcnt",
                    "s_waitcnt_lgkmcnt",
                    "s_waitcnt_expcnt",
                    "s_waitcnt_depctr",
                    "s_wait_idle",
                    "s_wakeup",
                    "s_sethalt",
                    "s_wait_event",
                    "s_delay_alu",
                    "s_clause",
                    "s_sendmsg",
                    "s_sendmsghalt",
                    "s_set_inst_prefetch_distance",
                    "s_inst_prefetch",
                    "s_code_end",
                    "s_version",
                    "s_incperflevel",
                    "s_decperflevel",
                    "s_setkill",
                    "s_ttracedata",
                    "s_ttracedata_imm",
                    "s_icache_inv",
                    "s_dcache_inv",
                    "s_dcache_wb",
                    "s_dcache_inv_vol",
                    "s_dcache_wb_vol",
                    "s_gl1_inv",
                    "buffer_gl0_inv",
                    "buffer_gl1_inv",
                    "buffer_inv",
                    "buffer_wbl2",
                    "buffer_wbinvl1",
                    "buffer_wbinvl1_vol",
                    "buffer_wbinvl1_sc",
                    "v_nop",
                    "v_clrexcp",
                    "v_pipeflush",
                    "ds_nop"})
    r.add<nop>(name);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
