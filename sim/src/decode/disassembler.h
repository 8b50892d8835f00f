// LLVM's AMDGPU disassembler: length, printed text and a plain view of the MCInst.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crest_sim/target.h"

namespace crest_sim {

/// One MCInst operand.
struct McOperand {
  enum Kind : uint8_t { kRegister, kImmediate, kOther } kind = kOther;
  std::string name;  ///< register name as LLVM's enumeration spells it ("VGPR4_VGPR5", "VCC_LO")
  int64_t immediate = 0;
  bool is_source_immediate = false;  ///< register-or-immediate slot, as opposed to a modifier
};

struct RawInstruction {
  uint32_t size = 0;
  std::string text;    ///< without leading white space
  std::string opcode;  ///< enumeration name ("V_ADD_F32_e32_vi")
  uint32_t defs = 0;
  uint16_t implicit = 0;  ///< ImplicitUse
  std::vector<McOperand> operands;
};

class Disassembler {
 public:
  Disassembler(const TargetInfo& target, uint32_t wave_size);
  ~Disassembler();
  /// False if LLVM knows no such instruction. `pc` is only used to print branch targets.
  bool decode(std::span<const uint8_t> bytes, uint64_t pc, RawInstruction& out);
  /// Empty unless the LLVM that was found cannot serve the target.
  const std::string& error() const { return error_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string error_;
};

}  // namespace crest_sim
