#include "check/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace crest_sim {
namespace {

using Class = InstructionClass;

bool starts(std::string_view s, std::string_view prefix) { return s.starts_with(prefix); }
bool has(std::string_view s, std::string_view part) { return s.find(part) != std::string_view::npos; }

bool is_valu(Class c) { return c == Class::kValu || c == Class::kValuTrans || c == Class::kValu64; }
bool is_lds(Class c) { return c >= Class::kLdsLoad && c <= Class::kLdsPermute; }
bool is_vmem(Class c) { return c >= Class::kGlobalLoad && c <= Class::kScratchStore; }
bool is_memory(Class c) {
  return is_lds(c) || is_vmem(c) || c == Class::kSmem || c == Class::kSmemStore || c == Class::kSmemAtomic;
}

class Planner {
 public:
  Planner(const TargetInfo& target, uint32_t lanes, const CheckOptions& options)
      : target_(target), lanes_(lanes), options_(options) {}

  CheckPlan make(const Instruction& i) {
    plan_ = {};
    plan_.instruction = &i;
    const Known& k = known(i);
    operands(i);
    if (i.second) operands(*i.second);
    implicit(i, k);
    plan_.port = port(i.cls);
    plan_.flow = i.second ? Flow::kVector : k.clears && same_sources(i) ? Flow::kClear : k.flow;
    plan_.op = k.op;
    plan_.flags = k.flags;
    plan_.passes = k.passes;
    plan_.matrix_m = k.m;
    plan_.matrix_blocks = k.blocks;
    classify_flags(i, k);
    build_mask();
    return plan_;
  }

 private:
  /// Names decide most; looking them up takes long, and there are few.
  struct Known {
    bool made = false;
    Flow flow = Flow::kNone;
    BitOp op = BitOp::kAnd;
    bool clears = false;  ///< of equal sources
    bool store = false, dot = false, lane = false, priority = false, nop = false, exec = false;
    uint8_t passes = 0, m = 0, blocks = 0;
    uint32_t flags = 0;
  };

  void add(bool write, uint32_t first, uint32_t count) {
    RegisterRange r{static_cast<uint16_t>(first), static_cast<uint16_t>(count)};
    if (write && plan_.writes < 4) plan_.write[plan_.writes++] = r;
    if (!write && plan_.reads < 9) plan_.read[plan_.reads++] = r;
  }

  /// Cells that hold no state of the kernel (null, apertures, constants) are left out.
  static bool tracked(uint32_t cell) { return cell <= cell::kScc; }

  void operand(const Operand& o, bool write) {
    if (o.is_vector()) add(write, o.reg, o.dwords);
    if (o.is_scalar() && tracked(o.reg)) add(write, kScalarFirst + o.reg, o.dwords);
  }

  uint32_t mask_dwords() const { return lanes_ / 32; }

  void operands(const Instruction& i) {
    for (int k = 0; k < i.src_count; ++k) operand(i.src[k], false);
    for (int k = 0; k < i.dst_count; ++k) operand(i.dst[k], true);
    if (i.flags & kFlagSparse) operand(i.dst[0], false);
  }

  bool named(bool write, uint32_t first) const {
    const RegisterRange* list = write ? plan_.write : plan_.read;
    int count = write ? plan_.writes : plan_.reads;
    return std::any_of(list, list + count, [&](const RegisterRange& r) { return r.first == first; });
  }

  void implicit(const Instruction& i, const Known& k) {
    auto use = [&](uint16_t bit, bool write, uint32_t cell, uint32_t count) {
      if ((i.implicit & bit) && !named(write, kScalarFirst + cell)) add(write, kScalarFirst + cell, count);
    };
    use(kReadsScc, false, cell::kScc, 1);
    use(kWritesScc, true, cell::kScc, 1);
    use(kReadsVcc, false, cell::kVcc, mask_dwords());
    use(kWritesVcc, true, cell::kVcc, mask_dwords());
    use(kWritesExec, true, cell::kExec, mask_dwords());
    // Every vector instruction reads EXEC; only where it decides something is it an input here.
    if (k.exec) use(kReadsExec, false, cell::kExec, mask_dwords());
  }

  Port port(Class c) const {
    if (c == Class::kMatrix) return Port::kMatrix;
    if (c == Class::kValuTrans) return Port::kTrans;
    if (is_valu(c)) return Port::kValu;
    if (is_lds(c)) return Port::kLds;
    if (is_memory(c)) return Port::kMemory;
    return c == Class::kSalu || c == Class::kBranch ? Port::kSalu : Port::kOther;
  }

  bool same_sources(const Instruction& i) const {
    return i.src_count >= 2 && i.src[0].kind == i.src[1].kind && i.src[0].reg == i.src[1].reg &&
           !i.src[0].is_literal() && i.src[0].kind != OperandKind::kNone && i.dpp == Dpp::kNone && !i.sdwa;
  }

  const Known& known(const Instruction& i) {
    if (i.mnemonic >= names_.size()) names_.resize(i.mnemonic + 1u);
    Known& k = names_[i.mnemonic];
    if (k.made) return k;
    k.made = true;
    name_ = mnemonic_info(i.mnemonic).name;
    k.flow = flow(i, k);
    k.op = plan_.op;
    k.store = has(name_, "store") || has(name_, "write");
    k.dot = starts(name_, "v_dot");
    k.lane = has(name_, "lane");
    if (starts(name_, "v_div_fmas")) k.flags |= kPlanDivides;
    if (starts(name_, "v_permlane") && has(name_, "_swap_")) k.flags |= kPlanSwapRows;
    k.priority = name_ == "s_setprio";
    k.nop = name_ == "s_nop";
    k.exec = starts(name_, "s_cbranch_exec") || has(name_, "saveexec") || has(name_, "wrexec");
    if (i.cls != Class::kMatrix) return k;
    matrix_unit(k);
    return k;
  }

  Flow scalar_flow(Known& k) {
    static const std::array<std::pair<std::string_view, BitOp>, 11> kOps{{{"s_andn2_b", BitOp::kAndNot},
                                                                          {"s_and_not1_b", BitOp::kAndNot},
                                                                          {"s_orn2_b", BitOp::kOrNot},
                                                                          {"s_or_not1_b", BitOp::kOrNot},
                                                                          {"s_and_b", BitOp::kAnd},
                                                                          {"s_or_b", BitOp::kOr},
                                                                          {"s_xor_b", BitOp::kXor},
                                                                          {"s_nand_b", BitOp::kNand},
                                                                          {"s_nor_b", BitOp::kNor},
                                                                          {"s_xnor_b", BitOp::kXnor},
                                                                          {"s_not_b", BitOp::kNot}}};
    static const std::array<std::pair<std::string_view, BitOp>, 12> kSave{{{"s_and_saveexec", BitOp::kAnd},
                                                                           {"s_or_saveexec", BitOp::kOr},
                                                                           {"s_xor_saveexec", BitOp::kXor},
                                                                           {"s_andn2_saveexec", BitOp::kAndNot},
                                                                           {"s_and_not1_saveexec", BitOp::kAndNot},
                                                                           {"s_orn2_saveexec", BitOp::kOrNot},
                                                                           {"s_or_not1_saveexec", BitOp::kOrNot},
                                                                           {"s_andn1_saveexec", BitOp::kNotAnd},
                                                                           {"s_and_not0_saveexec", BitOp::kNotAnd},
                                                                           {"s_orn1_saveexec", BitOp::kNotOr},
                                                                           {"s_or_not0_saveexec", BitOp::kNotOr},
                                                                           {"s_xnor_saveexec", BitOp::kXnor}}};
    for (const auto& [prefix, op] : kSave)
      if (starts(name_, prefix)) return plan_.op = op, Flow::kSaveExec;
    for (const auto& [prefix, op] : kOps)
      if (starts(name_, prefix)) {
        plan_.op = op;
        k.clears = op == BitOp::kXor || op == BitOp::kAndNot;
        return Flow::kBitwise;
      }
    if (starts(name_, "s_cmp_") || starts(name_, "s_cmpk_") || starts(name_, "s_bitcmp")) return Flow::kScalarCompare;
    if (starts(name_, "s_cselect") || starts(name_, "s_cmov")) return Flow::kScalarSelect;
    if (name_ == "s_mov_b32" || name_ == "s_mov_b64") return Flow::kScalarMove;
    if (starts(name_, "s_lshl_b") || starts(name_, "s_lshr_b") || starts(name_, "s_ashr_i")) return Flow::kScalarShift;
    if (starts(name_, "s_add_u32") || starts(name_, "s_add_i32") || starts(name_, "s_sub_u32") ||
        starts(name_, "s_sub_i32") || starts(name_, "s_mul_i32"))
      return Flow::kScalarSum;
    return Flow::kScalar;
  }

  Flow vector_flow(Known& k) {
    if (starts(name_, "v_cmp")) return Flow::kCompare;
    if (starts(name_, "v_cndmask")) return Flow::kSelect;
    if (starts(name_, "v_addc_co") || starts(name_, "v_subb_co") || starts(name_, "v_subbrev_co") ||
        has(name_, "_co_ci_"))
      return Flow::kCarry;
    if (name_ == "v_readlane_b32") return Flow::kReadLane;
    if (name_ == "v_readfirstlane_b32") return Flow::kReadFirstLane;
    if (name_ == "v_writelane_b32") return Flow::kWriteLane;
    if (name_ == "v_permlane16_b32") return Flow::kPermLane16;
    if (name_ == "v_permlanex16_b32") return Flow::kPermLaneX16;
    if (name_ == "v_permlane64_b32") return Flow::kPermLane64;
    if (starts(name_, "v_swap_") || has(name_, "_swap_b32")) return Flow::kSwap;
    k.clears = starts(name_, "v_xor_b32") || starts(name_, "v_sub_u32") || starts(name_, "v_sub_nc_u32");
    if (name_ == "v_mov_b64") return Flow::kPerDword;
    if (starts(name_, "v_mad_u64_u32") || starts(name_, "v_mad_i64_i32") || starts(name_, "v_lshlrev_b64") ||
        starts(name_, "v_lshl_add_u64"))
      return Flow::kUpward;
    if (starts(name_, "v_lshrrev_b64") || starts(name_, "v_ashrrev_i64")) return Flow::kDownward;
    if (starts(name_, "v_pk_") && (name_.ends_with("_f32") || name_ == "v_pk_mov_b32")) return Flow::kPackedF32;
    return Flow::kVector;
  }

  Flow flow(const Instruction& i, Known& k) {
    switch (i.cls) {
      case Class::kMatrix:
        return Flow::kMatrix;
      case Class::kSalu:
        return scalar_flow(k);
      case Class::kBranch:
        return Flow::kSink;
      case Class::kLdsPermute:
        return Flow::kExchange;
      case Class::kValu:
      case Class::kValuTrans:
      case Class::kValu64:
        return vector_flow(k);
      default:
        return is_memory(i.cls) ? Flow::kMemory : Flow::kNone;
    }
  }

  bool writes_cell(uint32_t cell) const {
    for (int k = 0; k < plan_.writes; ++k) {
      uint32_t first = plan_.write[k].first, end = first + plan_.write[k].count;
      if (kScalarFirst + cell >= first && kScalarFirst + cell < end) return true;
    }
    return false;
  }

  void classify_flags(const Instruction& i, const Known& k) {
    uint32_t& f = plan_.flags;
    bool hazards = options_[CheckKind::kHazard], valu = is_valu(i.cls) || i.cls == Class::kMatrix;
    if (i.cls == Class::kWait) f |= kPlanWait | kPlanSkip;
    if (i.cls == Class::kNop) f |= kPlanNop | kPlanSkip;
    // Nops with an effect on the wave's state are executed.
    if (k.priority || (i.flags & kFlagReadsExecz)) f &= ~uint32_t(kPlanSkip);
    if (k.nop) plan_.nops = static_cast<uint8_t>(i.offset & 15);
    if (i.cls == Class::kBranch) f |= kPlanBranch;
    if (is_memory(i.cls)) f |= kPlanAfter;
    if (k.store) f |= kPlanStore;
    // Buffer stores with a scalar offset in a register take long enough by themselves.
    if ((f & kPlanStore) && is_vmem(i.cls) && i.src[1].dwords > 2 && !i.src[3].is_scalar()) f |= kPlanWide;
    for (int k = 0; k < plan_.writes && valu; ++k)
      if (plan_.write[k].first >= kScalarFirst) f |= kPlanWritesScalar;
    if (valu && writes_cell(cell::kExec)) f |= kPlanWritesExec;
    if (k.dot) f |= kPlanDot;
    if (valu && ((i.sdwa && i.dst_select != Select::kDword) || (i.dst[0].mods & kHigh))) f |= kPlanPartial;
    if (!hazards) return;
    if (target_.cdna) {
      if (i.cls == Class::kMatrix || i.dpp != Dpp::kNone || k.lane || (f & kPlanDivides)) f |= kPlanBefore;
      if (i.cls == Class::kMatrix || i.cls == Class::kValuTrans || (f & (kPlanDot | kPlanPartial | kPlanWide)) ||
          (f & kPlanWritesScalar))
        f |= kPlanMark;
    } else if (i.cls == Class::kMatrix) {
      f |= kPlanBefore;
    } else if (i.cls == Class::kValuTrans && target_.arch == Arch::kGfx1100) {
      f |= kPlanMark;
    }
  }

  /// Issue slots of MFMA by AMD's matrix instruction calculator (cycles / 4).
  void matrix_unit(Known& known) {
    auto [m, blocks] = shape();
    known.m = static_cast<uint8_t>(m);
    known.blocks = static_cast<uint8_t>(blocks);
    if (!target_.cdna) return;
    bool f64 = name_.ends_with("_f64"), f32 = !f64 && name_.ends_with("_f32") && !has(name_, "xf32");
    if (f64)
      known.passes = m == 4 ? 4 : target_.arch == Arch::kGfx950 ? 16 : 8;
    else if (m == 4)
      known.passes = 2;
    else if (blocks > 1)
      known.passes = m == 32 ? 16 : 8;
    else if (f32)
      known.passes = m == 32 ? 16 : 8;
    else
      known.passes = m == 32 ? 8 : 4;
    if (f64) known.flags |= kPlanF64;
    if (!f64 && !f32) known.flags |= kPlanXdl;
  }

  struct Shape {
    int m, blocks;
  };
  /// From "v_mfma_f32_32x32x4_2b_bf16".
  Shape shape() const {
    Shape s{16, 1};
    size_t x = name_.find('x', name_.find_first_of("0123456789", 2));
    while (x != std::string_view::npos && (x == 0 || !std::isdigit(static_cast<unsigned char>(name_[x - 1]))))
      x = name_.find('x', x + 1);
    if (x == std::string_view::npos) return s;
    size_t begin = x;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(name_[begin - 1]))) --begin;
    s.m = std::atoi(std::string(name_.substr(begin, x - begin)).c_str());
    size_t second = name_.find('x', x + 1);
    if (second == std::string_view::npos) return s;
    size_t b = name_.find("b_", second);
    if (b != std::string_view::npos && b > 0 && std::isdigit(static_cast<unsigned char>(name_[b - 1]))) {
      size_t digits = b;
      while (std::isdigit(static_cast<unsigned char>(name_[digits - 1]))) --digits;
      s.blocks = std::atoi(std::string(name_.substr(digits, b - digits)).c_str());
    }
    return s;
  }

  void build_mask() {
    std::array<uint64_t, kHotWords> bits{};
    auto put = [&](const RegisterRange& r) {
      for (uint32_t n = r.first; n < uint32_t(r.first) + r.count; ++n) bits[n / 64] |= uint64_t(1) << (n % 64);
    };
    for (int k = 0; k < plan_.reads; ++k) put(plan_.read[k]);
    for (int k = 0; k < plan_.writes; ++k) put(plan_.write[k]);
    for (uint32_t n = 0; n < kHotWords; ++n) {
      if (!bits[n]) continue;
      plan_.word[plan_.words] = static_cast<uint8_t>(n);
      plan_.mask[plan_.words++] = bits[n];
    }
  }

  const TargetInfo& target_;
  uint32_t lanes_;
  const CheckOptions& options_;
  CheckPlan plan_;
  std::string_view name_;
  std::vector<Known> names_;
};

}  // namespace

std::vector<CheckPlan> make_plans(const Instruction* code, size_t count, const TargetInfo& target, uint32_t lanes,
                                  const CheckOptions& options) {
  Planner planner(target, lanes, options);
  std::vector<CheckPlan> plans;
  plans.reserve(count);
  for (size_t n = 0; n < count; ++n) plans.push_back(planner.make(code[n]));
  return plans;
}

std::string register_name(uint32_t number) {
  if (number < 256) return fmt::format("v{}", number);
  if (number < kScalarFirst) return fmt::format("a{}", number - 256);
  uint32_t cell = number - kScalarFirst;
  switch (cell) {
    case cell::kVcc:
      return "vcc_lo";
    case cell::kVcc + 1:
      return "vcc_hi";
    case cell::kM0:
      return "m0";
    case cell::kExec:
      return "exec_lo";
    case cell::kExec + 1:
      return "exec_hi";
    case cell::kScc:
      return "scc";
    default:
      break;
  }
  if (cell >= cell::kTtmp && cell < cell::kTtmp + 16) return fmt::format("ttmp{}", cell - cell::kTtmp);
  return fmt::format("s{}", cell);
}

}  // namespace crest_sim
