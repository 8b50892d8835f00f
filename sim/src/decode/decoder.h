// Bytes → pre-decoded instructions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "crest_sim/code_object.h"
#include "decode/disassembler.h"
#include "decode/text.h"

namespace crest_sim {

/// Decodes a whole code section. Words that LLVM or the interpreter does not know become instructions that fail when
/// executed; they are listed in Code::unknown.
Code decode_section(const TargetInfo& target, uint32_t wave_size, uint64_t address, std::span<const uint8_t> bytes);

/// Fills everything but `execute`; false if the text does not follow the syntax.
bool decode_instruction(const TargetInfo& target, uint32_t wave_size, const RawInstruction& raw,
                        std::span<const uint8_t> bytes, std::vector<Instruction>& out,
                        std::vector<std::string>& base_mnemonics);

/// Differences between the printed operands and the MCInst; empty if the two views agree.
std::string cross_check(const RawInstruction& raw, const std::vector<TextInstruction>& text);

/// "v_add_f32_e64_dpp" → "v_add_f32".
std::string base_mnemonic(std::string_view mnemonic);

InstructionClass classify(std::string_view base, const Instruction& instruction);

/// Interns the lane map of a DPP control word (or of a DPP8 selector if `dpp8`).
const LaneMap* lane_map(bool dpp8, uint32_t control, uint32_t lanes);

uint16_t intern_mnemonic(std::string_view base, InstructionClass cls, Fidelity fidelity);

}  // namespace crest_sim
