#include "decode/text.h"

#include <array>
#include <charconv>
#include <cstdlib>

namespace crest_sim {
namespace {

struct NamedRegister {
  std::string_view name;
  uint16_t cell;
  uint8_t dwords;
};

// Width of the pairs whose low half shares the name is fixed up by the decoder (src_scc is one dword, vcc two).
constexpr std::array kNamed{
    NamedRegister{"vcc", cell::kVcc, 2},
    NamedRegister{"vcc_lo", cell::kVcc, 1},
    NamedRegister{"vcc_hi", cell::kVcc + 1, 1},
    NamedRegister{"exec", cell::kExec, 2},
    NamedRegister{"exec_lo", cell::kExec, 1},
    NamedRegister{"exec_hi", cell::kExec + 1, 1},
    NamedRegister{"m0", cell::kM0, 1},
    NamedRegister{"null", cell::kZero, 1},
    NamedRegister{"scc", cell::kScc, 1},
    NamedRegister{"src_scc", cell::kScc, 1},
    NamedRegister{"vccz", cell::kVccz, 1},
    NamedRegister{"src_vccz", cell::kVccz, 1},
    NamedRegister{"execz", cell::kExecz, 1},
    NamedRegister{"src_execz", cell::kExecz, 1},
    NamedRegister{"src_shared_base", cell::kSharedBase, 2},
    NamedRegister{"src_shared_limit", cell::kSharedLimit, 2},
    NamedRegister{"src_private_base", cell::kPrivateBase, 2},
    NamedRegister{"src_private_limit", cell::kPrivateLimit, 2},
    NamedRegister{"src_pops_exiting_wave_id", cell::kPopsWaveId, 1},
    NamedRegister{"flat_scratch", cell::kFlatScratch, 2},
    NamedRegister{"flat_scratch_lo", cell::kFlatScratch, 1},
    NamedRegister{"flat_scratch_hi", cell::kFlatScratch + 1, 1},
    NamedRegister{"xnack_mask", cell::kXnackMask, 2},
    NamedRegister{"xnack_mask_lo", cell::kXnackMask, 1},
    NamedRegister{"xnack_mask_hi", cell::kXnackMask + 1, 1},
};

bool parse_number(std::string_view text, uint32_t& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view trim(std::string_view s) {
  size_t a = s.find_first_not_of(" \t");
  if (a == std::string_view::npos) return {};
  return s.substr(a, s.find_last_not_of(" \t") - a + 1);
}

bool strip_call(std::string_view& s, std::string_view name) {
  if (s.size() < name.size() + 2 || s.substr(0, name.size()) != name || s[name.size()] != '(' || s.back() != ')')
    return false;
  s = s.substr(name.size() + 1, s.size() - name.size() - 2);
  return true;
}

bool is_number_start(std::string_view s) {
  return !s.empty() && ((s[0] >= '0' && s[0] <= '9') || (s[0] == '-' && s.size() > 1 && s[1] >= '0' && s[1] <= '9'));
}

TextOperand parse_operand(std::string_view token) {
  TextOperand out;
  out.text = std::string(token);
  if (token == "off") {
    out.kind = TextOperand::kOff;
    return out;
  }
  std::string_view s = token;
  uint8_t mods = 0;
  if (!is_number_start(s) && s.size() > 1 && s[0] == '-') mods |= kNeg, s.remove_prefix(1);
  if (strip_call(s, "neg")) mods |= kNeg;
  if (strip_call(s, "abs")) mods |= kAbs;
  if (s.size() > 2 && s.front() == '|' && s.back() == '|') mods |= kAbs, s = s.substr(1, s.size() - 2);
  if (strip_call(s, "sext")) mods |= kSext;
  bool literal = strip_call(s, "lit") || strip_call(s, "lit64");
  if (parse_register(s, out.operand, out.half)) {
    out.kind = TextOperand::kRegister;
  } else if (parse_integer(s, out.integer)) {
    out.kind = TextOperand::kInteger;
    out.hex = literal || s.find('x') != std::string_view::npos;
  } else if (is_number_start(s)) {
    std::string copy(s);
    char* end = nullptr;
    out.real = std::strtod(copy.c_str(), &end);
    if (*end == 0) out.kind = TextOperand::kFloat;
  }
  out.operand.mods |= mods;
  return out;
}

/// Splits at top-level commas or blanks; brackets, parentheses and |…| hold together.
std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    if (i < s.size()) {
      if (s[i] == '[' || s[i] == '(') ++depth;
      if (s[i] == ']' || s[i] == ')') --depth;
    }
    if (i == s.size() || (s[i] == separator && depth == 0)) {
      if (auto part = trim(s.substr(begin, i - begin)); !part.empty()) parts.push_back(part);
      begin = i + 1;
    }
  }
  return parts;
}

TextInstruction parse_one(std::string_view text) {
  TextInstruction out;
  size_t space = text.find_first_of(" \t");
  out.mnemonic = std::string(text.substr(0, space));
  if (space == std::string_view::npos) return out;
  auto groups = split(text.substr(space + 1), ',');
  for (size_t g = 0; g < groups.size(); ++g) {
    // Modifiers follow the last operand, separated by blanks; macros such as "vmcnt(0) lgkmcnt(0)" look the same.
    auto words = split(groups[g], ' ');
    for (size_t i = 0; i < words.size(); ++i) {
      std::string_view w = words[i];
      size_t colon = w.find(':');
      bool bracketed = colon != std::string_view::npos && w.find('[') < colon && w.find(']') > colon;
      bool keyed = colon != std::string_view::npos && !bracketed;
      if (i == 0 && !keyed) {
        out.operands.push_back(parse_operand(w));
      } else if (keyed) {
        out.modifiers.push_back({std::string(w.substr(0, colon)), std::string(w.substr(colon + 1))});
      } else {
        out.modifiers.push_back({std::string(w), {}});
      }
    }
  }
  return out;
}

}  // namespace

bool parse_integer(std::string_view s, int64_t& value) {
  bool negative = !s.empty() && s[0] == '-';
  if (negative) s.remove_prefix(1);
  int base = 10;
  if (s.size() > 2 && s[0] == '0' && s[1] == 'x') base = 16, s.remove_prefix(2);
  uint64_t magnitude = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), magnitude, base);
  if (s.empty() || error != std::errc() || end != s.data() + s.size()) return false;
  value = static_cast<int64_t>(negative ? -magnitude : magnitude);
  return true;
}

std::vector<int64_t> parse_list(std::string_view s) {
  std::vector<int64_t> out;
  if (s.size() < 2 || s.front() != '[' || s.back() != ']') return out;
  for (std::string_view part : split(s.substr(1, s.size() - 2), ','))
    if (int64_t v; parse_integer(part, v)) out.push_back(v);
  return out;
}

bool parse_register(std::string_view s, Operand& out, bool& half) {
  half = false;
  for (const NamedRegister& r : kNamed) {
    if (r.name != s) continue;
    out.kind = OperandKind::kScalar;
    out.reg = r.cell;
    out.dwords = r.dwords;
    return true;
  }
  std::string_view prefix = s.starts_with("ttmp") ? s.substr(0, 4) : s.substr(0, 1);
  if (prefix != "v" && prefix != "a" && prefix != "s" && prefix != "ttmp") return false;
  s.remove_prefix(prefix.size());
  uint8_t high = 0;
  if (s.ends_with(".l") || s.ends_with(".h")) {
    half = true;
    high = s.back() == 'h' ? kHigh : 0;
    s.remove_suffix(2);
  }
  uint32_t first = 0, last = 0;
  if (s.size() > 2 && s.front() == '[' && s.back() == ']') {
    s = s.substr(1, s.size() - 2);
    size_t colon = s.find(':');
    if (!parse_number(s.substr(0, colon), first)) return false;
    last = first;
    if (colon != std::string_view::npos && !parse_number(s.substr(colon + 1), last)) return false;
  } else {
    if (!parse_number(s, first)) return false;
    last = first;
  }
  if (last < first || last - first >= 32 || first > 255) return false;
  out.dwords = static_cast<uint8_t>(last - first + 1);
  out.mods = high;
  if (prefix == "v" || prefix == "a") {
    if (last > 255) return false;
    out.kind = OperandKind::kVector;
    out.reg = static_cast<uint16_t>(prefix == "a" ? 256 + first : first);
  } else {
    if (last > (prefix == "s" ? 105u : 15u)) return false;
    out.kind = OperandKind::kScalar;
    out.reg = static_cast<uint16_t>(prefix == "s" ? first : cell::kTtmp + first);
  }
  return true;
}

std::vector<TextInstruction> parse_text(std::string_view text) {
  std::vector<TextInstruction> out;
  text = text.substr(0, text.find("//"));
  while (true) {
    size_t at = text.find("::");
    auto part = trim(text.substr(0, at));
    if (part.empty()) return {};
    out.push_back(parse_one(part));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 2);
  }
}

}  // namespace crest_sim
