#include "ops/gemm/panel.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/cpu_features.h"
#include "ops/cases/weights.h"
#include "ops/support.h"

namespace crest::ops::testing {
namespace {

using tensor::DType;

std::vector<DType> panel_types() {
  std::vector<DType> types;
  for (const DType dtype : weight_types()) {
    if (panel::find_format(dtype) != nullptr) types.push_back(dtype);
  }
  return types;
}

Weight random_plain_weight(DType dtype, int64_t rows, int64_t cols, int64_t experts, CaseRandom& random) {
  Weight w = random_weight(dtype, dtype == DType::kParoW4 ? (rows + 7) / 8 * 8 : rows, cols, experts, 1.0f, random);
  w.rotation = nullptr;
  return w;
}

class Panels : public ::testing::TestWithParam<DType> {};

TEST_P(Panels, RowsAreTheSameBitForBit) {
  const DType dtype = GetParam();
  CaseRandom random(static_cast<uint64_t>(dtype) + 1);
  core::ThreadPool pool(2);
  const int64_t block = panel::find_format(dtype)->chunk_cols;
  for (const auto& [rows, multiple] : {std::pair<int64_t, int64_t>{1, 1}, {16, 2}, {17, 3}, {65, 1}}) {
    const int64_t cols = block == 1 ? 37 * multiple : block * multiple;
    const Weight w = random_plain_weight(dtype, rows, cols, 3, random);
    const auto packed = panel::pack(w, pool);
    ASSERT_TRUE(packed.ok());
    std::vector<float> expected(static_cast<size_t>(cols)), actual(expected);
    for (int64_t e = 0; e < 3; ++e) {
      for (int64_t r = 0; r < w.rows; ++r) {
        dequantize_weight_row(w, e, r, expected.data());
        dequantize_weight_row(*packed, e, r, actual.data());
        ASSERT_EQ(std::memcmp(expected.data(), actual.data(), expected.size() * 4), 0)
            << "expert " << e << " row " << r;
      }
    }
    EXPECT_LE(static_cast<double>(packed->expert_bytes),
              1.04 * static_cast<double>(w.row_bytes * ((w.rows + 15) / 16 * 16)));
  }
}

/// Values that a kernel multiplies: the activations as they come out of the quantiser.
std::vector<float> seen_by_kernel(const std::vector<float>& x, int64_t tokens, int64_t cols, ActivationFormat format,
                                  Context& context) {
  if (format == ActivationFormat::kF32) return x;
  const Activations plain{ActivationFormat::kF32, tokens, cols, reinterpret_cast<const std::byte*>(x.data()), 4 * cols};
  Workspace::Scope scope(context.workspace);
  const auto q = quantize_activations(plain, context).value();
  std::vector<float> values;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t c = 0; c < cols; ++c) {
      const QuantTile& tile = *q.tile(t, c / 256);
      values.push_back(static_cast<float>(tile.quants[c % 256]) * tile.scales[c % 256 / 32]);
    }
  }
  return values;
}

std::vector<KernelInfo> kernels_of(DType dtype) {
  std::string suffix(tensor::name(dtype));
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::vector<KernelInfo> list;
  for (const auto& kernel : linear_operator().kernels()) {
    if (kernel.available && kernel.name != "reference" && kernel.name == kernel.arch + "_" + suffix)
      list.push_back(kernel);
  }
  return list;
}

void expect_products(const Weight& w, const Weight& packed, const std::string& kernel, int64_t tokens,
                     CaseRandom& random) {
  TestContext test(3);
  test.overrides.force("linear", {kernel});
  const auto x = random_normal(random, tokens * w.cols);
  const auto bias = random_normal(random, w.rows);
  const bool plain = w.dtype == DType::kF32 || w.dtype == DType::kF16 || w.dtype == DType::kBF16;
  const auto seen =
      seen_by_kernel(x, tokens, w.cols, plain ? ActivationFormat::kF32 : ActivationFormat::kQ8, test.context);
  Guarded<float> out(tokens * w.rows);
  EXPECT_OK(linear({.x = x.data(), .tokens = tokens, .in_features = w.cols},
                   {.weight = &packed, .out = out.data(), .bias = bias.data()}, test.context));
  ASSERT_TRUE(out.intact());
  ASSERT_EQ(test.log.entries().begin()->first.kernel, kernel);
  std::vector<float> row(static_cast<size_t>(w.cols));
  for (int64_t r = 0; r < w.rows; ++r) {
    dequantize_weight_row(w, 0, r, row.data());
    float largest = 0;
    for (const float v : row) largest = std::max(largest, std::fabs(v));
    for (int64_t t = 0; t < tokens; ++t) {
      double sum = 0, magnitude = 0;
      for (int64_t c = 0; c < w.cols; ++c) {
        const double v = seen[static_cast<size_t>(t * w.cols + c)];
        sum += v * row[static_cast<size_t>(c)];
        // Quants are unsigned: what is summed is as large as the offset that is taken off again.
        magnitude += std::fabs(v) * (plain ? std::fabs(row[static_cast<size_t>(c)]) : 2 * largest);
      }
      const double rounding =
          0x1p-24 * (8 + (plain ? std::sqrt(static_cast<double>(w.cols)) : static_cast<double>(w.cols) / 16));
      ASSERT_NEAR(out[t * w.rows + r], sum + bias[static_cast<size_t>(r)], rounding * (magnitude + 1))
          << kernel << " token " << t << " of " << tokens << " row " << r << " of " << w.rows << " x " << w.cols;
    }
  }
}

TEST_P(Panels, EveryKernelMultipliesWhatTheQuantiserMade) {
  const DType dtype = GetParam();
  const auto kernels = kernels_of(dtype);
  if (kernels.empty()) GTEST_SKIP() << "this processor has no kernel for " << tensor::name(dtype);
  core::ThreadPool pool(2);
  const int64_t block = panel::find_format(dtype)->chunk_cols;
  for (const auto& kernel : kernels) {
    CaseRandom random(static_cast<uint64_t>(dtype) + 100);
    for (const auto& [tokens, rows, multiple] :
         {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1}, {2, 63, 2}, {7, 64, 3}, {40, 65, 1}, {131, 33, 2}}) {
      const int64_t cols = block == 1 ? 67 * multiple : block == 32 ? 32 * (4 * multiple + 3) : block * multiple;
      const Weight w = random_plain_weight(dtype, rows, cols, 1, random);
      const auto packed = panel::pack(w, pool);
      ASSERT_TRUE(packed.ok());
      expect_products(w, *packed, kernel.name, tokens, random);
    }
  }
}

// Batching must not change an answer: a token alone, among others and on any number of threads gives the same bits.
TEST_P(Panels, BitsDoNotDependOnBatchOrThreads) {
  const DType dtype = GetParam();
  CaseRandom random(static_cast<uint64_t>(dtype) + 200);
  core::ThreadPool pool(2);
  constexpr int64_t kTokens = 19, kRows = 75, kCols = 256;
  const Weight w = random_plain_weight(dtype, kRows, kCols, 1, random);
  const Weight packed = panel::pack(w, pool).value();
  const auto x = random_normal(random, kTokens * kCols);
  for (const auto& kernel : kernels_of(dtype)) {
    std::vector<float> whole;
    for (const int threads : {1, 2, 7}) {
      TestContext test(threads);
      test.overrides.force("linear", {kernel.name});
      std::vector<float> out(static_cast<size_t>(kTokens * w.rows));
      EXPECT_OK(linear({.x = x.data(), .tokens = kTokens, .in_features = kCols}, {.weight = &packed, .out = out.data()},
                       test.context));
      if (whole.empty()) whole = out;
      EXPECT_EQ(std::memcmp(whole.data(), out.data(), out.size() * 4), 0);
    }
    TestContext test(2);
    test.overrides.force("linear", {kernel.name});
    for (int64_t begin = 0, count = 1; begin < kTokens;
         begin += count, count = std::min<int64_t>(count + 1, kTokens - begin)) {
      std::vector<float> out(static_cast<size_t>(count * w.rows));
      EXPECT_OK(linear({.x = x.data() + begin * kCols, .tokens = count, .in_features = kCols},
                       {.weight = &packed, .out = out.data()}, test.context));
      EXPECT_EQ(std::memcmp(whole.data() + begin * w.rows, out.data(), out.size() * 4), 0)
          << kernel.name << " tokens from " << begin;
      if (begin + count >= kTokens) break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Panels, ::testing::ValuesIn(panel_types()),
                         [](const auto& info) { return std::string(tensor::name(info.param)); });

TEST(QuantizeActivations, KernelsAgreeAndRoundToNearest) {
  CaseRandom random(5);
  constexpr int64_t kTokens = 9, kCols = 352;
  auto x = random_normal(random, kTokens * kCols);
  std::fill_n(x.begin(), 32, 0.0f);
  std::fill_n(x.begin() + 32, 32, 1e-39f);
  x[100] = 1e30f;
  const Activations plain{ActivationFormat::kF32, kTokens, kCols, reinterpret_cast<const std::byte*>(x.data()),
                          4 * kCols};
  std::vector<float> first;
  for (const auto& kernel : quantize_activations_operator().kernels()) {
    if (!kernel.available) continue;
    TestContext test(2);
    test.overrides.force("quantize_activations", {kernel.name});
    const auto q = quantize_activations(plain, test.context).value();
    std::vector<float> values;
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t c = 0; c < kCols; ++c) {
        const QuantTile& tile = *q.tile(t, c / 256);
        const int64_t at = c % 256;
        const float scale = tile.scales[at / 32], value = x[static_cast<size_t>(t * kCols + c)];
        ASSERT_LE(std::fabs(static_cast<double>(tile.quants[at]) * scale - value), 0.5001 * scale + 1e-36)
            << t << " " << c;
        int32_t sums[2] = {0, 0};
        for (int64_t i = 0; i < 32; ++i) sums[i / 16] += tile.quants[at / 32 * 32 + i];
        ASSERT_EQ(tile.zeros32[at / 32], -128 * (sums[0] + sums[1]));
        ASSERT_EQ(tile.zeros16[at / 16], -128 * sums[at / 16 % 2]);
        ASSERT_EQ(tile.sums32[at / 32], static_cast<float>(sums[0] + sums[1]) * scale);
        ASSERT_EQ(tile.sums16[at / 16], static_cast<float>(sums[at / 16 % 2]) * scale);
        values.insert(values.end(), {static_cast<float>(tile.quants[at]), scale});
      }
    }
    if (first.empty()) first = values;
    EXPECT_EQ(first, values) << kernel.name;
  }
}

TEST(QuantizeActivations, NotFiniteValuesReachTheResult) {
  TestContext test(1);
  std::vector<float> x(64, 1.0f);
  x[40] = std::numeric_limits<float>::infinity();
  const Activations plain{ActivationFormat::kF32, 1, 64, reinterpret_cast<const std::byte*>(x.data()), 256};
  const auto q = quantize_activations(plain, test.context).value();
  EXPECT_FALSE(std::isnan(q.tile(0, 0)->scales[0]));
  EXPECT_TRUE(std::isnan(q.tile(0, 0)->scales[1]));
  EXPECT_TRUE(std::isnan(q.tile(0, 0)->sums32[1]));
}

}  // namespace
}  // namespace crest::ops::testing
