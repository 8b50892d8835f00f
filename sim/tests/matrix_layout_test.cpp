// Register layouts of every matrix instruction: small integers are placed by the published index formulas, and the
// result must be the integer matrix product, exactly.
#include "integer_case.h"

namespace crest_sim_test {
namespace {

TEST(MatrixLayout, ThisMachineRunsABuild) { ASSERT_FALSE(levels().empty()); }

TEST(MatrixLayout, EveryInstructionIsKnownAndPlacesItsOperandsByTheFormulas) {
  std::mt19937 random(1);
  for (const Level& level : levels()) {
    for (const Instruction& in : all_instructions()) {
      const crest_sim::MatrixOp* op = find(in, level);
      ASSERT_NE(op, nullptr) << label(in, level);
      ASSERT_EQ(int(op->d_dwords), in.d_values() * (in.d == "f64" ? 2 : 1)) << label(in, level);
      // The dot products of RDNA3 are one unit off when signs differ; positive numbers are exact.
      const bool positive = in.kind == MatrixKind::kWmma && !in.integer();
      const bool narrow = in.d == "f16" || in.d == "bf16";
      for (int repeat = 0; repeat < 4; ++repeat) {
        Case test(in, random, positive ? 0 : -2, narrow ? 1 : 2);
        Operands o = test.place();
        const auto product = [&](int block, int i, int j) { return test.expected(block, i, j); };
        check(test, o, op->fast, label(in, level) + " fast", product);
        Operands again = test.place();
        check(test, again, op->strict, label(in, level) + " strict", product);
      }
    }
  }
}

TEST(MatrixLayout, UnknownNamesAndForeignMachinesAreNotFound) {
  const Level level = levels().front();
  using crest_sim::Arch;
  EXPECT_EQ(level.find("v_mfma_f32_16x16x16_f17", target_info(Arch::kGfx942), 64), nullptr);
  EXPECT_EQ(level.find("v_mfma_f32_16x16x32_f16", target_info(Arch::kGfx942), 64), nullptr);
  EXPECT_EQ(level.find("v_mfma_f32_16x16x8_xf32", target_info(Arch::kGfx950), 64), nullptr);
  EXPECT_EQ(level.find("v_mfma_f32_16x16x16_f16", target_info(Arch::kGfx1100), 32), nullptr);
  EXPECT_EQ(level.find("v_wmma_f32_16x16x16_f16", target_info(Arch::kGfx942), 64), nullptr);
}

TEST(MatrixLayout, AccumulatorMayOverlapTheResultAnyWay) {
  std::mt19937 random(2);
  for (const Level& level : levels()) {
    for (const char* name : {"v_mfma_f32_32x32x8_bf16", "v_mfma_f32_16x16x4_4b_f16", "v_mfma_i32_4x4x4_16b_i8"}) {
      const Instruction in = parse(name, crest_sim::Arch::kGfx942, 64);
      const crest_sim::MatrixOp* op = find(in, level);
      for (const int shift : {-4, -1, 0, 1, 4}) {  // registers
        for (const auto fn : {op->fast, op->strict}) {
          Case test(in, random, -2, 2);
          Operands o = test.place();
          std::vector<uint32_t> file(size_t(64 * 64));
          uint32_t* c = file.data() + 16 * 64;
          std::copy(o.c.begin(), o.c.begin() + in.d_values() * 64, c);
          crest_sim::MatrixCall call{};
          call.d = c + shift * 64;
          call.a = o.a.data();
          call.b = o.b.data();
          call.c = c;
          call.lanes = 64;
          call.instruction = &o.instruction;
          fn(call);
          std::copy(call.d, call.d + in.d_values() * 64, o.d.begin());
          int wrong = 0;
          for (int block = 0; block < in.blocks; ++block) {
            for (int i = 0; i < in.m; ++i) {
              for (int j = 0; j < in.m; ++j) wrong += test.result(o, block, i, j) != test.expected(block, i, j);
            }
          }
          EXPECT_EQ(wrong, 0) << label(in, level) << " D " << shift << " registers behind C";
        }
      }
    }
  }
}

}  // namespace
}  // namespace crest_sim_test
