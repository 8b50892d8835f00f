// The printed form of an instruction, taken apart. The assembly syntax is documented by AMD and LLVM and survives LLVM
// releases; MCInst's operand order does not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crest_sim/instruction.h"

namespace crest_sim {

struct TextOperand {
  enum Kind : uint8_t { kRegister, kInteger, kFloat, kOff, kMacro } kind = kMacro;
  Operand operand;      ///< kRegister: kind, reg, dwords, mods (kHigh for .h); otherwise only mods
  int64_t integer = 0;  ///< kInteger
  bool hex = false;     ///< kInteger printed in hexadecimal: a literal, not an inline constant
  double real = 0;      ///< kFloat
  bool half = false;    ///< register with .l or .h
  std::string text;     ///< as printed
};

struct TextModifier {
  std::string key;    ///< "offset", "clamp", "row_shr", "op_sel"
  std::string value;  ///< empty for flags; "[0,1]", "0xf", "BYTE_1"
};

struct TextInstruction {
  std::string mnemonic;  ///< with encoding suffix
  std::vector<TextOperand> operands;
  std::vector<TextModifier> modifiers;
};

/// One element, or two for VOPD ("a :: b"). Empty if the text does not follow the syntax.
std::vector<TextInstruction> parse_text(std::string_view text);

/// Register names ("v[0:3]", "vcc_lo", "src_shared_base", "ttmp[2:3]"); false if it is none.
bool parse_register(std::string_view text, Operand& out, bool& half);

/// Value of "0x1f", "-12", …; false if not an integer.
bool parse_integer(std::string_view text, int64_t& value);

/// Elements of "[1,0,1]".
std::vector<int64_t> parse_list(std::string_view text);

}  // namespace crest_sim
