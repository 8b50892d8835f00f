#include <fmt/format.h>

#include <cstring>

#include "decode/decoder.h"
#include "run/levels.h"

namespace crest_sim {
namespace {

/// Calls that continue elsewhere name their target in the encoding.
bool has_target(std::string_view base) {
  return base.starts_with("s_cbranch_") || base == "s_branch" || base == "s_call_b64";
}

bool skippable(const Instruction& i) {
  return (i.cls == InstructionClass::kNop || i.cls == InstructionClass::kWait) && i.execute != levels().unknown;
}

/// Lets the plain loop jump over waits and nops, which only matter to checks and timing.
void link_steps(Code& code) {
  for (size_t n = code.instructions.size(); n-- > 0;) {
    Instruction& i = code.instructions[n];
    i.step = 1;
    bool goes_on =
        i.cls != InstructionClass::kBranch && i.cls != InstructionClass::kEnd && i.cls != InstructionClass::kMessage;
    if (!goes_on || n + 1 >= code.instructions.size()) continue;
    const Instruction& next = code.instructions[n + 1];
    if (skippable(next) && n + 1 + next.step < code.instructions.size() && next.step < 200)
      i.step = static_cast<uint8_t>(next.step + 1);
  }
}

void link_branches(Code& code, const std::vector<size_t>& branches) {
  for (size_t n : branches) {
    Instruction& i = code.instructions[n];
    i.target = code.index_at(code.section_address + static_cast<uint64_t>(int64_t(i.pc) + 4 + int64_t(i.offset) * 4));
  }
}

}  // namespace

Code decode_section(const TargetInfo& target, uint32_t wave_size, uint64_t address, std::span<const uint8_t> bytes) {
  Code code;
  code.target = &target;
  code.wave_size = wave_size;
  code.section_address = address;
  code.bytes.assign(bytes.begin(), bytes.end());
  code.index_of_word.assign(bytes.size() / 4, -1);
  Disassembler disassembler(target, wave_size);
  RawInstruction raw;
  std::vector<Instruction> parts;
  std::vector<std::string> bases;
  std::vector<size_t> branches;
  for (size_t pc = 0; pc + 4 <= bytes.size();) {
    auto rest = std::span<const uint8_t>(code.bytes).subspan(pc);
    code.index_of_word[pc / 4] = static_cast<int32_t>(code.instructions.size());
    Instruction i;
    bool decoded = disassembler.decode(rest, address + pc, raw);
    bool known = decoded && raw.size % 4 == 0 && decode_instruction(target, wave_size, raw, rest, parts, bases);
    if (known) {
      for (size_t k = 0; k < parts.size(); ++k) known = levels().bind(parts[k], bases[k], target, wave_size) && known;
      i = parts[0];
      if (parts.size() == 2) {
        i.pc = parts[1].pc = static_cast<uint32_t>(pc);
        code.second_halves.push_back(std::make_unique<Instruction>(parts[1]));
        i.second = code.second_halves.back().get();
        i.mnemonic = intern_mnemonic("v_dual_" + bases[0].substr(2) + "::v_dual_" + bases[1].substr(2),
                                     InstructionClass::kValu, std::max(i.fidelity, i.second->fidelity));
        i.fidelity = std::max(i.fidelity, i.second->fidelity);
        levels().bind_pair(i);
      } else {
        i.mnemonic = intern_mnemonic(bases[0], i.cls, i.fidelity);
      }
      if (has_target(bases[0])) branches.push_back(code.instructions.size());
    }
    if (!known) {
      uint32_t word;
      std::memcpy(&word, rest.data(), 4);
      code.unknown.push_back(fmt::format("{:#x}: {:08x}{}", pc, word, decoded ? " " + raw.text : ""));
      i = Instruction{};
      i.execute = levels().unknown;
      i.size = static_cast<uint8_t>(decoded ? raw.size : 4);
      i.mnemonic = intern_mnemonic("unknown", InstructionClass::kUnknown, Fidelity::kExact);
    }
    i.pc = static_cast<uint32_t>(pc);
    pc += i.size;
    code.instructions.push_back(i);
  }
  // Running past the end of the section must fail, not read behind the array.
  Instruction end;
  end.execute = levels().unknown;
  end.pc = static_cast<uint32_t>(bytes.size());
  end.mnemonic = intern_mnemonic("unknown", InstructionClass::kUnknown, Fidelity::kExact);
  code.instructions.push_back(end);
  link_branches(code, branches);
  link_steps(code);
  return code;
}

std::string Code::disassembly(const Instruction& instruction) const {
  if (instruction.pc >= bytes.size()) return "(end of the code section)";
  Disassembler disassembler(*target, wave_size);
  RawInstruction raw;
  auto rest = std::span<const uint8_t>(bytes).subspan(instruction.pc);
  if (disassembler.decode(rest, section_address + instruction.pc, raw)) return raw.text;
  uint32_t word;
  std::memcpy(&word, rest.data(), 4);
  return fmt::format("(unknown word {:08x})", word);
}

Status check_llvm() {
  struct Known {
    Arch arch;
    uint32_t wave;
    std::vector<uint8_t> bytes;
    std::string_view text;
  };
  const Known known[] = {
      {Arch::kGfx942,
       64,
       {0x00, 0x80, 0xe0, 0xd3, 0x00, 0x05, 0x02, 0x02},
       "v_mfma_f32_32x32x8_bf16 a[0:15], v[0:1], v[2:3], 0"},
      {Arch::kGfx950, 64, {0x01, 0x05, 0x00, 0x32}, "v_add_co_u32_e32 v0, vcc, v1, v2"},
      {Arch::kGfx1100,
       32,
       {0x01, 0x01, 0x10, 0xca, 0x00, 0x01, 0x00, 0x00},
       "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0"},
      {Arch::kGfx1151, 32, {0x00, 0x03, 0x92, 0x7d}, "v_cmpx_lt_u32_e32 v0, v1"},
  };
  for (const Known& k : known) {
    Disassembler d(target_info(k.arch), k.wave);
    if (!d.error().empty()) return Error{d.error()};
    RawInstruction raw;
    if (!d.decode(k.bytes, 0, raw))
      return Error{fmt::format("LLVM does not decode \"{}\" for {}", k.text, target_info(k.arch).name)};
    if (raw.text != k.text)
      return Error{fmt::format("LLVM decodes \"{}\" for {} as \"{}\"", k.text, target_info(k.arch).name, raw.text)};
  }
  return Unit{};
}

}  // namespace crest_sim
