#include "ops/gemm/linear.h"

#include "ops/cases/weights.h"
#include "ops/support.h"

namespace crest::ops::testing {
namespace {

using tensor::DType;

struct Shape {
  int64_t tokens, rows, cols;
};

/// w.x in double over the dequantised row, and the sum of magnitudes that bounds the rounding error.
struct Exact {
  double value = 0;
  double magnitude = 0;
};
Exact exact_dot(const Weight& weight, int64_t expert, int64_t row, const float* x) {
  std::vector<float> values(static_cast<size_t>(weight.cols));
  dequantize_weight_row(weight, expert, row, values.data());
  Exact result;
  for (size_t i = 0; i < values.size(); ++i) {
    result.value += double{values[i]} * double{x[i]};
    result.magnitude += std::fabs(double{values[i]} * double{x[i]});
  }
  return result;
}

class LinearOfType : public ::testing::TestWithParam<DType> {};

TEST_P(LinearOfType, IsTheDotProductOfTheDequantisedRow) {
  const DType dtype = GetParam();
  const int64_t block = tensor::info(dtype).block_size;
  for (const auto& [tokens, wanted_rows, multiple] :
       {Shape{1, 1, 1}, Shape{7, 65, 1}, Shape{64, 7, 2}, Shape{65, 8, 3}, Shape{3, 131, 5}}) {
    const int64_t cols = block == 1 ? 31 * multiple : block * multiple;
    const int64_t rows = dtype == DType::kParoW4 ? (wanted_rows + 7) / 8 * 8 : wanted_rows;
    CaseRandom random(static_cast<uint64_t>(rows * 1000 + cols));
    Weight w = random_weight(dtype, rows, cols, 1, 1.0f, random);
    w.rotation = nullptr;  // Rotation.LinearOfRotatedInputEqualsTheDenseProduct
    const auto x = random_normal(random, tokens * cols);
    const auto bias = random_normal(random, rows);
    Guarded<float> out(tokens * rows);
    TestContext test;
    EXPECT_OK(linear({.x = x.data(), .tokens = tokens, .in_features = cols},
                     {.weight = &w, .out = out.data(), .bias = bias.data()}, test.context));
    EXPECT_TRUE(out.intact());
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t r = 0; r < rows; ++r) {
        const Exact e = exact_dot(w, 0, r, x.data() + t * cols);
        ASSERT_NEAR(out[t * rows + r], e.value + bias[static_cast<size_t>(r)], 1e-6 * e.magnitude + 1e-6)
            << tensor::name(dtype) << " token " << t << " row " << r << " of " << rows << " x " << cols;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LinearOfType, ::testing::ValuesIn(weight_types()),
                         [](const auto& info) { return std::string(tensor::name(info.param)); });

TEST(Linear, GivesTheSameBitsForAnyNumberOfThreadsAndTokens) {
  CaseRandom random(5);
  const Weight a = random_weight(DType::kQ8_0, 65, 96, 1, 1.0f, random);
  const Weight b = random_weight(DType::kF32, 7, 96, 1, 1.0f, random);
  const auto x = random_normal(random, 65 * 96);
  const auto run = [&](Context& context) {
    std::vector<float> out(65 * 72);
    const LinearTarget targets[] = {{.weight = &a, .out = out.data(), .out_stride = 72},
                                    {.weight = &b, .out = out.data() + 65, .out_stride = 72}};
    EXPECT_OK(linear({.x = x.data(), .tokens = 65, .in_features = 96}, targets, context));
    return out;
  };
  expect_same_for_any_threads(run, "linear");

  TestContext test;
  const auto together = run(test.context);
  for (const int64_t t : {0, 1, 33, 64}) {
    Guarded<float> alone(65);
    EXPECT_OK(linear({.x = x.data() + t * 96, .tokens = 1, .in_features = 96}, {.weight = &a, .out = alone.data()},
                     test.context));
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + t * 72, 65 * sizeof(float)), 0) << t;
  }
}

TEST(Linear, ReadsPickedRowsAndStridesAndAccumulates) {
  CaseRandom random(6);
  const Weight w = random_weight(DType::kF16, 9, 33, 1, 1.0f, random);
  const auto x = random_normal(random, 5 * 40);
  for (const std::vector<int32_t>& rows : {std::vector<int32_t>{4, 1}, std::vector<int32_t>{0, 0, 3, 4, 4, 2, 1}}) {
    const auto tokens = static_cast<int64_t>(rows.size());
    Guarded<float> out(tokens * 12);
    for (int64_t i = 0; i < out.size(); ++i) out[i] = 100;
    TestContext test;
    EXPECT_OK(
        linear({.x = x.data(), .tokens = tokens, .in_features = 33, .stride = 40, .x_rows = 5, .rows = rows.data()},
               {.weight = &w, .out = out.data(), .out_stride = 12, .accumulate = true}, test.context));
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t r = 0; r < 9; ++r) {
        const Exact e = exact_dot(w, 0, r, x.data() + rows[static_cast<size_t>(t)] * 40);
        EXPECT_NEAR(out[t * 12 + r], e.value + 100, 1e-5);
      }
      for (int64_t r = 9; r < 12; ++r) EXPECT_EQ(out[t * 12 + r], 100);
    }
    EXPECT_TRUE(out.intact());
  }
}

// Group sizes that no block divides, empty groups, no token at all.
TEST(GroupedLinear, MeetsEachExpertsMatrix) {
  CaseRandom random(7);
  const Weight w = random_weight(DType::kQ4_0, 13, 64, 5, 1.0f, random);
  for (const std::vector<int32_t>& offsets :
       {std::vector<int32_t>{0, 0, 3, 3, 10, 11}, std::vector<int32_t>{0, 0, 0, 0, 0, 0},
        std::vector<int32_t>{0, 33, 33, 33, 33, 33}}) {
    const int64_t tokens = offsets.back();
    const auto x = random_normal(random, 4 * 64);
    std::vector<int32_t> rows(static_cast<size_t>(tokens));
    for (auto& row : rows) row = static_cast<int32_t>(random.below(4));
    const auto run = [&](Context& context) {
      Guarded<float> out(tokens * 13);
      const LinearTarget target{.weight = &w, .out = out.data()};
      EXPECT_OK(grouped_linear({.x = x.data(), .tokens = tokens, .in_features = 64, .x_rows = 4, .rows = rows.data()},
                               {5, offsets.data()}, {&target, 1}, context));
      EXPECT_TRUE(out.intact());
      return out.values();
    };
    TestContext test;
    const auto out = run(test.context);
    for (int64_t e = 0; e < 5; ++e) {
      for (int64_t t = offsets[static_cast<size_t>(e)]; t < offsets[static_cast<size_t>(e) + 1]; ++t) {
        for (int64_t r = 0; r < 13; ++r) {
          const Exact exact = exact_dot(w, e, r, x.data() + rows[static_cast<size_t>(t)] * 64);
          ASSERT_NEAR(out[static_cast<size_t>(t * 13 + r)], exact.value, 1e-6 * exact.magnitude);
        }
      }
    }
    if (tokens > 0) expect_same_for_any_threads(run, "grouped_linear");
  }
}

TEST(GroupedLinear, KeepsPositionsWithoutAnIndex) {
  CaseRandom random(8);
  const Weight w = random_weight(DType::kF32, 3, 16, 2, 1.0f, random);
  const auto x = random_normal(random, 5 * 16);
  const int32_t offsets[] = {0, 2, 5};
  Guarded<float> out(5 * 3);
  const LinearTarget target{.weight = &w, .out = out.data()};
  TestContext test;
  EXPECT_OK(grouped_linear({.x = x.data(), .tokens = 5, .in_features = 16}, {2, offsets}, {&target, 1}, test.context));
  for (int64_t t = 0; t < 5; ++t) {
    for (int64_t r = 0; r < 3; ++r) {
      EXPECT_NEAR(out[t * 3 + r], exact_dot(w, t < 2 ? 0 : 1, r, x.data() + t * 16).value, 1e-5);
    }
  }
}

TEST(Linear, NamesWhatDoesNotFit) {
  CaseRandom random(9);
  const Weight w = random_weight(DType::kF32, 3, 16, 1, 1.0f, random);
  const Weight integers = random_weight(DType::kI32, 3, 16, 1, 1.0f, random);
  const auto x = random_normal(random, 64);
  Guarded<float> out(12);
  TestContext test;
  const LinearTarget target{.weight = &w, .out = out.data()};
  expect_error(linear({.x = x.data(), .tokens = 4, .in_features = 15}, target, test.context),
               "columns of the weight is 16");
  expect_error(linear({.x = nullptr, .tokens = 4, .in_features = 16}, target, test.context), "x is missing");
  expect_error(linear({.x = x.data(), .tokens = 4, .in_features = 16}, {.weight = &w}, test.context), "out is missing");
  expect_error(
      linear({.x = x.data(), .tokens = 4, .in_features = 16}, {.weight = &integers, .out = out.data()}, test.context),
      "no kernel supports");
  const int32_t rows[] = {0, 4};
  expect_error(linear({.x = x.data(), .tokens = 2, .in_features = 16, .x_rows = 4, .rows = rows}, target, test.context),
               "row index is 4, allowed: 0 to 3");
  const int32_t offsets[] = {0, 3, 2};
  expect_error(
      grouped_linear({.x = x.data(), .tokens = 2, .in_features = 16}, {2, offsets}, {&target, 1}, test.context),
      "offsets");
  test.overrides.force("linear", {"no-such-kernel"});
  expect_error(linear({.x = x.data(), .tokens = 4, .in_features = 16}, target, test.context), "its kernels are:");
}

}  // namespace
}  // namespace crest::ops::testing
