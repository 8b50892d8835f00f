#include "decode/disassembler.h"

#include <fmt/format.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCExpr.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/MC/MCInstrInfo.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <mutex>

#include "crest_sim/instruction.h"

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

namespace crest_sim {

struct Disassembler::Impl {
  llvm::MCTargetOptions options;
  std::unique_ptr<llvm::MCRegisterInfo> registers;
  std::unique_ptr<llvm::MCAsmInfo> assembly;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCContext> context;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
};

Disassembler::Disassembler(const TargetInfo& target, uint32_t wave_size) : impl_(std::make_unique<Impl>()) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
  });
  Impl& m = *impl_;
  llvm::Triple triple("amdgcn-amd-amdhsa");
#if LLVM_VERSION_MAJOR >= 22
  const llvm::Triple& name = triple;
#else
  std::string name = triple.str();
#endif
  const llvm::Target* t = llvm::TargetRegistry::lookupTarget(name, error_);
  if (!t) return;
  m.registers.reset(t->createMCRegInfo(name));
  m.assembly.reset(t->createMCAsmInfo(*m.registers, name, m.options));
  m.instructions.reset(t->createMCInstrInfo());
  const char* features = target.cdna       ? ""
                         : wave_size == 32 ? "+wavefrontsize32,-wavefrontsize64"
                                           : "-wavefrontsize32,+wavefrontsize64";
  m.subtarget.reset(t->createMCSubtargetInfo(name, std::string(target.name), features));
  if (!m.subtarget || !m.subtarget->isCPUStringValid(std::string(target.name))) {
    error_ = fmt::format("LLVM {} does not know the processor {}", LLVM_VERSION_STRING, target.name);
    return;
  }
  m.context = std::make_unique<llvm::MCContext>(triple, m.assembly.get(), m.registers.get(), m.subtarget.get());
  m.disassembler.reset(t->createMCDisassembler(*m.subtarget, *m.context));
  m.printer.reset(
      t->createMCInstPrinter(triple, m.assembly->getAssemblerDialect(), *m.assembly, *m.instructions, *m.registers));
  if (!m.disassembler || !m.printer) error_ = fmt::format("LLVM {} has no AMDGPU disassembler", LLVM_VERSION_STRING);
}

Disassembler::~Disassembler() = default;

namespace {

/// Bit of ImplicitUse for reading the register; the bit for writing is twice that.
uint16_t implicit_bit(llvm::StringRef name) {
  if (name == "SCC" || name == "SRC_SCC") return kReadsScc;
  if (name.starts_with("VCC")) return kReadsVcc;
  if (name.starts_with("EXEC")) return kReadsExec;
  if (name == "M0" || name.starts_with("M0_")) return kReadsM0;
  return 0;
}

}  // namespace

bool Disassembler::decode(std::span<const uint8_t> bytes, uint64_t pc, RawInstruction& out) {
  if (!error_.empty()) return false;
  Impl& m = *impl_;
  llvm::MCInst inst;
  uint64_t size = 0;
  auto status = m.disassembler->getInstruction(inst, size, llvm::ArrayRef<uint8_t>(bytes.data(), bytes.size()), pc,
                                               llvm::nulls());
  if (status == llvm::MCDisassembler::Fail || size == 0 || size > bytes.size()) return false;
  out.size = static_cast<uint32_t>(size);
  out.text.clear();
  llvm::raw_string_ostream stream(out.text);
  m.printer->printInst(&inst, pc, "", *m.subtarget, stream);
  stream.flush();
  out.text.erase(0, out.text.find_first_not_of(" \t"));
  out.opcode = m.instructions->getName(inst.getOpcode()).str();
  const llvm::MCInstrDesc& description = m.instructions->get(inst.getOpcode());
  out.defs = description.getNumDefs();
  out.implicit = 0;
  for (auto reg : description.implicit_uses()) {
    out.implicit |= implicit_bit(m.registers->getName(reg));
    if (llvm::StringRef(m.registers->getName(reg)) == "MODE") out.implicit |= kReadsMode;
  }
  for (auto reg : description.implicit_defs())
    out.implicit |= static_cast<uint16_t>(2 * implicit_bit(m.registers->getName(reg)));
  out.operands.clear();
  for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
    const llvm::MCOperand& op = inst.getOperand(i);
    McOperand o;
    if (op.isReg()) {
      if (!op.getReg()) continue;
      // Tied operands repeat a destination, which the text shows once; LLVM even gets their number wrong for the Y half
      // of VOPD and their half for v_fmac_f16 with op_sel.
      if (i < description.getNumOperands() && description.getOperandConstraint(i, llvm::MCOI::TIED_TO) >= 0) continue;
      o.kind = McOperand::kRegister;
      o.name = m.registers->getName(op.getReg());
    } else if (op.isImm()) {
      o.kind = McOperand::kImmediate;
      o.immediate = op.getImm();
      // Register-or-immediate slots have target operand types; modifiers are plain immediates.
      int type = i < description.getNumOperands() ? description.operands()[i].OperandType : 0;
      o.is_source_immediate = type >= llvm::MCOI::OPERAND_FIRST_TARGET;
    } else if (op.isExpr()) {
      int64_t value = 0;
      if (op.getExpr()->evaluateAsAbsolute(value)) {
        o.kind = McOperand::kImmediate;
        o.immediate = value;
        o.is_source_immediate = true;
      }
    }
    out.operands.push_back(std::move(o));
  }
  return true;
}

}  // namespace crest_sim
