// How the interpreter calls matrix operations (sim/src/matrix). A handler gets pointers to the first row of each
// operand; register r + 1 of an operand is `lanes` dwords behind register r. EXEC and MODE do not matter to matrix
// instructions, and the caller has put the host's rounding into round-to-nearest with denormals on.
#pragma once

#include <cstdint>
#include <string_view>

#include "crest_sim/instruction.h"
#include "crest_sim/target.h"

namespace crest_sim {

struct MatrixCall {
  uint32_t* d;
  const uint32_t* a;
  const uint32_t* b;
  const uint32_t* c;               ///< may be equal to d (or overlap it); never null: literals come as splatted rows
  uint32_t lanes;                  ///< 32 or 64
  const Instruction* instruction;  ///< cbsz, abid, blgp, clamp; neg/abs and op_sel in src[i].mods
  // v_mfma_scale_*: rows with one scale byte per lane, byte chosen by op_sel of the operand; null without scales.
  const uint32_t* scale_a;
  const uint32_t* scale_b;
  // SMFMAC: the index row; null otherwise.
  const uint32_t* index;
};

using MatrixFn = void (*)(const MatrixCall&);

struct MatrixOp {
  MatrixFn fast = nullptr;
  MatrixFn strict = nullptr;
  Fidelity fidelity = Fidelity::kModelled;          ///< of `strict`
  Fidelity fast_fidelity = Fidelity::kApproximate;  ///< of `fast`: that of `strict` where both compute the same
  uint8_t a_dwords = 0, b_dwords = 0, c_dwords = 0, d_dwords = 0;
};

namespace CREST_SIM_LEVEL {
/// Finds an operation by base mnemonic ("v_mfma_f32_32x32x8_bf16", "v_wmma_f32_16x16x16_f16",
/// "v_smfmac_f32_16x16x32_bf16") for a target and wave size; null if unknown. The object lives for the whole process.
const MatrixOp* find_matrix_op(std::string_view mnemonic, const TargetInfo& target, uint32_t wave_size);
}  // namespace CREST_SIM_LEVEL

}  // namespace crest_sim
