// Compares the two views of an instruction that LLVM gives: the printed text, which execution uses, and the MCInst.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "decode/decoder.h"

namespace crest_sim {
namespace {

/// "v4", "s[2:3]" … as kind:number:width, so that names from both views compare equal.
struct RegisterKey {
  char kind;
  int first;
  int width;
  int half;  // 0 whole, 1 low, 2 high
  auto operator<=>(const RegisterKey&) const = default;
};

std::string show(const RegisterKey& k) {
  return fmt::format("{}{}+{}{}", k.kind, k.first, k.width, k.half == 0 ? "" : k.half == 1 ? ".l" : ".h");
}

bool mc_register(std::string_view name, RegisterKey& key) {
  int width = 1 + static_cast<int>(std::count(name.begin(), name.end(), '_'));
  auto number = [&](size_t at) { return std::atoi(std::string(name.substr(at)).c_str()); };
  int half = name.ends_with("_LO16") ? 1 : name.ends_with("_HI16") ? 2 : 0;
  if (name.starts_with("VGPR") || name.starts_with("AGPR")) {
    key = {name[0] == 'V' ? 'v' : 'a', number(4), half ? 1 : width, half};
  } else if (name.starts_with("SGPR_NULL")) {
    key = {'s', cell::kZero, 1, 0};
  } else if (name.starts_with("SGPR")) {
    key = {'s', number(4), half ? 1 : width, 0};
  } else if (name.starts_with("TTMP")) {
    // TTMP4_TTMP5_gfx9plus: the suffix is no register.
    int count = 0;
    for (size_t at = name.find("TTMP"); at != std::string_view::npos; at = name.find("TTMP", at + 4)) ++count;
    key = {'s', cell::kTtmp + number(4), count, 0};
  } else {
    struct Named {
      std::string_view prefix;
      int cell, width;
    };
    static constexpr Named kNames[] = {{"VCC_LO", cell::kVcc, 1},
                                       {"VCC_HI", cell::kVcc + 1, 1},
                                       {"VCC", cell::kVcc, 2},
                                       {"EXEC_LO", cell::kExec, 1},
                                       {"EXEC_HI", cell::kExec + 1, 1},
                                       {"EXEC", cell::kExec, 2},
                                       {"M0", cell::kM0, 1},
                                       {"SRC_SCC", cell::kScc, 1},
                                       {"SRC_VCCZ", cell::kVccz, 1},
                                       {"SRC_EXECZ", cell::kExecz, 1},
                                       {"SRC_SHARED_BASE", cell::kSharedBase, 2},
                                       {"SRC_SHARED_LIMIT", cell::kSharedLimit, 2},
                                       {"SRC_PRIVATE_BASE", cell::kPrivateBase, 2},
                                       {"SRC_PRIVATE_LIMIT", cell::kPrivateLimit, 2},
                                       {"SRC_POPS", cell::kPopsWaveId, 1},
                                       {"FLAT_SCR_LO", cell::kFlatScratch, 1},
                                       {"FLAT_SCR_HI", cell::kFlatScratch + 1, 1},
                                       {"FLAT_SCR", cell::kFlatScratch, 2},
                                       {"XNACK_MASK_LO", cell::kXnackMask, 1},
                                       {"XNACK_MASK_HI", cell::kXnackMask + 1, 1},
                                       {"XNACK_MASK", cell::kXnackMask, 2}};
    for (const Named& n : kNames)
      if (name.starts_with(n.prefix)) {
        key = {'s', n.cell, n.width, 0};
        return true;
      }
    return false;
  }
  return true;
}

RegisterKey text_register(const TextOperand& t) {
  const Operand& o = t.operand;
  int half = t.half ? (o.mods & kHigh ? 2 : 1) : 0;
  if (o.is_vector()) return {o.reg >= 256 ? 'a' : 'v', o.reg & 255, o.dwords, half};
  return {'s', o.reg, o.dwords, 0};
}

/// Apertures are 64-bit registers with 32-bit names and VCC is named by its low half in wave32: compare those by
/// number.
bool width_is_loose(const RegisterKey& k) { return k.kind == 's' && k.first >= cell::kVcc; }

bool same(const RegisterKey& a, const RegisterKey& b) {
  return a == b || (width_is_loose(a) && a.kind == b.kind && a.first == b.first);
}

bool is_implicit(const RegisterKey& k) {
  return k.kind == 's' &&
         (k.first == cell::kVcc || k.first == cell::kExec || k.first == cell::kM0 || k.first == cell::kScc);
}

}  // namespace

std::string cross_check(const RawInstruction& raw, const std::vector<TextInstruction>& text) {
  std::vector<RegisterKey> mc, printed;
  std::multiset<int64_t> immediates;
  for (const McOperand& o : raw.operands) {
    RegisterKey key;
    if (o.kind == McOperand::kImmediate) immediates.insert(o.immediate);
    if (o.kind != McOperand::kRegister) continue;
    if (!mc_register(o.name, key)) return fmt::format("{}: MCInst register {} is not known", raw.text, o.name);
    mc.push_back(key);
  }
  for (const TextInstruction& t : text)
    for (const TextOperand& o : t.operands)
      if (o.kind == TextOperand::kRegister) printed.push_back(text_register(o));
  for (const RegisterKey& k : printed)
    if (!is_implicit(k) && std::none_of(mc.begin(), mc.end(), [&](const auto& m) { return same(k, m); }))
      return fmt::format("{}: the text names {}, the MCInst does not", raw.text, show(k));
  for (const RegisterKey& k : mc)
    if (!is_implicit(k) && k.first != cell::kZero &&
        std::none_of(printed.begin(), printed.end(), [&](const auto& m) { return same(m, k); }))
      return fmt::format("{}: the MCInst names {}, the text does not", raw.text, show(k));
  for (const TextInstruction& t : text) {
    auto known = [&](int64_t v) {
      return std::any_of(immediates.begin(), immediates.end(), [&](int64_t m) {
        return m == v || static_cast<uint32_t>(m) == static_cast<uint32_t>(v) ||
               static_cast<uint16_t>(m) == static_cast<uint64_t>(v) ||
               static_cast<uint64_t>(m) >> 32 == static_cast<uint64_t>(v);
      });
    };
    for (const TextOperand& o : t.operands)
      if (o.kind == TextOperand::kInteger && !known(o.integer))
        return fmt::format("{}: the text has the value {}, the MCInst does not", raw.text, o.text);
    // Negative offsets are sign-extended by the printer only.
    auto known_offset = [&](int64_t v) {
      for (int width : {12, 13, 21, 24})
        if (v < 0 && immediates.contains(v & ((int64_t(1) << width) - 1))) return true;
      return known(v);
    };
    for (const TextModifier& m : t.modifiers) {
      int64_t v = 0;
      if ((m.key == "offset" || m.key == "offset0" || m.key == "offset1") && parse_integer(m.value, v) &&
          !known_offset(v))
        return fmt::format("{}: {}:{} is not in the MCInst", raw.text, m.key, m.value);
    }
  }
  return {};
}

}  // namespace crest_sim
