// Instructions that the hardware does not order by itself: how far apart they must be.
//
// Wait states are issue slots between two instructions; s_nop n is n + 1 of them. Sources: AMD's CDNA3 instruction set
// document (manually inserted wait states) and the hazard tables of LLVM's AMDGPU back end for gfx940, gfx950 and
// gfx11. Slots are counted from below: every instruction takes one, and an MFMA waits for the matrix unit. So a kernel
// that keeps the distance by work of other instructions is not reported.
#include <fmt/format.h>

#include "check/state.h"

namespace crest_sim {
namespace {

struct Context {
  Wave& wave;
  WaveCheck& check;
  LaunchCheck& launch;
  const Instruction& instruction;
  const CheckPlan& plan;

  void report(uint32_t reg, const CheckPlan& producer, int need, int have, const char* what) {
    if (!launch.is_new(CheckKind::kHazard, instruction, producer.instruction)) return;
    launch.report(wave,
                  {CheckKind::kHazard, &instruction, -1, reg,
                   fmt::format("{} {}: {} wait states are needed, there are {}", register_name(reg), what, need, have),
                   producer.instruction});
  }
  int states(uint32_t slot) const { return static_cast<int>(check.slot - slot) - 1; }
};

bool overlaps(const RegisterRange& a, const RegisterRange& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

/// Slots until a result of the matrix unit is in its registers, for VALU, memory and A/B operands.
int matrix_latency(const CheckPlan& producer, bool gfx950) {
  int p = producer.passes;
  if (producer.flags & kPlanF64) return p == 4 ? 6 : p == 16 ? 19 : 11;
  if (!(producer.flags & kPlanXdl)) return p + 2;
  return p + 3 + (gfx950 && p != 2);
}

int matrix_accumulator_latency(const CheckPlan& producer, const CheckPlan& consumer, bool same, bool gfx950) {
  int p = producer.passes;
  if (producer.flags & kPlanF64) {
    if (consumer.flags & kPlanXdl) return 0;
    if (same) return p == 4 && consumer.passes == 4 ? 4 : 0;
    return p == 4 ? 4 : p == 16 ? 17 : 9;
  }
  if (same) return p == 2 ? 2 : 0;
  if ((consumer.flags & kPlanXdl) && !(producer.flags & kPlanXdl)) return 0;
  if (!(producer.flags & kPlanXdl)) return p;
  return p + 1 + (gfx950 && (p != 2 || (consumer.flags & kPlanXdl)));
}

bool is_vector_alu(const CheckPlan& p) { return p.port == Port::kValu || p.port == Port::kTrans; }

/// What must be kept between the instruction that wrote `reg` and this one.
int needed(const Context& c, const CheckPlan& producer, uint32_t reg, const RegisterRange& range, bool write,
           int operand) {
  const CheckPlan& p = c.plan;
  bool vector = reg < kScalarFirst, alu = is_vector_alu(p);
  bool memory = p.port == Port::kMemory || p.port == Port::kLds;
  if (!c.launch.cdna) return 0;
  if (producer.port == Port::kMatrix && vector) {
    if (p.port == Port::kMatrix) {
      if (write) return 0;
      if (operand != 2) return matrix_latency(producer, c.launch.gfx950);
      const RegisterRange& d = producer.write[0];
      return matrix_accumulator_latency(producer, p, d.first == range.first && d.count == range.count, c.launch.gfx950);
    }
    if (write && memory) return 0;  // a load returns much later; the counter is another check
    return alu || memory ? matrix_latency(producer, c.launch.gfx950) : 0;
  }
  if (vector && (producer.flags & kPlanDot) && (alu || memory)) {
    bool same = producer.instruction->mnemonic == p.instruction->mnemonic;
    if (same && (write || operand == 2)) return 0;
    return 3;
  }
  if (vector && !write && producer.port == Port::kTrans) return p.port == Port::kValu ? 1 : 0;
  if (vector && (producer.flags & kPlanPartial) && alu) return 1;
  if (vector && write && (producer.flags & kPlanWide)) return alu ? 2 : 0;
  if (!vector && !write && (producer.flags & kPlanWritesScalar)) {
    uint32_t cell = reg - kScalarFirst;
    if (p.port == Port::kMemory && p.instruction->cls >= InstructionClass::kGlobalLoad) return 5;
    if (cell == cell::kExec || cell == cell::kExec + 1) return 0;
    bool mask = (p.flow == Flow::kSelect || p.flow == Flow::kCarry) && (operand == 2 || operand == -1);
    return alu && !mask ? 2 : 0;  // lane masks are forwarded
  }
  return 0;
}

/// Sources in the order of the plan's reads: which operand of the instruction a read belongs to.
int operand_of(const CheckPlan& plan, int read) {
  const Instruction& i = *plan.instruction;
  for (int k = 0, n = 0; k < i.src_count; ++k) {
    bool listed = i.src[k].is_vector() || (i.src[k].is_scalar() && i.src[k].reg <= cell::kScc);
    if (!listed) continue;
    if (n++ == read) return k;
  }
  return (i.flags & kFlagSparse) ? 2 : -1;
}

void check_marks(Context& c, const RegisterRange& range, bool write, int operand) {
  for (uint32_t r = range.first; r < uint32_t(range.first) + range.count; ++r) {
    if (!((c.check.marked_set[r / 64] >> (r % 64)) & 1)) continue;
    const CheckPlan* producer = c.check.mark[r];
    if (r > range.first && producer == c.check.mark[r - 1] && c.check.mark_slot[r] == c.check.mark_slot[r - 1])
      continue;
    int have = c.states(c.check.mark_slot[r]), need = needed(c, *producer, r, range, write, operand);
    if (have < need) {
      c.report(r, *producer, need, have, write ? "is overwritten too early" : "is read too early");
      return;
    }
  }
}

/// Instructions that look back themselves, because what endangers them is too common to mark.
void look_back(Context& c) {
  const Instruction& i = c.instruction;
  const CheckPlan& p = c.plan;
  bool matrix = p.port == Port::kMatrix, dpp = i.dpp != Dpp::kNone && !matrix;
  bool lane_read = p.flow == Flow::kReadLane || p.flow == Flow::kReadFirstLane,
       lane = lane_read || p.flow == Flow::kWriteLane;
  bool swap = p.flags & kPlanSwapRows, div = p.flags & kPlanDivides;
  if (!matrix && !dpp && !lane && !swap && !div) return;
  for (uint32_t back = 1; back <= 6; ++back) {
    uint32_t at = (c.check.recent_next - 1 - back) % 16;
    const CheckPlan* q = c.check.recent[at];
    if (!q) return;
    int have = c.states(c.check.recent_slot[at]);
    if (have >= 5) return;
    if (!is_vector_alu(*q)) continue;
    auto require = [&](int need, uint32_t reg, const char* what) {
      if (have < need) c.report(reg, *q, need, have, what);
    };
    if (q->flags & kPlanWritesExec)
      require(matrix || lane || swap ? 4
              : dpp                  ? 5
                                     : 0,
              kScalarFirst + cell::kExec, "was written by the VALU too recently");
    for (int w = 0; w < q->writes; ++w) {
      const RegisterRange& d = q->write[w];
      bool vector = d.first < kScalarFirst;
      for (int r = 0; r < p.reads; ++r) {
        if (!overlaps(d, p.read[r])) continue;
        if (vector && matrix && !(q->flags & kPlanDot)) require(2, d.first, "is read by the matrix unit too early");
        if (vector && dpp && operand_of(p, r) == 0) require(2, d.first, "is read through DPP too early");
        if (vector && lane_read) require(1, d.first, "is read as a lane too early");
        if (vector && swap) require(2, d.first, "is swapped too early");
        if (!vector && lane && operand_of(p, r) == 1) require(4, d.first, "chooses a lane too early");
        if (!vector && div && d.first == kScalarFirst + cell::kVcc) require(4, d.first, "is read too early");
      }
      if (!vector && div && d.first == kScalarFirst + cell::kVcc) require(4, d.first, "is read too early");
    }
  }
}

/// RDNA3: a matrix result as A or B of the next matrix instruction needs a vector instruction in between.
void check_wmma(Context& c) {
  if (c.plan.port != Port::kMatrix) return;
  for (uint32_t back = 1; back <= 12; ++back) {
    const CheckPlan* q = c.check.recent[(c.check.recent_next - 1 - back) % 16];
    if (!q) return;
    if (q->port != Port::kMatrix && is_vector_alu(*q)) return;
    if (q->port == Port::kOther && mnemonic_info(q->instruction->mnemonic).name == "v_nop") return;
    if (q->port != Port::kMatrix) continue;
    for (int r = 0; r < 2 && r < c.plan.reads; ++r)
      if (overlaps(q->write[0], c.plan.read[r]))
        return c.report(q->write[0].first, *q, 1, 0,
                        "is the result of the matrix instruction before and read as A or B");
    return;
  }
}

/// gfx1100: a transcendental's result is not forwarded to the next five vector instructions.
void check_transcendental(Context& c) {
  if (!is_vector_alu(c.plan) && c.plan.port != Port::kMatrix) return;
  uint32_t vector = 0, trans = 0;
  for (uint32_t back = 1; back <= 14; ++back) {
    const CheckPlan* q = c.check.recent[(c.check.recent_next - 1 - back) % 16];
    if (!q || vector > 5 || trans > 1) return;
    if (q->port == Port::kMemory && q->instruction->cls >= InstructionClass::kGlobalLoad) return;
    if (q->port == Port::kLds) return;
    std::string_view name = mnemonic_info(q->instruction->mnemonic).name;
    if (name == "s_waitcnt_depctr" && ((q->instruction->offset >> 12) & 15) == 0) return;
    if (q->port == Port::kTrans)
      for (int r = 0; r < c.plan.reads; ++r)
        if (c.plan.read[r].first < kScalarFirst && overlaps(q->write[0], c.plan.read[r]))
          return c.report(q->write[0].first, *q, 6, static_cast<int>(vector),
                          "is a transcendental's result, read before s_waitcnt_depctr va_vdst(0)");
    vector += is_vector_alu(*q) || q->port == Port::kMatrix;
    trans += q->port == Port::kTrans;
  }
}

}  // namespace

void drop_marks(const LaunchCheck& launch, WaveCheck& check, const CheckPlan& plan) {
  auto old = [&](uint32_t r) {
    return check.slot - check.mark_slot[r] > (launch.cdna ? (check.mark[r]->port == Port::kMatrix ? 24u : 6u) : 16u);
  };
  auto each = [&](const RegisterRange& range, bool write) {
    for (uint32_t r = range.first; r < uint32_t(range.first) + range.count; ++r)
      if (((check.marked_set[r / 64] >> (r % 64)) & 1) && (write || old(r))) check.remove(check.marked_set, r);
  };
  for (int k = 0; k < plan.reads; ++k) each(plan.read[k], false);
  for (int k = 0; k < plan.writes; ++k) each(plan.write[k], true);
}

void mark_results(WaveCheck& check, const CheckPlan& plan) {
  auto put = [&](const RegisterRange& range) {
    for (uint32_t r = range.first; r < uint32_t(range.first) + range.count; ++r) {
      check.mark[r] = &plan;
      check.mark_slot[r] = check.slot;
      check.add(check.marked_set, r);
    }
  };
  if (plan.flags & kPlanWide) {  // the data registers of a wide store must stay as they are for a moment
    const Operand& data = plan.instruction->src[1];
    if (data.is_vector()) put({data.reg, data.dwords});
    return;
  }
  for (int k = 0; k < plan.writes; ++k) put(plan.write[k]);
}

void check_hazards(Wave& wave, const Instruction& instruction, const CheckPlan& plan) {
  Context c{wave, check_of(wave), *check_of(*wave.workgroup).launch, instruction, plan};
  if (c.launch.cdna) {
    for (int k = 0; k < plan.reads; ++k) check_marks(c, plan.read[k], false, operand_of(plan, k));
    for (int k = 0; k < plan.writes; ++k) check_marks(c, plan.write[k], true, -1);
    look_back(c);
  } else {
    check_wmma(c);
    if (c.launch.gfx1100) check_transcendental(c);
  }
}

}  // namespace crest_sim
