// Floating-point dot products of pairs, lane by lane.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "codes.h"
#include "lane_check.h"
#include "rdna3_oracle.h"

namespace crest_sim_test {
namespace {

using crest_sim::Arch;

/// Pairs of 16-bit codes in most registers, fp32 accumulators in v3 and the destination v0.
std::function<uint32_t(std::mt19937&, int)> operands(const Format& f, bool half_accumulator) {
  return [=](std::mt19937& random, int reg) {
    const int style = int(random() % 5);
    if ((reg == 0 || reg == 3) && !half_accumulator) return accumulator(random, style);
    Codes codes(random, style);
    const uint32_t low = codes(f);
    return low | codes(f) << 16;
  };
}

struct PairForm {
  const char* text;
  int half0[2], half1[2];                ///< halves of a and b for the first and second product
  int flip0 = 0, flip1 = 0, flip_c = 0;  ///< signs: bit 0 a, bit 1 b
};

std::pair<std::array<uint32_t, 2>, std::array<uint32_t, 2>> factors(const LaneView& r, const PairForm& form) {
  const auto half = [](uint32_t word, int which) { return word >> 16 * which & 0xffff; };
  const auto sign = [](int bits, int operand) { return bits >> operand & 1 ? 0x8000u : 0u; };
  return {{half(r.v(1), form.half0[0]) ^ sign(form.flip0, 0), half(r.v(1), form.half1[0]) ^ sign(form.flip1, 0)},
          {half(r.v(2), form.half0[1]) ^ sign(form.flip0, 1), half(r.v(2), form.half1[1]) ^ sign(form.flip1, 1)}};
}

const PairForm kForms[] = {{"", {0, 0}, {1, 1}},
                           {" op_sel:[1,0,0] op_sel_hi:[0,1,0]", {1, 0}, {0, 1}},
                           {" neg_lo:[0,1,1] neg_hi:[1,0,0]", {0, 0}, {1, 1}, 2, 1, 1}};

TEST(FloatDot, Rdna3SinglePrecisionResults) {
  for (const Arch arch : {Arch::kGfx1100, Arch::kGfx1151}) {
    for (const int lanes : {32, 64}) {
      for (const bool bf16 : {false, true}) {
        for (const PairForm& form : kForms) {
          LaneCheck check{.arch = arch, .lanes = lanes};
          check.text = std::string("v_dot2_f32_") + (bf16 ? "bf16" : "f16") + " v0, v1, v2, v3" + form.text;
          check.fill = operands(bf16 ? kBf16 : kF16, false);
          check.expected = [&](const LaneView& r) -> Writes {
            const auto [a, b] = factors(r, form);
            return {{0, rdna3_dot2(a, b, r.v(3) ^ (form.flip_c ? 0x80000000u : 0), bf16, DotResult::kF32)}};
          };
          run_check(check);
          check.mode = 0x30f;  // rounding and denormal modes do not matter
          check.cases = 640;
          run_check(check);
        }
      }
      LaneCheck check{.arch = arch, .lanes = lanes, .text = "v_dot2acc_f32_f16 v0, v1, v2"};
      check.fill = operands(kF16, false);
      check.expected = [&](const LaneView& r) -> Writes {
        const auto [a, b] = factors(r, kForms[0]);
        return {{0, rdna3_dot2(a, b, r.v(0), false, DotResult::kF32)}};
      };
      run_check(check);
    }
  }
}

/// Both halves of a dual-issued pair read before either writes.
TEST(FloatDot, Rdna3DualIssue) {
  for (const bool bf16 : {false, true}) {
    LaneCheck check{.arch = Arch::kGfx1100, .lanes = 32};
    check.text = std::string("v_dual_dot2acc_f32_") + (bf16 ? "bf16" : "f16") + " v0, v1, v2 :: v_dual_mov_b32 v3, v0";
    check.fill = operands(bf16 ? kBf16 : kF16, false);
    check.expected = [&](const LaneView& r) -> Writes {
      const auto [a, b] = factors(r, kForms[0]);
      return {{0, rdna3_dot2(a, b, r.v(0), bf16, DotResult::kF32)}, {3, r.v(0)}};
    };
    run_check(check);
  }
}

TEST(FloatDot, ClampKeepsZeroToOne) {
  for (const Arch arch : {Arch::kGfx1100, Arch::kGfx942}) {
    LaneCheck check{
        .arch = arch, .lanes = arch == Arch::kGfx942 ? 64 : 32, .text = "v_dot2_f32_f16 v0, v1, v2, v3 clamp"};
    // Half of 1 and quarter sums: exact in every rule, on both sides of both limits.
    check.fill = [](std::mt19937& random, int reg) {
      if (reg == 3) return 0x3f000000u;
      if (reg == 2) return 0x38003800u;
      return random() % 2 ? 0x3c003c00u : random() % 2 ? 0x34003400u : 0xbc00bc00u;
    };
    check.expected = [](const LaneView& r) -> Writes {
      const double x = 0.5 + decode(kF16, r.v(1) & 0xffff).value();
      const double want = x > 1 ? 1 : x < 0 ? 0 : x;
      return {{0, std::bit_cast<uint32_t>(float(want))}};
    };
    run_check(check);
  }
}

TEST(FloatDot, Rdna3HalfPrecisionResults) {
  for (const int lanes : {32, 64}) {
    for (const bool bf16 : {false, true}) {
      for (const int halves : {0, 1, 2, 3}) {  // bit 0: half of c, bit 1: half of the result
        for (const bool saturate : {false, true}) {
          LaneCheck check{.arch = Arch::kGfx1100, .lanes = lanes};
          check.text = std::string("v_dot2_") + (bf16 ? "bf16_bf16" : "f16_f16") + (halves & 2 ? " v0.h" : " v0.l") +
                       ", v1, v2, v3" + (halves & 1 ? ".h" : ".l");
          check.fill = operands(bf16 ? kBf16 : kF16, true);
          check.mode = saturate ? 0x3f0 | 1 << 23 : 0x3f0;
          check.cases = saturate ? 1024 : 10240;
          check.expected = [&](const LaneView& r) -> Writes {
            const auto [a, b] = factors(r, kForms[0]);
            const uint32_t c = halves & 1 ? r.v(3) >> 16 : r.v(3) & 0xffff;
            const uint32_t x = rdna3_dot2(a, b, c, bf16, bf16 ? DotResult::kBf16 : DotResult::kF16, saturate);
            return {{0, halves & 2 ? x << 16 | (r.v(0) & 0xffff) : x | (r.v(0) & 0xffff0000u)}};
          };
          run_check(check);
        }
      }
    }
  }
}

/// KN-4: the product of 0x4049 and 0x402d as bf16 is 0x4108; a dot instruction cuts it to 0x4107.
TEST(FloatDot, Bf16ProductsAreCut) {
  LaneCheck check{.arch = Arch::kGfx1100, .lanes = 32, .text = "v_dot2_bf16_bf16 v0.l, v1, v2, v3.l"};
  check.fill = [](std::mt19937&, int reg) { return reg == 1 ? 0x4049u : reg == 2 ? 0x402du : 0u; };
  check.expected = [](const LaneView&) -> Writes { return {{0, 0x4107}}; };
  check.cases = 32;
  run_check(check);
}

float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

/// CDNA: c + a0·b0, then + a1·b1, each fused and to nearest even; fp32 subnormals of c and the result are zeros.
TEST(FloatDot, CdnaChains) {
  struct Row {
    Arch arch;
    const char* name;
    bool bf16, accumulates;
  };
  for (const Row& row :
       {Row{Arch::kGfx942, "v_dot2_f32_f16", false, false}, Row{Arch::kGfx950, "v_dot2_f32_f16", false, false},
        Row{Arch::kGfx950, "v_dot2_f32_bf16", true, false}, Row{Arch::kGfx942, "v_dot2c_f32_f16", false, true},
        Row{Arch::kGfx950, "v_dot2c_f32_bf16", true, true}}) {
    for (const PairForm& form : kForms) {
      if (form.text[0] && row.accumulates) continue;
      if (std::string(form.text).find("op_sel") != std::string::npos) continue;  // not encodable on gfx9
      LaneCheck check{.arch = row.arch, .lanes = 64};
      const Format f = row.bf16 ? kBf16 : kF16;
      check.text = std::string(row.name) + (row.accumulates ? " v0, v1, v2" : " v0, v1, v2, v3") + form.text;
      check.fill = operands(f, false);
      check.expected = [&](const LaneView& r) -> Writes {
        const auto [a, b] = factors(r, form);
        const uint32_t code = row.accumulates ? r.v(0) : r.v(3) ^ (form.flip_c ? 0x80000000u : 0);
        float sum = flushed(std::bit_cast<float>(code));
        for (int t = 0; t < 2; ++t)
          sum = std::fma(float(decode(f, a[size_t(t)]).value()), float(decode(f, b[size_t(t)]).value()), sum);
        // NaN payloads are the host's on both sides only if neither is a choice between two NaNs.
        return {{0, std::bit_cast<uint32_t>(flushed(sum))}};
      };
      // NaN operands are left to the test of special values below.
      const auto all = check.fill;
      check.fill = [&, all](std::mt19937& random, int reg) {
        for (;;) {
          const uint32_t word = all(random, reg);
          const bool wide = reg == 0 || reg == 3;
          if (wide ? std::isfinite(std::bit_cast<float>(word))
                   : decode(f, word & 0xffff).kind == Kind::kFinite && decode(f, word >> 16).kind == Kind::kFinite) {
            return word;
          }
        }
      };
      run_check(check);
    }
  }
}

TEST(FloatDot, CdnaSpecialValues) {
  struct Row {
    uint32_t a, b, c, want;
  };
  for (const Row& row : {Row{0x00007c00, 0x00003c00, 0, 0x7f800000}, Row{0x00007c00, 0x0000bc00, 0, 0xff800000},
                         Row{0x3c000000, 0x7c000000, 0x3f800000, 0x7f800000}, Row{0, 0, 0x7f800000, 0x7f800000}}) {
    LaneCheck check{.arch = Arch::kGfx942, .text = "v_dot2_f32_f16 v0, v1, v2, v3"};
    check.fill = [&](std::mt19937&, int reg) { return reg == 1 ? row.a : reg == 2 ? row.b : reg == 3 ? row.c : 0; };
    check.expected = [&](const LaneView&) -> Writes { return {{0, row.want}}; };
    check.cases = 64;
    run_check(check);
  }
}

}  // namespace
}  // namespace crest_sim_test
