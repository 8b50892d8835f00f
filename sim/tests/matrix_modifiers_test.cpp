// Broadcasts, lane permutations, signs, halves, scales and index sets of matrix instructions.
#include "integer_case.h"

namespace crest_sim_test {
namespace {

using crest_sim::kHigh;
using crest_sim::kHighHi;
using crest_sim::kNegHi;

TEST(MatrixModifiers, CbszAndAbidBroadcastBlocksOfA) {
  std::mt19937 random(3);
  for (const Level& level : levels()) {
    for (const Instruction& in : all_instructions()) {
      if (in.kind != MatrixKind::kMfma || in.blocks == 1 || in.d == "f64") continue;
      const crest_sim::MatrixOp* op = find(in, level);
      for (int cbsz = 1; 1 << cbsz <= in.blocks; ++cbsz) {
        for (int abid = 0; abid < 1 << cbsz; ++abid) {
          Case test(in, random, -2, 2);
          Operands o = test.place();
          o.instruction.cbsz = uint8_t(cbsz);
          o.instruction.abid = uint8_t(abid);
          const auto product = [&](int block, int i, int j) {
            const int source = (block >> cbsz << cbsz) + abid;
            int sum = test.at_c(block, i, j);
            for (int k = 0; k < in.k; ++k) sum += test.at_a(source, i, k) * test.at_b(block, k, j);
            return sum;
          };
          const std::string what = label(in, level) + " cbsz " + std::to_string(cbsz) + " abid " + std::to_string(abid);
          check(test, o, op->fast, what, product);
          check(test, o, op->strict, what, product);
        }
      }
    }
  }
}

TEST(MatrixModifiers, BlgpMovesLanesOfB) {
  std::mt19937 random(4);
  const auto source_lane = [](int pattern, int lane) {
    switch (pattern) {
      case 1:
        return lane & 31;  // lanes 0-31 also for 32-63
      case 2:
        return 32 | (lane & 31);  // lanes 32-63 also for 0-31
      case 3:
        return (lane + 16) & 63;  // rotated down by 16
      default:
        return (pattern - 4) * 16 + (lane & 15);
    }
  };
  for (const Level& level : levels()) {
    for (const char* name : {"v_mfma_f32_32x32x1_2b_f32", "v_mfma_f32_16x16x4_f32", "v_mfma_f32_16x16x4_4b_bf16",
                             "v_mfma_f32_4x4x4_16b_f16", "v_mfma_i32_4x4x4_16b_i8"}) {
      const Instruction in = parse(name, crest_sim::Arch::kGfx942, 64);
      const crest_sim::MatrixOp* op = find(in, level);
      for (int pattern = 1; pattern < 8; ++pattern) {
        Case test(in, random, -2, 2);
        Operands plain = test.place(), moved = plain;
        for (int reg = 0; reg < 4; ++reg) {
          for (int lane = 0; lane < 64; ++lane)
            plain.b[size_t(reg * 64 + lane)] = moved.b[size_t(reg * 64 + source_lane(pattern, lane))];
        }
        moved.instruction.blgp = uint8_t(pattern);
        for (const auto fn : {op->fast, op->strict}) {
          plain.run(in, fn);
          moved.run(in, fn);
          EXPECT_EQ(plain.d, moved.d) << label(in, level) << " blgp " << pattern;
        }
      }
    }
  }
}

TEST(MatrixModifiers, BlgpNegatesFp64Operands) {
  std::mt19937 random(5);
  for (const Level& level : levels()) {
    for (const char* name : {"v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64"}) {
      const Instruction in = parse(name, crest_sim::Arch::kGfx942, 64);
      for (int negate = 0; negate < 8; ++negate) {
        Case test(in, random, -2, 2);
        Operands o = test.place();
        o.instruction.blgp = uint8_t(negate);
        const int product_sign = (negate & 1 ? -1 : 1) * (negate & 2 ? -1 : 1), c_sign = negate & 4 ? -1 : 1;
        check(test, o, find(in, level)->fast, label(in, level), [&](int block, int i, int j) {
          const int c = test.at_c(block, i, j);
          return c_sign * c + product_sign * (test.expected(block, i, j) - c);
        });
      }
    }
  }
}

TEST(MatrixModifiers, SparseIndexSetsAreChosenByAbid) {
  std::mt19937 random(6);
  for (const Level& level : levels()) {
    for (const char* name : {"v_smfmac_f32_16x16x32_f16", "v_smfmac_f32_32x32x16_bf16", "v_smfmac_i32_16x16x64_i8"}) {
      const Instruction in = parse(name, crest_sim::Arch::kGfx942, 64);
      const int bits = in.per_lane();
      for (int abid = 0; abid < 32 / bits; ++abid) {
        Case test(in, random, -2, 2);
        Operands o = test.place();
        const uint32_t used = (1u << bits) - 1;
        for (auto& word : o.index) word = ((word & used) << abid * bits) | (0x5a5a5a5au & ~(used << abid * bits));
        o.instruction.abid = uint8_t(abid);
        const auto product = [&](int block, int i, int j) { return test.expected(block, i, j); };
        check(test, o, find(in, level)->fast, label(in, level), product);
        check(test, o, find(in, level)->strict, label(in, level), product);
      }
    }
  }
}

TEST(MatrixModifiers, ScalesApplyPerBlockOf32AndOpSelChoosesTheByte) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> exponent(-3, 3), byte(0, 3);
  for (const Level& level : levels()) {
    for (const Instruction& in : all_instructions()) {
      if (in.kind != MatrixKind::kScaled) continue;
      Case test(in, random, -2, 2);
      Operands o = test.place();
      const int byte_a = byte(random), byte_b = byte(random);
      std::vector<int> scale_a(64), scale_b(64);  // [block of k][row or column], as lanes hold them
      for (int lane = 0; lane < 64; ++lane) {
        scale_a[size_t(lane)] = exponent(random);
        scale_b[size_t(lane)] = exponent(random);
        o.scale_a[size_t(lane)] = (0x01020304u & ~(255u << byte_a * 8)) | uint32_t(127 + scale_a[size_t(lane)])
                                                                              << byte_a * 8;
        o.scale_b[size_t(lane)] = (0x05060708u & ~(255u << byte_b * 8)) | uint32_t(127 + scale_b[size_t(lane)])
                                                                              << byte_b * 8;
      }
      const auto mods = [](int b) { return uint8_t((b & 1 ? kHigh : 0) | (b & 2 ? kHighHi : 0)); };
      o.instruction.src[3].mods = mods(byte_a);
      o.instruction.src[4].mods = mods(byte_b);
      const auto product = [&](int block, int i, int j) {
        double sum = test.at_c(block, i, j);
        for (int k = 0; k < in.k; ++k) {
          const int e = scale_a[size_t(k / 32 * in.m + i)] + scale_b[size_t(k / 32 * in.m + j)];
          sum += std::ldexp(test.at_a(0, i, k) * test.at_b(0, k, j), e);
        }
        return sum;
      };
      check(test, o, find(in, level)->fast, label(in, level) + " fast", product);
      check(test, o, find(in, level)->strict, label(in, level) + " strict", product);
    }
  }
}

TEST(MatrixModifiers, WmmaSigns) {
  std::mt19937 random(8);
  for (const Level& level : levels()) {
    for (const int lanes : {32, 64}) {
      for (const char* name : {"v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_bf16"}) {
        const Instruction in = parse(name, crest_sim::Arch::kGfx1100, lanes);
        for (int bits = 0; bits < 64; ++bits) {
          Case test(in, random, -2, 2);
          Operands o = test.place();
          for (int s = 0; s < 3; ++s) {
            o.instruction.src[s].mods = uint8_t((bits >> s & 1 ? kNeg : 0) | (bits >> (3 + s) & 1 ? kNegHi : 0));
          }
          const auto flip = [&](int operand, int k) { return bits >> (k % 2 ? 3 + operand : operand) & 1 ? -1 : 1; };
          check(test, o, find(in, level)->fast, label(in, level) + " signs " + std::to_string(bits),
                [&](int, int i, int j) {
                  int sum = test.at_c(0, i, j);
                  if (bits >> 5 & 1) sum = std::abs(sum);  // NEG_HI of C is |C|
                  if (bits >> 2 & 1) sum = -sum;
                  for (int k = 0; k < 16; ++k) sum += flip(0, k) * test.at_a(0, i, k) * flip(1, k) * test.at_b(0, k, j);
                  return sum;
                });
        }
      }
    }
  }
}

TEST(MatrixModifiers, WmmaIntegersSignednessAndClamp) {
  std::mt19937 random(9);
  for (const Level& level : levels()) {
    for (const int lanes : {32, 64}) {
      for (const char* name : {"v_wmma_i32_16x16x16_iu8", "v_wmma_i32_16x16x16_iu4"}) {
        const Instruction in = parse(name, crest_sim::Arch::kGfx1151, lanes);
        const int width = in.a_bits();
        for (int mode = 0; mode < 8; ++mode) {
          Operands o(in);
          std::uniform_int_distribution<int> code(0, (1 << width) - 1);
          std::uniform_int_distribution<int64_t> any(INT32_MIN, INT32_MAX), edge(0, 2);
          int a[16][16], b[16][16];
          int64_t c[16][16];
          const auto value = [&](int raw, bool is_signed) {
            return is_signed && raw >> (width - 1) ? raw - (1 << width) : raw;
          };
          for (int i = 0; i < 16; ++i) {
            for (int k = 0; k < 16; ++k) {
              const int raw_a = code(random), raw_b = code(random);
              a[i][k] = value(raw_a, mode & 1);
              b[k][i] = value(raw_b, mode & 2);
              o.set_a(in, 0, i, k, uint64_t(raw_a));
              o.set_b(in, 0, k, i, uint64_t(raw_b));
              const int64_t kind = edge(random);
              c[i][k] = kind == 0 ? any(random) : kind == 1 ? INT32_MAX - 100 : INT32_MIN + 100;
              o.set_c(in, 0, i, k, uint32_t(c[i][k]));
            }
          }
          o.instruction.src[0].mods = mode & 1 ? kNeg : 0;
          o.instruction.src[1].mods = mode & 2 ? kNeg : 0;
          o.instruction.clamp = mode & 4;
          o.run(in, find(in, level)->fast);
          for (int i = 0; i < 16; ++i) {
            for (int j = 0; j < 16; ++j) {
              int64_t sum = c[i][j];
              for (int k = 0; k < 16; ++k) sum += a[i][k] * b[k][j];
              if (mode & 4) sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
              ASSERT_EQ(o.get_d(in, 0, i, j), uint32_t(sum)) << label(in, level) << " mode " << mode;
            }
          }
        }
      }
    }
  }
}

TEST(MatrixModifiers, WmmaOpSelChoosesTheHalfOfCAndD) {
  std::mt19937 random(10);
  for (const Level& level : levels()) {
    for (const int lanes : {32, 64}) {
      for (const char* name : {"v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"}) {
        const Instruction in = parse(name, crest_sim::Arch::kGfx1100, lanes);
        Case test(in, random, 0, 1);
        Operands o = test.place();
        for (auto& word : o.c) word <<= 16;  // C in the upper halves, rubbish below
        for (auto& word : o.c) word |= 0x7bff;
        o.instruction.src[2].mods = kHigh;
        o.run(in, find(in, level)->strict);
        for (int i = 0; i < 16; ++i) {
          for (int j = 0; j < 16; ++j) {
            const uint32_t word = o.get_d(in, 0, i, j);
            ASSERT_EQ(word & 0xffff, 0xbeefu) << label(in, level);
            ASSERT_EQ(decode(format_of(in.d, false), word >> 16).value(), test.expected(0, i, j)) << label(in, level);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace crest_sim_test
