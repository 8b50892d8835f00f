#include "decode/decoder.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "run/levels.h"

namespace crest_sim {
namespace {

bool starts(std::string_view s, std::string_view prefix) { return s.starts_with(prefix); }
bool has(std::string_view s, std::string_view part) { return s.find(part) != std::string_view::npos; }

/// The bits of a float that LLVM printed: the MCInst has them in the operand's own type.
bool float_bits(const RawInstruction& raw, double printed, uint64_t& bits) {
  auto close = [&](double v) { return v == printed || std::fabs(v - printed) <= 1e-3 * std::fabs(printed); };
  for (const McOperand& o : raw.operands) {
    if (o.kind != McOperand::kImmediate || !o.is_source_immediate) continue;
    uint64_t value = static_cast<uint64_t>(o.immediate);
    bool match = value >> 32   ? close(std::bit_cast<double>(value))
                 : value >> 16 ? close(std::bit_cast<float>(static_cast<uint32_t>(value)))
                               : close(static_cast<double>(std::bit_cast<_Float16>(static_cast<uint16_t>(value)))) ||
                                     close(std::bit_cast<float>(static_cast<uint32_t>(value) << 16));
    if (!match) continue;
    bits = value;
    return true;
  }
  return false;
}

/// True if source `index` of an f64 operation is itself an f64 (a 32-bit literal is then the upper half).
bool is_f64_source(std::string_view base, size_t index) {
  if (!base.ends_with("_f64")) return false;
  return index == 0 || !(starts(base, "v_ldexp") || starts(base, "v_cmp_class") || starts(base, "v_cmpx_class") ||
                         starts(base, "v_trig_preop"));
}

/// Instructions printed with VCC as a second destination although LLVM calls it implicit.
bool has_carry_out(std::string_view base) {
  return (starts(base, "v_add") || starts(base, "v_sub")) && has(base, "_co_");
}

class Builder {
 public:
  Builder(const TargetInfo& target, uint32_t lanes, const RawInstruction& raw, std::span<const uint8_t> bytes)
      : target_(target), lanes_(lanes), raw_(raw), bytes_(bytes) {}

  bool build(const TextInstruction& text, bool is_half, Instruction& out, std::string& base) {
    base = base_mnemonic(text.mnemonic);
    if (is_half) base = "v_" + base.substr(7);  // v_dual_add_f32 → v_add_f32
    out.size = static_cast<uint8_t>(raw_.size);
    out.implicit = raw_.implicit;
    read_modifiers(text, out);
    if (!read_operands(text, base, is_half, out)) return false;
    out.cls = classify(base, out);
    if (out.cls == InstructionClass::kWait) read_wait(base, out);
    finish_encoding(text, base, out);
    return true;
  }

 private:
  uint32_t word() const {
    uint32_t w = 0;
    std::memcpy(&w, bytes_.data(), 4);
    return w;
  }

  static int32_t value_of(const TextModifier& m) {
    int64_t v = 0;
    parse_integer(m.value, v);
    return static_cast<int32_t>(v);
  }

  static Select select_of(std::string_view s) {
    constexpr std::string_view names[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
    for (int i = 0; i < 7; ++i)
      if (s == names[i]) return static_cast<Select>(i);
    return Select::kDword;
  }

  void read_modifiers(const TextInstruction& text, Instruction& out) {
    for (const TextModifier& m : text.modifiers) {
      std::string_view k = m.key;
      if (k == "offset" || k == "offset0")
        out.offset = value_of(m);
      else if (k == "offset1")
        out.offset2 = value_of(m);
      else if (k == "clamp")
        out.clamp = true;
      else if (k == "mul")
        out.omod = m.value == "2" ? 1 : 2;
      else if (k == "div")
        out.omod = 3;
      else if (k == "sc0" || k == "glc")
        out.cache |= kCacheSc0;
      else if (k == "sc1")
        out.cache |= kCacheSc1;
      else if (k == "nt" || k == "slc")
        out.cache |= kCacheNt;
      else if (k == "dlc")
        out.cache |= kCacheDlc;
      else if (k == "offen")
        out.flags |= kFlagOffen;
      else if (k == "idxen")
        out.flags |= kFlagIdxen;
      else if (k == "lds")
        out.flags |= kFlagLds;
      else if (k == "gds")
        out.flags |= kFlagGds;
      else if (k == "cbsz")
        out.cbsz = static_cast<uint8_t>(value_of(m));
      else if (k == "abid")
        out.abid = static_cast<uint8_t>(value_of(m));
      else if (k == "blgp")
        out.blgp = static_cast<uint8_t>(value_of(m));
      else if (k == "bitop3")
        out.offset = value_of(m);
      else if (k == "row_mask")
        out.row_mask = static_cast<uint8_t>(value_of(m));
      else if (k == "bank_mask")
        out.bank_mask = static_cast<uint8_t>(value_of(m));
      else if (k == "bound_ctrl")
        out.bound_ctrl = true;
      else if (k == "fi")
        out.fetch_inactive = value_of(m) != 0;
      else if (k == "dst_sel")
        out.dst_select = select_of(m.value), out.sdwa = true;
      else if (k == "dst_unused")
        out.dst_unused = m.value == "UNUSED_PRESERVE" ? 2 : m.value == "UNUSED_SEXT" ? 1 : 0;
      else
        read_dpp(m, out);
    }
  }

  void read_dpp(const TextModifier& m, Instruction& out) {
    int n = value_of(m);
    uint32_t control = 0;
    std::string_view k = m.key;
    if (k == "quad_perm" || k == "dpp8") {
      auto list = parse_list(m.value);
      int bits = k == "dpp8" ? 3 : 2;
      for (size_t i = 0; i < list.size(); ++i) control |= static_cast<uint32_t>(list[i]) << (bits * i);
      out.dpp = k == "dpp8" ? Dpp::kDpp8 : Dpp::kDpp16;
    } else if (k == "row_shl")
      control = 0x100 + n;
    else if (k == "row_shr")
      control = 0x110 + n;
    else if (k == "row_ror")
      control = 0x120 + n;
    else if (k == "wave_shl")
      control = 0x130;
    else if (k == "wave_rol")
      control = 0x134;
    else if (k == "wave_shr")
      control = 0x138;
    else if (k == "wave_ror")
      control = 0x13c;
    else if (k == "row_mirror")
      control = 0x140;
    else if (k == "row_half_mirror")
      control = 0x141;
    else if (k == "row_bcast")
      control = n == 15 ? 0x142 : 0x143;
    else if (k == "row_newbcast" || k == "row_share")
      control = 0x150 + n;
    else if (k == "row_xmask")
      control = 0x160 + n;
    else
      return;
    if (out.dpp == Dpp::kNone) out.dpp = Dpp::kDpp16;
    out.dpp_ctrl = static_cast<uint16_t>(control);
    out.lane_map = lane_map(out.dpp == Dpp::kDpp8, control, lanes_);
    if (out.dpp == Dpp::kDpp8) out.bound_ctrl = true;
  }

  bool to_operand(const TextOperand& t, std::string_view base, size_t source, Operand& out) {
    out = t.operand;
    if (t.kind == TextOperand::kRegister) {
      if (out.is_vector()) out.row = uint64_t(out.reg) * lanes_;
      return true;
    }
    out.kind = OperandKind::kLiteral;
    if (t.kind == TextOperand::kInteger) {
      out.literal = static_cast<uint64_t>(t.integer);
      if (t.hex && is_f64_source(base, source)) out.literal <<= 32;
      return true;
    }
    if (t.kind == TextOperand::kFloat) {
      uint64_t bits = 0;
      if (!float_bits(raw_, t.real, bits)) return false;
      out.literal = bits;
      return true;
    }
    return false;
  }

  /// How many of the printed operands are destinations.
  size_t count_destinations(const TextInstruction& text, std::string_view base, bool is_half) const {
    if (is_half) return 1;
    const auto& ops = text.operands;
    size_t n = raw_.defs;
    if (starts(base, "v_cmp")) return ops.size() >= 3 ? 1 : 0;
    if (starts(base, "v_movrel")) return 1;  // LLVM takes a destination that M0 moves for a source
    if (starts(base, "v_swap_") || starts(base, "v_swaprel_") || (starts(base, "v_permlane") && has(base, "_swap_b32")))
      return 2;
    if (n == 1 && has_carry_out(base) && ops.size() > 3) return 2;
    return std::min(n, ops.size());
  }

  bool read_operands(const TextInstruction& text, std::string_view base, bool is_half, Instruction& out) {
    const auto& ops = text.operands;
    size_t defs = count_destinations(text, base, is_half);
    if (defs > 2) return false;
    bool memory = !starts(base, "v_") && !starts(base, "s_") && !starts(base, "ds_");
    for (size_t i = 0; i < defs; ++i) {
      Operand& d = out.dst[out.dst_count++];
      if (!to_operand(ops[i], base, 0, d)) return false;
      if (d.is_scalar() && d.reg == cell::kZero) d.reg = cell::kTrash;
      if (ops[i].half) out.flags |= kFlagTrue16;
    }
    if (memory) return read_memory(ops, defs, base, out);
    if (starts(base, "s_load") || starts(base, "s_store") || starts(base, "s_buffer") || starts(base, "s_atomic") ||
        starts(base, "s_scratch"))
      return read_smem(ops, defs, base, out);
    for (size_t i = defs; i < ops.size(); ++i) {
      if (ops[i].half) out.flags |= kFlagTrue16;
      if (ops[i].kind == TextOperand::kMacro || ops[i].kind == TextOperand::kOff)
        continue;  // waitcnt, hwreg, sendmsg …
      if (out.src_count == 5) return false;
      if (!to_operand(ops[i], base, i - defs, out.src[out.src_count])) return false;
      Operand& o = out.src[out.src_count++];
      if (o.is_scalar() && (o.reg == cell::kVccz || o.reg == cell::kExecz)) out.flags |= kFlagReadsExecz;
    }
    if (base == "v_cndmask_b32" && out.src_count == 2) {  // VOPD does not print VCC
      Operand vcc;
      vcc.kind = OperandKind::kScalar;
      vcc.reg = cell::kVcc;
      vcc.dwords = static_cast<uint8_t>(lanes_ / 32);
      out.src[out.src_count++] = vcc;
    }
    read_source_modifiers(text, base, out);
    return true;
  }

  /// Canonical order: address, data, resource or scalar base, scalar offset.
  bool read_memory(const std::vector<TextOperand>& ops, size_t defs, std::string_view base, Instruction& out) {
    bool buffer = starts(base, "buffer_") || starts(base, "tbuffer_");
    bool store = has(base, "store"), atomic = has(base, "atomic") || has(base, "_csub");
    bool to_lds = has(base, "_lds_");
    if (to_lds) out.flags |= kFlagLds;
    if (buffer && (ops.empty() || ops[0].kind == TextOperand::kMacro)) {  // buffer_gl0_inv, "buffer_inv sc1"
      for (const TextOperand& o : ops)
        out.cache |= o.text == "sc0" ? kCacheSc0 : o.text == "sc1" ? kCacheSc1 : o.text == "nt" ? kCacheNt : 0;
      return true;
    }
    size_t i = defs;
    out.src_count = 4;
    auto take = [&](int slot) {
      if (i >= ops.size()) return;
      const TextOperand& t = ops[i++];
      if (t.kind != TextOperand::kOff) ok_ = ok_ && to_operand(t, base, 1, out.src[slot]);
      if (t.half) out.flags |= kFlagTrue16;
    };
    if (buffer) {
      if (store || (atomic && defs == 0)) take(1);
      if (atomic && defs != 0) out.src[1] = out.dst[0];
      take(0);
      take(2);
      take(3);
    } else {
      take(0);
      if (store || atomic) take(1);
      take(2);
      if (out.src[2].kind != OperandKind::kNone) out.flags |= kFlagSaddr;
      if (out.src[0].kind != OperandKind::kNone) out.flags |= kFlagVaddr;
    }
    if (atomic && defs != 0) out.flags |= kFlagReturn;
    if (atomic && buffer && defs != 0) {
      // A compare-and-swap returns one value and takes two.
      if (has(base, "cmpswap")) out.dst[0].dwords = static_cast<uint8_t>(out.dst[0].dwords / 2);
    }
    return ok_ && i == ops.size();
  }

  bool read_smem(const std::vector<TextOperand>& ops, size_t defs, std::string_view base, Instruction& out) {
    out.src_count = 3;
    size_t i = defs;
    bool data = has(base, "store") || has(base, "atomic");
    if (data && defs == 0) {
      if (i >= ops.size() || !to_operand(ops[i++], base, 0, out.src[2])) return false;
    } else if (data) {
      out.src[2] = out.dst[0];
      out.flags |= kFlagReturn;
    }
    if (i >= ops.size() || !to_operand(ops[i++], base, 0, out.src[0])) return false;
    if (i < ops.size()) {
      if (ops[i].kind == TextOperand::kInteger)
        out.offset = static_cast<int32_t>(ops[i].integer);
      else if (ops[i].kind == TextOperand::kRegister && !to_operand(ops[i], base, 0, out.src[1]))
        return false;
      ++i;
    }
    return i == ops.size();
  }

  void read_source_modifiers(const TextInstruction& text, std::string_view base, Instruction& out) {
    bool mix = has(base, "_mix_") || has(base, "_mixlo_") || has(base, "_mixhi_");
    bool packed = starts(base, "v_pk_") || starts(base, "v_dot") || starts(base, "v_wmma") || starts(base, "v_swmmac");
    if (packed && !mix)
      for (int i = 0; i < out.src_count; ++i) out.src[i].mods |= kHighHi;
    for (const TextModifier& m : text.modifiers) {
      std::string_view k = m.key;
      if (k == "src0_sel" || k == "src1_sel") {
        out.src[k == "src1_sel"].select = select_of(m.value);
        out.sdwa = true;
        continue;
      }
      uint8_t bit = k == "op_sel"      ? kHigh
                    : k == "op_sel_hi" ? kHighHi
                    : k == "neg_lo"    ? kNeg
                    : k == "neg_hi"    ? (mix ? kAbs : kNegHi)
                                       : 0;
      if (!bit) continue;
      auto list = parse_list(m.value);
      if (starts(base, "v_mfma_scale")) {  // bytes of the two scale operands
        for (size_t i = 0; i < 2 && i < list.size(); ++i)
          out.src[3 + i].mods |= static_cast<uint8_t>(list[i] ? bit : 0);
        continue;
      }
      for (size_t i = 0; i < list.size(); ++i) {
        // An element more than there are sources is for the destination; byte selectors have an unused source between.
        bool destination = i + 1 == list.size() && i >= out.src_count;
        if (i >= 5 || (destination && out.dst_count == 0)) break;
        Operand& o = destination ? out.dst[0] : out.src[i];
        o.mods = static_cast<uint8_t>(list[i] ? o.mods | bit : o.mods & ~bit);
      }
    }
    if (text.mnemonic.ends_with("_sdwa")) out.sdwa = true;
  }

  void read_wait(std::string_view base, Instruction& out) {
    uint32_t imm = word() & 0xffff;
    if (base == "s_waitcnt_vscnt")
      out.wait_vs = static_cast<uint16_t>(imm & 63);
    else if (base == "s_waitcnt_vmcnt")
      out.wait_vm = static_cast<uint16_t>(imm & 63);
    else if (base == "s_waitcnt_lgkmcnt")
      out.wait_lgkm = static_cast<uint16_t>(imm & 63);
    else if (base == "s_waitcnt_expcnt")
      out.wait_exp = static_cast<uint16_t>(imm & 7);
    if (base != "s_waitcnt") return;
    uint32_t vm = target_.cdna ? (imm & 15) | (imm >> 14 << 4) : imm >> 10;
    uint32_t exp = target_.cdna ? (imm >> 4) & 7 : imm & 7;
    uint32_t lgkm = target_.cdna ? (imm >> 8) & 15 : (imm >> 4) & 63;
    if (vm != 63) out.wait_vm = static_cast<uint16_t>(vm);
    if (exp != 7) out.wait_exp = static_cast<uint16_t>(exp);
    if (lgkm != (target_.cdna ? 15u : 63u)) out.wait_lgkm = static_cast<uint16_t>(lgkm);
  }

  /// Immediates that are printed as macros or labels come from the encoding.
  void finish_encoding(const TextInstruction& text, std::string_view base, Instruction& out) {
    uint32_t w = word();
    bool sopp = (w >> 23) == 0x17f, sopk = (w >> 28) == 0xb && !sopp;
    if (starts(base, "s_") && (sopp || sopk)) out.offset = static_cast<int16_t>(w & 0xffff);
    if (base == "s_set_gpr_idx_on") out.offset = static_cast<int32_t>((w >> 8) & 0xff);
    // The format of tbuffer instructions: dfmt and nfmt of gfx9 together, or the joint number of RDNA3.
    if (starts(base, "tbuffer_")) out.offset2 = static_cast<int32_t>(w >> 19 & 0x7f);
    if (starts(base, "s_sendmsg_rtn")) out.offset = static_cast<int32_t>(w & 0xff);
    if (base == "ds_swizzle_b32") out.offset = static_cast<int32_t>(w & 0xffff);
    // global_load_lds has no LDS operand; MFMA names neg_* bits through blgp.
    for (const TextModifier& m : text.modifiers)
      if (m.key == "neg" && starts(base, "v_mfma")) {
        auto list = parse_list(m.value);
        for (size_t i = 0; i < list.size(); ++i) out.blgp |= static_cast<uint8_t>(list[i] << i);
      }
  }

  const TargetInfo& target_;
  uint32_t lanes_;
  const RawInstruction& raw_;
  std::span<const uint8_t> bytes_;
  bool ok_ = true;
};

}  // namespace

std::string base_mnemonic(std::string_view m) {
  for (std::string_view suffix : {"_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"})
    if (m.ends_with(suffix)) {
      m.remove_suffix(suffix.size());
      break;
    }
  return std::string(m);
}

bool decode_instruction(const TargetInfo& target, uint32_t wave_size, const RawInstruction& raw,
                        std::span<const uint8_t> bytes, std::vector<Instruction>& out,
                        std::vector<std::string>& base_mnemonics) {
  auto text = parse_text(raw.text);
  if (text.empty() || text.size() > 2) return false;
  bool dual = text.size() == 2;
  Builder builder(target, wave_size, raw, bytes);
  out.clear();
  base_mnemonics.clear();
  for (const TextInstruction& t : text) {
    if (dual && !t.mnemonic.starts_with("v_dual_")) return false;
    Instruction i;
    std::string base;
    if (!builder.build(t, dual, i, base)) return false;
    out.push_back(i);
    base_mnemonics.push_back(base);
  }
#ifndef NDEBUG
  if (!cross_check(raw, text).empty()) return false;
#endif
  return true;
}

}  // namespace crest_sim
