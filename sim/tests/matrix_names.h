// Every matrix mnemonic that LLVM 22 prints for the four targets (llvm-mc accepts other spellings of some of them).
#pragma once

#include <string>
#include <vector>

#include "matrix_support.h"

namespace crest_sim_test {

inline const std::vector<std::string>& cdna_names() {
  static const std::vector<std::string> names = {
      "v_mfma_f32_32x32x1_2b_f32",     "v_mfma_f32_16x16x1_4b_f32",     "v_mfma_f32_4x4x1_16b_f32",
      "v_mfma_f32_32x32x2_f32",        "v_mfma_f32_16x16x4_f32",        "v_mfma_f32_32x32x4_2b_f16",
      "v_mfma_f32_16x16x4_4b_f16",     "v_mfma_f32_4x4x4_16b_f16",      "v_mfma_f32_32x32x8_f16",
      "v_mfma_f32_16x16x16_f16",       "v_mfma_f32_32x32x4_2b_bf16",    "v_mfma_f32_16x16x4_4b_bf16",
      "v_mfma_f32_4x4x4_16b_bf16",     "v_mfma_f32_32x32x8_bf16",       "v_mfma_f32_16x16x16_bf16",
      "v_mfma_i32_32x32x4_2b_i8",      "v_mfma_i32_16x16x4_4b_i8",      "v_mfma_i32_4x4x4_16b_i8",
      "v_mfma_i32_32x32x16_i8",        "v_mfma_i32_16x16x32_i8",        "v_mfma_f64_16x16x4_f64",
      "v_mfma_f64_4x4x4_4b_f64",       "v_mfma_f32_16x16x32_bf8_bf8",   "v_mfma_f32_16x16x32_bf8_fp8",
      "v_mfma_f32_16x16x32_fp8_bf8",   "v_mfma_f32_16x16x32_fp8_fp8",   "v_mfma_f32_32x32x16_bf8_bf8",
      "v_mfma_f32_32x32x16_bf8_fp8",   "v_mfma_f32_32x32x16_fp8_bf8",   "v_mfma_f32_32x32x16_fp8_fp8",
      "v_smfmac_f32_16x16x32_f16",     "v_smfmac_f32_32x32x16_f16",     "v_smfmac_f32_16x16x32_bf16",
      "v_smfmac_f32_32x32x16_bf16",    "v_smfmac_i32_16x16x64_i8",      "v_smfmac_i32_32x32x32_i8",
      "v_smfmac_f32_16x16x64_bf8_bf8", "v_smfmac_f32_16x16x64_bf8_fp8", "v_smfmac_f32_16x16x64_fp8_bf8",
      "v_smfmac_f32_16x16x64_fp8_fp8", "v_smfmac_f32_32x32x32_bf8_bf8", "v_smfmac_f32_32x32x32_bf8_fp8",
      "v_smfmac_f32_32x32x32_fp8_bf8", "v_smfmac_f32_32x32x32_fp8_fp8"};
  return names;
}

inline std::vector<Instruction> all_instructions() {
  using crest_sim::Arch;
  std::vector<Instruction> all;
  for (const Arch arch : {Arch::kGfx942, Arch::kGfx950}) {
    for (const auto& name : cdna_names()) all.push_back(parse(name, arch, 64));
  }
  for (const char* name : {"v_mfma_f32_16x16x8_xf32", "v_mfma_f32_32x32x4_xf32"})
    all.push_back(parse(name, Arch::kGfx942, 64));
  for (const char* name :
       {"v_mfma_f32_32x32x16_f16",        "v_mfma_f32_16x16x32_f16",        "v_mfma_f32_32x32x16_bf16",
        "v_mfma_f32_16x16x32_bf16",       "v_mfma_i32_32x32x32_i8",         "v_mfma_i32_16x16x64_i8",
        "v_smfmac_f32_16x16x64_f16",      "v_smfmac_f32_32x32x32_f16",      "v_smfmac_f32_16x16x64_bf16",
        "v_smfmac_f32_32x32x32_bf16",     "v_smfmac_i32_16x16x128_i8",      "v_smfmac_i32_32x32x64_i8",
        "v_smfmac_f32_16x16x128_bf8_bf8", "v_smfmac_f32_16x16x128_bf8_fp8", "v_smfmac_f32_16x16x128_fp8_bf8",
        "v_smfmac_f32_16x16x128_fp8_fp8", "v_smfmac_f32_32x32x64_bf8_bf8",  "v_smfmac_f32_32x32x64_bf8_fp8",
        "v_smfmac_f32_32x32x64_fp8_bf8",  "v_smfmac_f32_32x32x64_fp8_fp8"}) {
    all.push_back(parse(name, Arch::kGfx950, 64));
  }
  // The f8f6f4 family: formats come from CBSZ and BLGP.
  for (const char* name : {"v_mfma_f32_16x16x128_f8f6f4", "v_mfma_f32_32x32x64_f8f6f4",
                           "v_mfma_scale_f32_16x16x128_f8f6f4", "v_mfma_scale_f32_32x32x64_f8f6f4"}) {
    for (const char* a : {"fp8", "bf8", "fp6", "bf6", "fp4"}) {
      for (const char* b : {"fp8", "bf8", "fp6", "bf6", "fp4"}) {
        Instruction in = parse(name, Arch::kGfx950, 64);
        in.a = a;
        in.b = b;
        all.push_back(in);
      }
    }
  }
  for (const Arch arch : {Arch::kGfx1100, Arch::kGfx1151}) {
    for (const int lanes : {32, 64}) {
      for (const char* name : {"v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_bf16", "v_wmma_f16_16x16x16_f16",
                               "v_wmma_bf16_16x16x16_bf16", "v_wmma_i32_16x16x16_iu8", "v_wmma_i32_16x16x16_iu4"}) {
        all.push_back(parse(name, arch, lanes));
      }
    }
  }
  return all;
}

inline int format_selector(const std::string& type) {
  return type == "fp8" ? 0 : type == "bf8" ? 1 : type == "fp6" ? 2 : type == "bf6" ? 3 : 4;
}

inline std::string label(const Instruction& in, const Level& level) {
  return in.mnemonic + " " + in.a + "/" + in.b + " on " + std::string(crest_sim::target_info(in.arch).name) + " wave" +
         std::to_string(in.lanes) + ", build " + level.name;
}

inline const crest_sim::MatrixOp* find(const Instruction& in, const Level& level) {
  return level.find(in.mnemonic, crest_sim::target_info(in.arch), uint32_t(in.lanes));
}

}  // namespace crest_sim_test
