// The loop that runs a wave, and the binding of decoded instructions to handlers.
#include "exec/interpreter.h"

#include <typeinfo>

#include "check/state.h"
#include "exec/common.h"
#include "run/levels.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

constexpr uint32_t kDefaultMxcsr = 0x1f80;

void unknown(Wave& w, const Instruction& i) {
  raise_fault(w, i, FaultKind::kUnknownInstruction, -1, i.pc, "instruction that the simulator does not know");
}

void register_range(Wave& w, const Instruction& i) {
  raise_fault(w, i, FaultKind::kRegisterRange, -1, i.pc, "instruction names a register beyond the kernel's allocation");
}

/// src_vccz and src_execz are not kept up to date; they are made when an instruction reads them.
void with_zero_flags(Wave& w, const Instruction& i) {
  w.s[cell::kVccz] = w.vcc() == 0;
  w.s[cell::kExecz] = w.exec() == 0;
  i.wrapped(w, i);
}

/// VOPD. If one half does not read what the other writes, that order is right; otherwise the result of X is put aside.
void pair_in_order(Wave& w, const Instruction& i) {
  i.wrapped(w, i);
  i.second->execute(w, *i.second);
}
void pair_reversed(Wave& w, const Instruction& i) {
  i.second->execute(w, *i.second);
  i.wrapped(w, i);
}
void pair_crossed(Wave& w, const Instruction& i) {
  uint32_t* d = row(w, i.dst[0]);
  alignas(64) uint32_t before[64], result[64];
  std::memcpy(before, d, w.lanes * 4);
  i.wrapped(w, i);
  std::memcpy(result, d, w.lanes * 4);
  std::memcpy(d, before, w.lanes * 4);
  i.second->execute(w, *i.second);
  std::memcpy(d, result, w.lanes * 4);
}

bool reads(const Instruction& i, uint16_t reg) {
  for (int k = 0; k < i.src_count; ++k)
    if (i.src[k].is_vector() && reg >= i.src[k].reg && reg < i.src[k].reg + i.src[k].dwords) return true;
  return false;
}

void bind_pair(Instruction& i) {
  i.wrapped = i.execute;
  bool y_reads_x = reads(*i.second, i.dst[0].reg), x_reads_y = reads(i, i.second->dst[0].reg);
  i.execute = !y_reads_x ? pair_in_order : !x_reads_y ? pair_reversed : pair_crossed;
}

Registry make_registry() {
  Registry r;
  for (auto part : {register_scalar,       register_scalar_float, register_scalar_memory, register_control,
                    register_valu_integer, register_valu_16,      register_valu_float,    register_valu_transcendental,
                    register_valu_half,    register_valu_64,      register_valu_convert,  register_valu_compare,
                    register_valu_carry,   register_valu_lane,    register_valu_divide,   register_valu_packed,
                    register_valu_dot,     register_valu_narrow,  register_valu_special,  register_buffer_format,
                    register_lds,          register_lds_atomic,   register_global,        register_buffer,
                    register_scratch})
    part(r);
  return r;
}

bool bind(Instruction& i, const std::string& base, const TargetInfo& target, uint32_t lanes) {
  BindContext context{target, lanes};
  if (i.cls == InstructionClass::kMatrix) return bind_matrix(i, base, context);
  const Entry* entry = registry().find(base);
  if (!entry) return false;
  ExecuteFn fn = entry->bind(i, context);
  if (!fn) return false;
  i.execute = fn;
  i.fidelity = entry->fidelity;
  if (i.flags & kFlagReadsExecz) {
    i.wrapped = fn;
    i.execute = with_zero_flags;
  }
  return true;
}

bool is_vector_class(InstructionClass c) { return c >= InstructionClass::kValu && c != InstructionClass::kCache; }

/// A copy of the instruction with M0's index added to the VGPR operands that the mode names.
void execute_indexed(Wave& w, const Instruction& i) {
  bool valu =
      i.cls == InstructionClass::kValu || i.cls == InstructionClass::kValuTrans || i.cls == InstructionClass::kValu64;
  if (!valu || !(w.gpr_index_enable & 15)) return i.execute(w, i);
  Instruction moved = i;
  uint32_t index = w.s[cell::kM0] & 255;
  auto shift = [&](Operand& o) {
    if (!o.is_vector() || o.reg >= 256) return;
    if (o.reg + index + o.dwords > w.vgpr_limit)
      raise_fault(w, i, FaultKind::kRegisterRange, -1, o.reg + index,
                  "VGPR index (s_set_gpr_idx) lies beyond the kernel's allocation");
    o.reg = static_cast<uint16_t>(o.reg + index);
    o.row += static_cast<uint64_t>(index) * w.lanes;
  };
  for (int k = 0; k < 3 && k < i.src_count; ++k)
    if (w.gpr_index_enable & (1 << k)) shift(moved.src[k]);
  if (w.gpr_index_enable & 8) shift(moved.dst[0]);
  moved.execute(w, moved);
}

template <bool Observed>
void step(Wave& w, const Instruction& i, bool special) {
  if (special && w.vskip && is_vector_class(i.cls)) return;
  if constexpr (Observed) {
    Workgroup& g = *w.workgroup;
    g.access->parts = 0;
    g.observer->before(w, i);
    special ? execute_indexed(w, i) : i.execute(w, i);
    g.observer->after(w, i, g.access->parts ? g.access : nullptr);
  } else {
    special ? execute_indexed(w, i) : i.execute(w, i);
  }
}

template <bool Observed>
void run(Wave& w, uint32_t budget) {
  bool special = w.gpr_index_enable || w.vskip;
  uint32_t entered = w.mxcsr;
  if (entered != kDefaultMxcsr) _mm_setcsr(entered);
  w.budget = static_cast<int32_t>(budget);
  if (Observed || special) {
    do {
      const Instruction& i = *w.pc;
      w.pc = &i + 1;
      ++w.instructions;
      step<Observed>(w, i, special);
    } while (--w.budget > 0);
  } else {
    do {
      const Instruction& i = *w.pc;
      w.pc = &i + i.step;
      w.instructions += i.step;
      i.execute(w, i);
    } while (--w.budget > 0);
  }
  if (entered != kDefaultMxcsr || w.mxcsr != kDefaultMxcsr) _mm_setcsr(kDefaultMxcsr);
}

void step_checked(Wave& w, WaveCheck& c, const Instruction& i, bool special) {
  const CheckPlan& plan = c.plans[&i - w.code];
  ++c.slot;
  c.recent[c.recent_next % 16] = &plan;
  c.recent_slot[c.recent_next++ % 16] = c.slot;
  if (c.touches_hot(plan) || (plan.flags & kPlanBefore)) check_before(w, i, plan);
  if (plan.flags & (kPlanMark | kPlanWait | kPlanNop)) {
    if (plan.flags & kPlanMark) mark_results(c, plan);
    if (plan.flags & kPlanWait) check_wait(w, i);
    if (plan.flags & kPlanNop) c.slot += plan.nops;
  }
  w.workgroup->access->parts = 0;
  if (plan.flags & kPlanSkip) return;
  special ? execute_indexed(w, i) : i.execute(w, i);
  if (plan.flags & kPlanAfter) check_after(w, i, plan, *w.workgroup->access);
  if ((plan.flags & kPlanBranch) && w.pc != &i + 1) c.slot += kTakenBranchSlots;
}

/// With checks, and whatever else follows the workgroup.
void run_checked(Wave& w, uint32_t budget) {
  bool special = w.gpr_index_enable || w.vskip;
  uint32_t entered = w.mxcsr;
  if (entered != kDefaultMxcsr) _mm_setcsr(entered);
  w.budget = static_cast<int32_t>(budget);
  WaveCheck& check = check_of(w);
  WorkgroupObserver* next = check_of(*w.workgroup).next;
  do {
    const Instruction& i = *w.pc;
    w.pc = &i + 1;
    ++w.instructions;
    if (special && w.vskip && is_vector_class(i.cls)) continue;
    if (next) next->before(w, i);
    step_checked(w, check, i, special);
    if (next) next->after(w, i, w.workgroup->access->parts ? w.workgroup->access : nullptr);
  } while (--w.budget > 0);
  if (entered != kDefaultMxcsr || w.mxcsr != kDefaultMxcsr) _mm_setcsr(kDefaultMxcsr);
}

void run_observed(Wave& w, uint32_t budget) {
  typeid(*w.workgroup->observer) == typeid(WorkgroupCheck) ? run_checked(w, budget) : run<true>(w, budget);
}

#define CREST_SIM_TEXT2(x) #x
#define CREST_SIM_TEXT(x) CREST_SIM_TEXT2(x)

}  // namespace

const Registry& registry() {
  static const Registry table = make_registry();
  return table;
}

extern const Level kLevel;
const Level kLevel{std::string_view(CREST_SIM_TEXT(CREST_SIM_LEVEL)).substr(6),
                   bind,
                   bind_pair,
                   unknown,
                   register_range,
                   run<false>,
                   run_observed};

}  // namespace crest_sim::CREST_SIM_LEVEL
