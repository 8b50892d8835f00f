// Which matrix instructions exist, by mnemonic.
#include <utility>

#include "matrix/tile.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

enum Machine : uint8_t { kCdna3 = 1, kCdna4 = 2, kCdna = 3, kRdna3 = 4 };

struct Entry {
  std::string_view name;
  uint8_t machines;
  MatrixFamily family;
  int8_t m;
  int16_t k;
  int8_t blocks;
  Element a, b;
  Accumulator d;
};

using enum Element;
constexpr auto M = MatrixFamily::kMfma;
constexpr auto S = MatrixFamily::kSmfmac;
constexpr auto X = MatrixFamily::kScaledMfma;
constexpr auto W = MatrixFamily::kWmma;
constexpr auto F = Accumulator::kF32;
constexpr auto I = Accumulator::kI32;

// Canonical spellings, as LLVM prints them.
constexpr Entry kEntries[] = {
    {"v_mfma_f32_32x32x1_2b_f32", kCdna, M, 32, 1, 2, kF32, kF32, F},
    {"v_mfma_f32_16x16x1_4b_f32", kCdna, M, 16, 1, 4, kF32, kF32, F},
    {"v_mfma_f32_4x4x1_16b_f32", kCdna, M, 4, 1, 16, kF32, kF32, F},
    {"v_mfma_f32_32x32x2_f32", kCdna, M, 32, 2, 1, kF32, kF32, F},
    {"v_mfma_f32_16x16x4_f32", kCdna, M, 16, 4, 1, kF32, kF32, F},
    {"v_mfma_f32_16x16x8_xf32", kCdna3, M, 16, 8, 1, kXf32, kXf32, F},
    {"v_mfma_f32_32x32x4_xf32", kCdna3, M, 32, 4, 1, kXf32, kXf32, F},
    {"v_mfma_f32_32x32x4_2b_f16", kCdna, M, 32, 4, 2, kF16, kF16, F},
    {"v_mfma_f32_16x16x4_4b_f16", kCdna, M, 16, 4, 4, kF16, kF16, F},
    {"v_mfma_f32_4x4x4_16b_f16", kCdna, M, 4, 4, 16, kF16, kF16, F},
    {"v_mfma_f32_32x32x8_f16", kCdna, M, 32, 8, 1, kF16, kF16, F},
    {"v_mfma_f32_16x16x16_f16", kCdna, M, 16, 16, 1, kF16, kF16, F},
    {"v_mfma_f32_32x32x16_f16", kCdna4, M, 32, 16, 1, kF16, kF16, F},
    {"v_mfma_f32_16x16x32_f16", kCdna4, M, 16, 32, 1, kF16, kF16, F},
    {"v_mfma_f32_32x32x4_2b_bf16", kCdna, M, 32, 4, 2, kBf16, kBf16, F},
    {"v_mfma_f32_16x16x4_4b_bf16", kCdna, M, 16, 4, 4, kBf16, kBf16, F},
    {"v_mfma_f32_4x4x4_16b_bf16", kCdna, M, 4, 4, 16, kBf16, kBf16, F},
    {"v_mfma_f32_32x32x8_bf16", kCdna, M, 32, 8, 1, kBf16, kBf16, F},
    {"v_mfma_f32_16x16x16_bf16", kCdna, M, 16, 16, 1, kBf16, kBf16, F},
    {"v_mfma_f32_32x32x16_bf16", kCdna4, M, 32, 16, 1, kBf16, kBf16, F},
    {"v_mfma_f32_16x16x32_bf16", kCdna4, M, 16, 32, 1, kBf16, kBf16, F},
    {"v_mfma_i32_32x32x4_2b_i8", kCdna, M, 32, 4, 2, kI8, kI8, I},
    {"v_mfma_i32_16x16x4_4b_i8", kCdna, M, 16, 4, 4, kI8, kI8, I},
    {"v_mfma_i32_4x4x4_16b_i8", kCdna, M, 4, 4, 16, kI8, kI8, I},
    {"v_mfma_i32_32x32x16_i8", kCdna, M, 32, 16, 1, kI8, kI8, I},
    {"v_mfma_i32_16x16x32_i8", kCdna, M, 16, 32, 1, kI8, kI8, I},
    {"v_mfma_i32_32x32x32_i8", kCdna4, M, 32, 32, 1, kI8, kI8, I},
    {"v_mfma_i32_16x16x64_i8", kCdna4, M, 16, 64, 1, kI8, kI8, I},
    {"v_mfma_f64_16x16x4_f64", kCdna, M, 16, 4, 1, kF64, kF64, Accumulator::kF64},
    {"v_mfma_f64_4x4x4_4b_f64", kCdna, M, 4, 4, 4, kF64, kF64, Accumulator::kF64},
    {"v_mfma_f32_16x16x32_bf8_bf8", kCdna, M, 16, 32, 1, kBf8, kBf8, F},
    {"v_mfma_f32_16x16x32_bf8_fp8", kCdna, M, 16, 32, 1, kBf8, kFp8, F},
    {"v_mfma_f32_16x16x32_fp8_bf8", kCdna, M, 16, 32, 1, kFp8, kBf8, F},
    {"v_mfma_f32_16x16x32_fp8_fp8", kCdna, M, 16, 32, 1, kFp8, kFp8, F},
    {"v_mfma_f32_32x32x16_bf8_bf8", kCdna, M, 32, 16, 1, kBf8, kBf8, F},
    {"v_mfma_f32_32x32x16_bf8_fp8", kCdna, M, 32, 16, 1, kBf8, kFp8, F},
    {"v_mfma_f32_32x32x16_fp8_bf8", kCdna, M, 32, 16, 1, kFp8, kBf8, F},
    {"v_mfma_f32_32x32x16_fp8_fp8", kCdna, M, 32, 16, 1, kFp8, kFp8, F},
    {"v_mfma_f32_16x16x128_f8f6f4", kCdna4, X, 16, 128, 1, kFp8, kFp8, F},
    {"v_mfma_f32_32x32x64_f8f6f4", kCdna4, X, 32, 64, 1, kFp8, kFp8, F},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", kCdna4, X, 16, 128, 1, kFp8, kFp8, F},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", kCdna4, X, 32, 64, 1, kFp8, kFp8, F},
    {"v_smfmac_f32_16x16x32_f16", kCdna, S, 16, 32, 1, kF16, kF16, F},
    {"v_smfmac_f32_32x32x16_f16", kCdna, S, 32, 16, 1, kF16, kF16, F},
    {"v_smfmac_f32_16x16x32_bf16", kCdna, S, 16, 32, 1, kBf16, kBf16, F},
    {"v_smfmac_f32_32x32x16_bf16", kCdna, S, 32, 16, 1, kBf16, kBf16, F},
    {"v_smfmac_i32_16x16x64_i8", kCdna, S, 16, 64, 1, kI8, kI8, I},
    {"v_smfmac_i32_32x32x32_i8", kCdna, S, 32, 32, 1, kI8, kI8, I},
    {"v_smfmac_f32_16x16x64_bf8_bf8", kCdna, S, 16, 64, 1, kBf8, kBf8, F},
    {"v_smfmac_f32_16x16x64_bf8_fp8", kCdna, S, 16, 64, 1, kBf8, kFp8, F},
    {"v_smfmac_f32_16x16x64_fp8_bf8", kCdna, S, 16, 64, 1, kFp8, kBf8, F},
    {"v_smfmac_f32_16x16x64_fp8_fp8", kCdna, S, 16, 64, 1, kFp8, kFp8, F},
    {"v_smfmac_f32_32x32x32_bf8_bf8", kCdna, S, 32, 32, 1, kBf8, kBf8, F},
    {"v_smfmac_f32_32x32x32_bf8_fp8", kCdna, S, 32, 32, 1, kBf8, kFp8, F},
    {"v_smfmac_f32_32x32x32_fp8_bf8", kCdna, S, 32, 32, 1, kFp8, kBf8, F},
    {"v_smfmac_f32_32x32x32_fp8_fp8", kCdna, S, 32, 32, 1, kFp8, kFp8, F},
    {"v_smfmac_f32_16x16x64_f16", kCdna4, S, 16, 64, 1, kF16, kF16, F},
    {"v_smfmac_f32_32x32x32_f16", kCdna4, S, 32, 32, 1, kF16, kF16, F},
    {"v_smfmac_f32_16x16x64_bf16", kCdna4, S, 16, 64, 1, kBf16, kBf16, F},
    {"v_smfmac_f32_32x32x32_bf16", kCdna4, S, 32, 32, 1, kBf16, kBf16, F},
    {"v_smfmac_i32_16x16x128_i8", kCdna4, S, 16, 128, 1, kI8, kI8, I},
    {"v_smfmac_i32_32x32x64_i8", kCdna4, S, 32, 64, 1, kI8, kI8, I},
    {"v_smfmac_f32_16x16x128_bf8_bf8", kCdna4, S, 16, 128, 1, kBf8, kBf8, F},
    {"v_smfmac_f32_16x16x128_bf8_fp8", kCdna4, S, 16, 128, 1, kBf8, kFp8, F},
    {"v_smfmac_f32_16x16x128_fp8_bf8", kCdna4, S, 16, 128, 1, kFp8, kBf8, F},
    {"v_smfmac_f32_16x16x128_fp8_fp8", kCdna4, S, 16, 128, 1, kFp8, kFp8, F},
    {"v_smfmac_f32_32x32x64_bf8_bf8", kCdna4, S, 32, 64, 1, kBf8, kBf8, F},
    {"v_smfmac_f32_32x32x64_bf8_fp8", kCdna4, S, 32, 64, 1, kBf8, kFp8, F},
    {"v_smfmac_f32_32x32x64_fp8_bf8", kCdna4, S, 32, 64, 1, kFp8, kBf8, F},
    {"v_smfmac_f32_32x32x64_fp8_fp8", kCdna4, S, 32, 64, 1, kFp8, kFp8, F},
    {"v_wmma_f32_16x16x16_f16", kRdna3, W, 16, 16, 1, kF16, kF16, F},
    {"v_wmma_f32_16x16x16_bf16", kRdna3, W, 16, 16, 1, kBf16, kBf16, F},
    {"v_wmma_f16_16x16x16_f16", kRdna3, W, 16, 16, 1, kF16, kF16, Accumulator::kF16},
    {"v_wmma_bf16_16x16x16_bf16", kRdna3, W, 16, 16, 1, kBf16, kBf16, Accumulator::kBf16},
    {"v_wmma_i32_16x16x16_iu8", kRdna3, W, 16, 16, 1, kI8, kI8, I},
    {"v_wmma_i32_16x16x16_iu4", kRdna3, W, 16, 16, 1, kI4, kI4, I},
};
constexpr int kEntryCount = int(sizeof(kEntries) / sizeof(kEntries[0]));

/// Machine variants of an entry: gfx942, gfx950, RDNA3 wave32, RDNA3 wave64.
enum Variant : uint8_t { kVariantGfx942, kVariantGfx950, kVariantWave32, kVariantWave64, kVariantCount };

constexpr MatrixShape shape_of(const Entry& e, int variant) {
  MatrixShape shape{e.family, e.m, e.k, e.blocks, e.a, e.b, e.d};
  shape.fnuz = variant == kVariantGfx942;
  shape.lanes = variant == kVariantWave32 ? 32 : 64;
  return shape;
}

/// `fast` is another computation for fp32 results of narrow inputs only.
constexpr bool has_one_way(const Entry& e) { return e.d != Accumulator::kF32 || e.a == kF32; }

template <int Index, int Variant>
struct Handlers {
  static constexpr MatrixShape kShape = shape_of(kEntries[Index], Variant);
  static void fast(const MatrixCall& call) {
    if constexpr (kShape.family == W) return run_wmma(kShape, call, false);
    if constexpr (kShape.d == Accumulator::kF64) return run_f64(kShape, call);
    run_fast(kShape, call);
  }
  static void strict(const MatrixCall& call) {
    if constexpr (kShape.family == W) return run_wmma(kShape, call, true);
    // Chains of fused multiply-adds and integers have one way to be computed.
    if constexpr (has_one_way(kEntries[Index])) return fast(call);
    run_strict(kShape, call);
  }
};

constexpr Fidelity fidelity_of(const Entry& e, int variant) {
  if (e.d == I) return Fidelity::kExact;
  const bool measured = variant != kVariantGfx950 && e.family != S;  // the rule was checked on this hardware
  const bool chain = e.a == kF32 || e.a == kF64;
  return chain && measured ? Fidelity::kExact : Fidelity::kModelled;
}

template <int Index, int Variant>
constexpr MatrixOp make_op() {
  using H = Handlers<Index, Variant>;
  constexpr Entry e = kEntries[Index];
  constexpr MatrixShape s = H::kShape;
  constexpr Fidelity fidelity = fidelity_of(e, Variant);
  const int c_dwords = s.sparse() ? 0 : s.d_dwords();
  return {.fast = &H::fast,
          .strict = &H::strict,
          .fidelity = fidelity,
          .fast_fidelity = has_one_way(e) ? fidelity : Fidelity::kApproximate,
          .a_dwords = uint8_t(s.a_dwords()),
          .b_dwords = uint8_t(s.b_dwords()),
          .c_dwords = uint8_t(c_dwords),
          .d_dwords = uint8_t(s.d_dwords())};
}

template <int Variant, int... Index>
const MatrixOp* op_at(int index, std::integer_sequence<int, Index...>) {
  static const MatrixOp ops[] = {make_op<Index, Variant>()...};
  return &ops[index];
}

}  // namespace

const MatrixOp* find_matrix_op(std::string_view mnemonic, const TargetInfo& target, uint32_t wave_size) {
  const uint8_t machine = !target.cdna ? kRdna3 : target.arch == Arch::kGfx942 ? kCdna3 : kCdna4;
  for (int i = 0; i < kEntryCount; ++i) {
    if (kEntries[i].name != mnemonic || !(kEntries[i].machines & machine)) continue;
    constexpr std::make_integer_sequence<int, kEntryCount> all;
    switch (machine) {
      case kCdna3:
        return op_at<kVariantGfx942>(i, all);
      case kCdna4:
        return op_at<kVariantGfx950>(i, all);
      default:
        return wave_size == 32 ? op_at<kVariantWave32>(i, all) : op_at<kVariantWave64>(i, all);
    }
  }
  return nullptr;
}

}  // namespace crest_sim::CREST_SIM_LEVEL
