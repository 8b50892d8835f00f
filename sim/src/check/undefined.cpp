// How undefined values travel through registers: per lane and dword in vector registers, per bit in scalar ones.
//
// Only values that nobody wrote are undefined; a register written in part counts as written. So what is reported has no
// defined byte at all, and copies, spills and masks of lanes that do not matter are not reported.
#include <fmt/format.h>

#include <bit>

#include "check/state.h"

namespace crest_sim {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

struct Context {
  Wave& wave;
  WaveCheck& check;
  LaunchCheck& launch;
  const Instruction& i;
  const CheckPlan& plan;
  u64 exec = wave.exec();
  u64 all = wave.full_exec;

  u64 row(u32 r) const { return check.undefined[r]; }
  u32 bits(u32 cell) const { return cell < cell::kCount ? check.undefined_bits[cell] : 0; }

  u64 vector(const Operand& o) const {
    u64 u = 0;
    for (u32 k = 0; k < o.dwords; ++k) u |= row(o.reg + k);
    return u;
  }
  bool scalar(const Operand& o) const {
    u32 u = 0;
    for (u32 k = 0; k < o.dwords; ++k) u |= bits(o.reg + k);
    return u != 0;
  }
  u64 mask(const Operand& o) const {
    if (!o.is_scalar()) return 0;
    return bits(o.reg) | (wave.lanes == 64 ? u64(bits(o.reg + 1u)) << 32 : 0);
  }
  /// Undefined lanes of a source; `enabled` loses the lanes that DPP switches off.
  u64 source(const Instruction& part, int k, u64& enabled) const {
    const Operand& o = part.src[k];
    if (o.is_scalar()) return scalar(o) ? all : 0;
    if (!o.is_vector()) return 0;
    u64 u = vector(o);
    return k == 0 && part.dpp != Dpp::kNone ? through_dpp(part, u, enabled) : u;
  }
  u64 through_dpp(const Instruction& part, u64 u, u64& enabled) const {
    u64 out = 0, on = 0;
    for (u32 l = 0; l < wave.lanes; ++l) {
      u32 from = part.lane_map->source[l];
      bool good = ((part.lane_map->valid >> l) & 1) && (part.fetch_inactive || ((exec >> from) & 1));
      if (good && ((u >> from) & 1)) out |= u64(1) << l;
      bool open = ((part.row_mask >> ((l >> 4) & 3)) & 1) && ((part.bank_mask >> ((l >> 2) & 3)) & 1);
      if (open && (good || part.bound_ctrl)) on |= u64(1) << l;
    }
    enabled &= on;
    return out;
  }

  void write_vector(const Operand& o, u64 lanes, u64 u) {
    for (u32 k = 0; k < o.dwords; ++k) set_undefined(check, o.reg + k, lanes, u);
  }
  void write_scalar(const Operand& o, u32 u) {
    for (u32 k = 0; k < o.dwords && o.reg + k <= cell::kScc; ++k) set_undefined_bits(check, o.reg + k, u);
  }
  void write_mask(const Operand& o, u64 u) {
    if (o.reg > cell::kScc) return;
    set_undefined_bits(check, o.reg, static_cast<u32>(u));
    if (wave.lanes == 64) set_undefined_bits(check, o.reg + 1u, static_cast<u32>(u >> 32));
  }

  void report(int lane, u32 reg, const char* what) {
    if (!launch.is_new(CheckKind::kUninitialised, i, nullptr)) return;
    launch.report(wave, {CheckKind::kUninitialised, &i, lane, reg,
                         fmt::format("{} was never written and {}", register_name(reg), what)});
  }
  /// A vector operand that must be defined in the active lanes. What was reported counts as defined from then on.
  void need_vector(const Operand& o, const char* what) {
    for (u32 k = 0; o.is_vector() && k < o.dwords; ++k)
      if (u64 u = row(o.reg + k) & exec) {
        report(std::countr_zero(u), o.reg + k, what);
        set_undefined(check, o.reg + k, all, 0);
      }
  }
  void need_scalar(const Operand& o, const char* what) {
    for (u32 k = 0; o.is_scalar() && k < o.dwords; ++k) need_cell(o.reg + k, what);
  }
  void need_cell(u32 cell, const char* what) {
    if (!bits(cell)) return;
    report(-1, kScalarFirst + cell, what);
    set_undefined_bits(check, cell, 0);
  }
};

/// Dwords of v_pk_*_f32: op_sel and op_sel_hi choose one of the two for each half.
void packed_f32(Context& c) {
  u64 u[2] = {0, 0};
  for (int k = 0; k < c.i.src_count; ++k) {
    const Operand& o = c.i.src[k];
    for (int half = 0; half < 2; ++half) {
      bool high = o.mods & (half ? kHighHi : kHigh);
      if (o.is_vector()) u[half] |= c.row(o.reg + (o.dwords > 1 && high ? 1u : 0u));
      if (o.is_scalar() && c.scalar(o)) u[half] |= c.all;
    }
  }
  if (mnemonic_info(c.i.mnemonic).name == "v_pk_mov_b32") {  // low half from source 0, high half from source 1
    for (int half = 0; half < 2; ++half) {
      const Operand& o = c.i.src[half];
      u[half] = o.is_vector() ? c.row(o.reg + ((o.mods & kHigh) ? 1u : 0u)) : o.is_scalar() && c.scalar(o) ? c.all : 0;
    }
  }
  for (u32 half = 0; half < 2; ++half) set_undefined(c.check, c.i.dst[0].reg + half, c.exec, u[half]);
}

u64 vector_result(const Context& c, const Instruction& part, u64& enabled) {
  u64 u = 0;
  bool select = part.second == nullptr && c.i.second && part.src_count == 3 && part.src[2].is_scalar();
  for (int k = 0; k < part.src_count; ++k) u |= k == 2 && select ? c.mask(part.src[2]) : c.source(part, k, enabled);
  return u;
}

void vector_op(Context& c) {
  u64 enabled = c.exec, u = vector_result(c, c.i, enabled);
  if (c.i.second) {  // both halves read before either writes
    u64 other = c.exec, v = vector_result(c, *c.i.second, other);
    c.write_vector(c.i.second->dst[0], other, v);
  }
  if (c.i.dst[0].is_vector()) c.write_vector(c.i.dst[0], enabled, u);
  if (c.i.dst_count > 1 && c.i.dst[1].is_scalar()) c.write_mask(c.i.dst[1], u & c.exec);
}

/// One dword of a source of 64-bit integer arithmetic; narrower sources are the low dword.
u64 dword_of(const Context& c, const Operand& o, u32 k) {
  if (o.is_vector()) return k < o.dwords ? c.row(o.reg + k) : 0;
  return o.is_scalar() && k < o.dwords && c.bits(o.reg + k) ? c.all : 0;
}

void wide_integer_op(Context& c) {
  u64 u[2] = {0, 0};
  for (int k = 0; k < c.i.src_count; ++k) {
    const Operand& o = c.i.src[k];
    u64 low = dword_of(c, o, 0), high = dword_of(c, o, 1);
    // The shift amount and the factors of a product are one dword and reach both halves.
    bool both = o.dwords < 2 || c.plan.flow == Flow::kUpward;
    u[0] |= c.plan.flow == Flow::kUpward || o.dwords < 2 ? low : low | high;
    u[1] |= both ? low | high : high;
  }
  for (u32 k = 0; k < 2; ++k) set_undefined(c.check, c.i.dst[0].reg + k, c.exec, u[k]);
  if (c.i.dst_count > 1 && c.i.dst[1].is_scalar()) c.write_mask(c.i.dst[1], (u[0] | u[1]) & c.exec);
}

void select_op(Context& c) {
  u64 enabled = c.exec, a = c.source(c.i, 0, enabled), b = c.source(c.i, 1, enabled);
  const Operand& m = c.i.src[2];
  u64 chosen = m.is_scalar() ? (c.wave.lanes == 64 ? c.wave.read64(m.reg) : c.wave.s[m.reg]) : 0;
  c.write_vector(c.i.dst[0], enabled, (a & ~chosen) | (b & chosen) | c.mask(m));
}

void carry_op(Context& c) {
  u64 enabled = c.exec;
  u64 u = c.source(c.i, 0, enabled) | c.source(c.i, 1, enabled) | c.mask(c.i.src[2]);
  c.write_vector(c.i.dst[0], enabled, u);
  if (c.i.dst_count > 1) c.write_mask(c.i.dst[1], u & c.exec);
}

void compare_op(Context& c) {
  u64 enabled = c.exec, u = 0;
  for (int k = 0; k < c.i.src_count; ++k) u |= c.source(c.i, k, enabled);
  u &= c.exec;
  if (c.i.dst_count) c.write_mask(c.i.dst[0], u);
  if ((c.plan.flags & kPlanWritesExec) && u) {
    for (int k = 0; k < c.i.src_count; ++k)
      if (u64 v = c.i.src[k].is_vector() ? c.vector(c.i.src[k]) & u : 0)
        return c.report(std::countr_zero(v), c.i.src[k].reg, "decides which lanes go on");
  }
}

void lane_ops(Context& c) {
  const Operand& s = c.i.src[0];
  if (c.plan.flow == Flow::kWriteLane) {
    u32 lane = c.i.src[1].is_literal() ? u32(c.i.src[1].literal) : c.wave.s[c.i.src[1].reg];
    u64 bit = u64(1) << (lane & (c.wave.lanes - 1));
    return set_undefined(c.check, c.i.dst[0].reg, bit, s.is_scalar() && c.scalar(s) ? bit : 0);
  }
  u32 lane = c.exec ? u32(std::countr_zero(c.exec)) : 0;
  if (c.plan.flow == Flow::kReadLane)
    lane = (c.i.src[1].is_literal() ? u32(c.i.src[1].literal) : c.wave.s[c.i.src[1].reg]) & (c.wave.lanes - 1);
  bool u = s.is_vector() ? (c.row(s.reg) >> lane) & 1 : s.is_scalar() && c.scalar(s);
  c.write_scalar(c.i.dst[0], u ? ~0u : 0);
}

void permlane_op(Context& c) {
  u64 in = c.vector(c.i.src[0]), out = 0;
  auto value = [&](const Operand& o) { return o.is_literal() ? u32(o.literal) : c.wave.s[o.reg]; };
  u64 choice = c.plan.flow == Flow::kPermLane64 ? 0 : u64(value(c.i.src[2])) << 32 | value(c.i.src[1]);
  for (u32 l = 0; l < c.wave.lanes; ++l) {
    u32 from = c.plan.flow == Flow::kPermLane64
                   ? l ^ (c.wave.lanes == 64 ? 32 : 0)
                   : ((l & ~15u) ^ (c.plan.flow == Flow::kPermLaneX16 ? 16 : 0)) + u32((choice >> ((l & 15) * 4)) & 15);
    bool read = c.plan.flow == Flow::kPermLane64 || (c.i.src[0].mods & kHigh) || ((c.exec >> from) & 1);
    if (read && ((in >> from) & 1)) out |= u64(1) << l;
  }
  c.write_vector(c.i.dst[0], c.exec, out);
}

void swap_op(Context& c) {
  const Operand &a = c.i.dst[0], &b = c.i.dst[1];
  bool rows = mnemonic_info(c.i.mnemonic).name.starts_with("v_permlane");
  // Swaps of rows mix lanes of both registers; they count as undefined only where both are.
  u64 x = c.row(a.reg), y = c.row(b.reg), both = x & y;
  set_undefined(c.check, a.reg, c.exec, rows ? both : y);
  set_undefined(c.check, b.reg, c.exec, rows ? both : x);
}

/// D is undefined in the rows that read undefined elements of A, the columns that read such of B, and where C is.
void matrix_op(Context& c) {
  const Operand& d = c.i.dst[0];
  u32 m = c.plan.matrix_m, blocks = c.plan.matrix_blocks, lanes = c.wave.lanes;
  u64 rows[16] = {}, columns[16] = {};
  u64 a = c.i.src[0].is_vector() ? c.vector(c.i.src[0]) : 0, b = c.i.src[1].is_vector() ? c.vector(c.i.src[1]) : 0;
  bool broadcast = blocks > 1 && (c.i.cbsz || c.i.blgp);
  for (u32 l = 0; l < lanes && m && !broadcast; ++l) {
    u32 block = blocks > 1 ? l / m : 0, at = l % m;
    if ((a >> l) & 1) rows[block & 15] |= u64(1) << at;
    if ((b >> l) & 1) columns[block & 15] |= u64(1) << at;
  }
  const Operand& acc = c.i.flags & kFlagSparse ? d : c.i.src[2];
  u64 result[32] = {};
  u32 count = std::min<u32>(d.dwords, 32);
  for (u32 k = 0; k < count; ++k)
    if (acc.is_vector()) result[k] = c.row(acc.reg + k);
  bool f64 = c.plan.flags & kPlanF64;
  bool rdna = !c.launch.cdna;
  for (u32 k = 0; (a | b) && k < count && m; ++k)
    for (u32 l = 0; l < lanes; ++l) {
      u32 block = 0, i = 0, j = l % m;
      if (rdna)
        i = k * (lanes / 16) + l / 16;
      else if (f64)
        i = m == 4 ? l / 16 : k / 2 * 4 + l / 16, block = m == 4 ? l / 4 % 4 : 0;
      else if (m == 4)
        i = k, block = l / 4;
      else
        block = k / (m * m / 64), i = k % (m * m / 64) / 4 * (4 * (64 / m)) + l / m * 4 + k % 4;
      if (((rows[block & 15] >> i) & 1) || ((columns[block & 15] >> j) & 1)) result[k] |= u64(1) << l;
    }
  for (u32 k = 0; k < count; ++k) set_undefined(c.check, d.reg + k, c.all, result[k]);
}

u64 apply(BitOp op, u64 a, u64 b) {
  switch (op) {
    case BitOp::kAnd:
      return a & b;
    case BitOp::kOr:
      return a | b;
    case BitOp::kXor:
      return a ^ b;
    case BitOp::kAndNot:
      return a & ~b;
    case BitOp::kOrNot:
      return a | ~b;
    case BitOp::kNand:
      return ~(a & b);
    case BitOp::kNor:
      return ~(a | b);
    case BitOp::kXnor:
      return ~(a ^ b);
    case BitOp::kNot:
      return ~a;
    case BitOp::kNotAnd:
      return ~a & b;
    default:
      return ~a | b;
  }
}

/// A result bit is undefined if it changes with an undefined input bit.
u64 undefined_result(BitOp op, u64 a, u64 ua, u64 b, u64 ub) {
  u64 base = apply(op, a & ~ua, b & ~ub);
  return (base ^ apply(op, (a & ~ua) | ua, b & ~ub)) | (base ^ apply(op, a & ~ua, (b & ~ub) | ub)) |
         (base ^ apply(op, (a & ~ua) | ua, (b & ~ub) | ub));
}

struct ScalarValue {
  u64 value = 0, undefined = 0;
};

ScalarValue read(const Context& c, const Operand& o, u32 dwords) {
  if (o.is_literal()) return {o.literal, 0};
  if (!o.is_scalar()) return {};
  ScalarValue v{c.wave.s[o.reg], c.bits(o.reg)};
  if (dwords == 2) v.value |= u64(c.wave.s[o.reg + 1]) << 32, v.undefined |= u64(c.bits(o.reg + 1u)) << 32;
  return v;
}

/// SCC = result != 0: known as soon as one defined bit is set.
void set_scc(Context& c, u64 value, u64 undefined) {
  set_undefined_bits(c.check, cell::kScc, undefined && !(value & ~undefined) ? 1 : 0);
}

/// Lanes that nobody knows to be on or off are a decision on an undefined value.
void check_exec(Context& c) {
  u64 u = c.check.undefined_bits[cell::kExec] | u64(c.check.undefined_bits[cell::kExec + 1]) << 32;
  u &= c.all;
  set_undefined_bits(c.check, cell::kExec, 0);
  set_undefined_bits(c.check, cell::kExec + 1, 0);
  if (!u) return;
  if (!c.launch.is_new(CheckKind::kUninitialised, c.i, nullptr)) return;
  c.launch.report(c.wave, {CheckKind::kUninitialised, &c.i, std::countr_zero(u), kScalarFirst + cell::kExec,
                           "a value that was never written decides which lanes run"});
}

void write64(Context& c, const Operand& d, u64 undefined) {
  if (d.reg > cell::kScc) return;
  set_undefined_bits(c.check, d.reg, static_cast<u32>(undefined));
  if (d.dwords == 2) set_undefined_bits(c.check, d.reg + 1u, static_cast<u32>(undefined >> 32));
}

void bitwise_op(Context& c) {
  u32 dwords = c.i.dst[0].dwords;
  ScalarValue a = read(c, c.i.src[0], dwords), b = read(c, c.i.src[1], dwords);
  u64 u = undefined_result(c.plan.op, a.value, a.undefined, b.value, b.undefined);
  u64 r = apply(c.plan.op, a.value, b.value);
  if (dwords == 1) u &= 0xffffffff, r &= 0xffffffff;
  write64(c, c.i.dst[0], u);
  set_scc(c, r, u);
}

void save_exec_op(Context& c) {
  ScalarValue a = read(c, c.i.src[0], c.wave.lanes / 32);
  u64 u = undefined_result(c.plan.op, a.value, a.undefined, c.exec, 0) & c.all;
  write64(c, c.i.dst[0], 0);
  set_undefined_bits(c.check, cell::kExec, static_cast<u32>(u));
  set_undefined_bits(c.check, cell::kExec + 1, static_cast<u32>(u >> 32));
  set_scc(c, apply(c.plan.op, a.value, c.exec) & c.all, u);
}

bool any_undefined(const Context& c) {
  for (int k = 0; k < c.plan.reads; ++k)
    for (u32 r = c.plan.read[k].first; r < u32(c.plan.read[k].first) + c.plan.read[k].count; ++r)
      if (r >= kScalarFirst && c.bits(r - kScalarFirst)) return true;
  return false;
}

void write_all_scalars(Context& c, bool u) {
  for (int k = 0; k < c.plan.writes; ++k)
    for (u32 r = c.plan.write[k].first; r < u32(c.plan.write[k].first) + c.plan.write[k].count; ++r)
      if (r >= kScalarFirst)
        set_undefined_bits(c.check, r - kScalarFirst, !u ? 0 : r == kScalarFirst + cell::kScc ? 1 : ~0u);
}

void scalar_shift(Context& c) {
  const Operand& d = c.i.dst[0];
  ScalarValue a = read(c, c.i.src[0], d.dwords), n = read(c, c.i.src[1], 1);
  if (n.undefined) return write_all_scalars(c, true);
  std::string_view name = mnemonic_info(c.i.mnemonic).name;
  u32 width = 32u * d.dwords, shift = u32(n.value) & (width - 1);
  u64 u = name.starts_with("s_lshl") ? a.undefined << shift : a.undefined >> shift;
  if (name.starts_with("s_ashr") && (a.undefined >> (width - 1))) u |= ~u64(0) << (width - 1 - shift);
  if (width == 32) u &= 0xffffffff;
  write64(c, d, u);
  set_undefined_bits(c.check, cell::kScc, u ? 1 : 0);
}

void scalar_sum(Context& c) {
  u32 u = 0;
  for (int k = 0; k < c.i.src_count; ++k) u |= u32(read(c, c.i.src[k], 1).undefined);
  u32 result = u ? ~0u << std::countr_zero(u) : 0;
  write_all_scalars(c, u != 0);
  if (c.i.dst[0].reg < cell::kScc) set_undefined_bits(c.check, c.i.dst[0].reg, result);
}

void scalar_compare(Context& c) {
  std::string_view name = mnemonic_info(c.i.mnemonic).name;
  const Operand& o = c.i.src[1];
  bool zero = (name.starts_with("s_cmp_lg") || name.starts_with("s_cmp_eq")) && o.is_literal() && o.literal == 0;
  if (zero) {
    ScalarValue a = read(c, c.i.src[0], c.i.src[0].dwords);
    return set_scc(c, a.value, a.undefined);
  }
  if (name.starts_with("s_bitcmp")) {
    ScalarValue a = read(c, c.i.src[0], c.i.src[0].dwords), n = read(c, o, 1);
    bool wide = c.i.src[0].dwords == 2;
    return set_undefined_bits(c.check, cell::kScc,
                              n.undefined || ((a.undefined >> (n.value & (wide ? 63 : 31))) & 1) ? 1 : 0);
  }
  set_undefined_bits(c.check, cell::kScc, any_undefined(c) ? 1 : 0);
}

void scalar_select(Context& c) {
  const Operand& d = c.i.dst[0];
  bool condition = c.wave.s[cell::kScc] != 0;
  if (c.bits(cell::kScc)) return write64(c, d, ~u64(0));
  if (c.i.src_count < 2) {  // s_cmov
    if (condition) write64(c, d, read(c, c.i.src[0], d.dwords).undefined);
    return;
  }
  write64(c, d, read(c, c.i.src[condition ? 0 : 1], d.dwords).undefined);
}

/// Branches on undefined conditions, jumps to undefined addresses.
void sink_op(Context& c) {
  std::string_view name = mnemonic_info(c.i.mnemonic).name;
  if (name.starts_with("s_cbranch_scc")) c.need_cell(cell::kScc, "decides a branch");
  if (name.starts_with("s_cbranch_vcc")) {
    Operand vcc;
    vcc.kind = OperandKind::kScalar;
    vcc.reg = cell::kVcc;
    ScalarValue v = read(c, vcc, c.wave.lanes / 32);
    if (v.undefined && !(v.value & ~v.undefined))
      for (u32 k = 0; k < c.wave.lanes / 32; ++k) c.need_cell(cell::kVcc + k, "decides a branch");
  }
  if (name.starts_with("s_setpc") || name.starts_with("s_swappc")) c.need_scalar(c.i.src[0], "is jumped to");
  if (c.i.dst_count && c.i.dst[0].is_scalar()) c.write_scalar(c.i.dst[0], 0);
}

void exchange_op(Context& c) {
  std::string_view name = mnemonic_info(c.i.mnemonic).name;
  bool swizzle = name.starts_with("ds_swizzle");
  const Operand& data = c.i.src[swizzle ? 0 : 1];
  u64 u = c.vector(data) & c.exec, out = 0;
  if (!swizzle) c.need_vector(c.i.src[0], "chooses a lane to exchange with");
  if (u && name.starts_with("ds_bpermute")) {
    const u32* index = c.wave.v + c.i.src[0].row;
    for (u32 l = 0; l < c.wave.lanes; ++l)
      if ((u >> (((index[l] + u32(c.i.offset)) >> 2) & (c.wave.lanes - 1))) & 1) out |= u64(1) << l;
  } else if (u == c.exec) {
    out = u;
  }
  c.write_vector(c.i.dst[0], c.exec, out);
}

constexpr const char* kAddress = "is part of an address";

void memory_op(Context& c) {
  using Class = InstructionClass;
  Class cls = c.i.cls;
  bool scalar = cls == Class::kSmem || cls == Class::kSmemStore || cls == Class::kSmemAtomic;
  bool lds = cls >= Class::kLdsLoad && cls <= Class::kLdsPermute;
  if (scalar) {
    c.need_scalar(c.i.src[0], kAddress);
    c.need_scalar(c.i.src[1], kAddress);
    if (cls != Class::kSmem) c.need_scalar(c.i.src[2], "is stored");
    return;
  }
  bool by_lane = lds && mnemonic_info(c.i.mnemonic).name.find("addtid") != std::string_view::npos;
  if (!by_lane) c.need_vector(c.i.src[0], kAddress);
  if (lds) return;  // what is stored there may be undefined until it is used
  c.need_scalar(c.i.src[2], kAddress);
  c.need_scalar(c.i.src[3], kAddress);
  bool scratch = cls == Class::kScratchLoad || cls == Class::kScratchStore;
  bool flat = cls == Class::kFlatStore || cls == Class::kFlatAtomic;  // may be LDS or scratch: judged in check_global
  if (!scratch && !flat && cls != Class::kBufferToLds) c.need_vector(c.i.src[1], "is stored to memory");
}

}  // namespace

void set_undefined(WaveCheck& check, u32 row, u64 lanes, u64 value) {
  u64 u = (check.undefined[row] & ~lanes) | (value & lanes);
  if (u == check.undefined[row]) return;
  check.undefined[row] = u;
  u ? check.add(check.undefined_set, row) : check.remove(check.undefined_set, row);
}

void set_undefined_bits(WaveCheck& check, u32 cell, u32 bits) {
  if (check.undefined_bits[cell] == bits) return;
  check.undefined_bits[cell] = bits;
  bits ? check.add(check.undefined_set, kScalarFirst + cell) : check.remove(check.undefined_set, kScalarFirst + cell);
}

namespace {

/// Sources that are defined make a defined result: by far the most common case.
bool write_defined(Wave& wave, const Instruction& i, const CheckPlan& plan) {
  WaveCheck& c = check_of(wave);
  auto any = [&](const RegisterRange& range) {
    for (u32 r = range.first; r < u32(range.first) + range.count; ++r)
      if ((c.undefined_set[r / 64] >> (r % 64)) & 1) return true;
    return false;
  };
  for (int k = 0; k < plan.reads; ++k)
    if (any(plan.read[k])) return false;
  if (plan.flow == Flow::kMemory || plan.flow == Flow::kNone) return true;
  if (plan.flow == Flow::kWriteLane || plan.flow == Flow::kSwap || plan.flow == Flow::kScalarSelect ||
      i.dpp != Dpp::kNone || i.second)
    return false;
  u64 exec = plan.flow == Flow::kMatrix ? wave.full_exec : wave.exec();
  for (int k = 0; k < plan.writes; ++k)
    for (u32 r = plan.write[k].first; r < u32(plan.write[k].first) + plan.write[k].count; ++r)
      r < kScalarFirst ? set_undefined(c, r, exec, 0) : set_undefined_bits(c, r - kScalarFirst, 0);
  return true;
}

}  // namespace

void propagate(Wave& wave, const Instruction& i, const CheckPlan& plan) {
  if (write_defined(wave, i, plan)) return;
  Context c{wave, check_of(wave), *check_of(*wave.workgroup).launch, i, plan};
  switch (plan.flow) {
    case Flow::kNone:
      break;
    case Flow::kVector:
      vector_op(c);
      break;
    case Flow::kPerDword:
      for (u32 k = 0; k < i.dst[0].dwords; ++k)
        set_undefined(c.check, i.dst[0].reg + k, c.exec,
                      i.src[0].is_vector()                         ? c.row(i.src[0].reg + k)
                      : c.scalar(i.src[0]) && i.src[0].is_scalar() ? c.all
                                                                   : 0);
      break;
    case Flow::kPackedF32:
      packed_f32(c);
      break;
    case Flow::kUpward:
    case Flow::kDownward:
      wide_integer_op(c);
      break;
    case Flow::kScalarShift:
      scalar_shift(c);
      break;
    case Flow::kScalarSum:
      scalar_sum(c);
      break;
    case Flow::kSelect:
      select_op(c);
      break;
    case Flow::kCarry:
      carry_op(c);
      break;
    case Flow::kCompare:
      compare_op(c);
      break;
    case Flow::kReadLane:
    case Flow::kReadFirstLane:
    case Flow::kWriteLane:
      lane_ops(c);
      break;
    case Flow::kPermLane16:
    case Flow::kPermLaneX16:
    case Flow::kPermLane64:
      permlane_op(c);
      break;
    case Flow::kSwap:
      swap_op(c);
      break;
    case Flow::kClear:
      if (i.dst[0].is_vector())
        c.write_vector(i.dst[0], c.exec, 0);
      else
        write_all_scalars(c, false);
      break;
    case Flow::kMatrix:
      matrix_op(c);
      break;
    case Flow::kBitwise:
      bitwise_op(c);
      break;
    case Flow::kSaveExec:
      save_exec_op(c);
      break;
    case Flow::kScalarMove:
      write64(c, i.dst[0], read(c, i.src[0], i.dst[0].dwords).undefined);
      break;
    case Flow::kScalarSelect:
      scalar_select(c);
      break;
    case Flow::kScalar:
      write_all_scalars(c, any_undefined(c));
      break;
    case Flow::kScalarCompare:
      scalar_compare(c);
      break;
    case Flow::kSink:
      sink_op(c);
      break;
    case Flow::kMemory:
      memory_op(c);
      break;
    case Flow::kExchange:
      exchange_op(c);
      break;
  }
  check_exec(c);
}

}  // namespace crest_sim
