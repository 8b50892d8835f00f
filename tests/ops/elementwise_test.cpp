// RMSNorm, gated activations, output gate, addition and embedding against their definitions in double.
#include "ops/cases/weights.h"
#include "ops/support.h"

namespace crest::ops::testing {
namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

struct NormShape {
  int64_t tokens, heads, dim;
};
constexpr NormShape kNormShapes[] = {{1, 1, 1}, {7, 1, 63}, {3, 5, 64}, {2, 7, 65}, {64, 2, 128}, {5, 1, 1021}};

TEST(RmsNorm, FollowsTheDefinition) {
  CaseRandom random(1);
  for (const auto& [tokens, heads, dim] : kNormShapes) {
    for (const NormWeight form : {NormWeight::kPlain, NormWeight::kZeroCentred}) {
      for (const bool gated : {false, true}) {
        for (const bool weighted : {false, true}) {
          const int64_t rows = tokens * heads;
          auto x = random_normal(random, rows * dim, 3.0f);
          std::fill(x.begin(), x.begin() + dim, 0.0f);  // a zero vector: eps alone
          const auto weight = random_normal(random, dim);
          const auto gate = random_normal(random, rows * dim, 4.0f);
          const RmsNormProblem problem{
              .tokens = tokens, .heads = heads, .dim = dim, .eps = 1e-5f, .weight = form, .gated = gated};
          const auto run = [&](Context& context) {
            Guarded<float> out(rows * dim);
            EXPECT_OK(rms_norm(problem,
                               {.x = {x.data()},
                                .weight = weighted ? weight.data() : nullptr,
                                .gate = {gate.data()},
                                .out = {out.data()}},
                               context));
            EXPECT_TRUE(out.intact());
            return out.values();
          };
          TestContext test;
          const auto out = run(test.context);
          for (int64_t row = 0; row < rows; ++row) {
            double squares = 0;
            for (int64_t i = 0; i < dim; ++i) squares += std::pow(double{x[static_cast<size_t>(row * dim + i)]}, 2);
            const double inverse = 1 / std::sqrt(squares / static_cast<double>(dim) + double{1e-5f});
            std::vector<double> expected;
            for (int64_t i = 0; i < dim; ++i) {
              const auto index = static_cast<size_t>(row * dim + i);
              double y = x[index] * inverse;
              if (weighted)
                y *= form == NormWeight::kPlain ? weight[static_cast<size_t>(i)] : 1.0 + weight[static_cast<size_t>(i)];
              if (gated) y *= gate[index] * sigmoid_of(gate[index]);
              expected.push_back(y);
            }
            // 1 + w may cancel: its rounding is relative to 1.
            expect_close(out.data() + row * dim, expected, 1e-6, 3e-7 * (gated ? 15 : 1), "rms_norm");
          }
          if (tokens == 64) expect_same_for_any_threads(run, "rms_norm");
        }
      }
    }
  }
}

// Per-head norm of the queries inside Qwen 3.5's interleaved [query, gate] projection, in place.
TEST(RmsNorm, ReadsStridedHeadsAndWritesInPlace) {
  constexpr int64_t kTokens = 3, kHeads = 2, kDim = 8;
  CaseRandom random(2);
  const auto original = random_normal(random, kTokens * kHeads * 2 * kDim);
  const std::vector<float> weight(kDim, 0.5f);
  Guarded<float> x(kTokens * kHeads * 2 * kDim);
  x.fill(original);
  TestContext test;
  const int64_t token = kHeads * 2 * kDim;
  EXPECT_OK(rms_norm({.tokens = kTokens, .heads = kHeads, .dim = kDim},
                     {.x = {x.data(), token, 2 * kDim}, .weight = weight.data(), .out = {x.data(), token, 2 * kDim}},
                     test.context));
  for (int64_t row = 0; row < kTokens * kHeads; ++row) {
    const float* source = original.data() + row * 2 * kDim;
    double squares = 0;
    for (int64_t i = 0; i < kDim; ++i) squares += double{source[i]} * source[i];
    for (int64_t i = 0; i < kDim; ++i) {
      EXPECT_NEAR(x[row * 2 * kDim + i], source[i] / std::sqrt(squares / kDim + 1e-6) * 0.5, 1e-6);
      EXPECT_EQ(x[row * 2 * kDim + kDim + i], source[kDim + i]);
    }
  }
  EXPECT_TRUE(x.intact());
}

TEST(RmsNorm, NamesWhatIsWrong) {
  TestContext test;
  std::vector<float> x(16);
  const RmsNormArgs args{.x = {x.data()}, .out = {x.data()}};
  expect_error(rms_norm({.tokens = 1, .dim = 0}, args, test.context), "rms_norm: dim is 0, allowed: 1 to");
  expect_error(rms_norm({.tokens = -1, .dim = 4}, args, test.context), "tokens is -1");
  expect_error(rms_norm({.tokens = 1, .dim = 4, .eps = NAN}, args, test.context), "eps is nan");
  expect_error(rms_norm({.tokens = 1, .dim = 4}, {.x = {x.data()}}, test.context), "out is missing");
  expect_error(rms_norm({.tokens = 1, .dim = 4, .gated = true}, args, test.context), "gate is missing");
  expect_error(rms_norm({.tokens = 2, .heads = 2, .dim = 4}, {.x = {x.data()}, .out = {x.data(), 8, 3}}, test.context),
               "strides of out");
  EXPECT_OK(rms_norm({.tokens = 0, .dim = 4}, {}, test.context));
}

TEST(GatedActivation, FollowsTheDefinition) {
  CaseRandom random(3);
  for (const GatedActivation kind : {GatedActivation::kSwiGlu, GatedActivation::kGeGluTanh}) {
    for (const auto& [tokens, heads, dim] : kNormShapes) {
      auto both = random_normal(random, tokens * 2 * dim, 5.0f);
      both[0] = 200;  // saturates: exp must not overflow into NaN
      const GatedActivationProblem problem{.tokens = tokens, .dim = dim, .kind = kind};
      const auto run = [&](Context& context) {
        Guarded<float> out(tokens * dim);
        EXPECT_OK(gated_activation(problem,
                                   {.gate = both.data(),
                                    .up = both.data() + dim,
                                    .gate_stride = 2 * dim,
                                    .up_stride = 2 * dim,
                                    .out = out.data()},
                                   context));
        EXPECT_TRUE(out.intact());
        return out.values();
      };
      TestContext test;
      const auto out = run(test.context);
      std::vector<double> expected;
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t i = 0; i < dim; ++i) {
          const double g = both[static_cast<size_t>(t * 2 * dim + i)];
          const double up = both[static_cast<size_t>(t * 2 * dim + dim + i)];
          const double u = std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g);
          const double gelu = g * sigmoid_of(2 * u);  // = g/2 (1 + tanh(u))
          expected.push_back((kind == GatedActivation::kSwiGlu ? g * sigmoid_of(g) : gelu) * up);
        }
      }
      // The sigmoid of u passes an error of u on, as large as u's rounding: |u| is below 40 where the result is not
      // zero.
      expect_close(out.data(), expected, kind == GatedActivation::kSwiGlu ? 2e-6 : 1e-5, 1e-30, "gated_activation");
      if (tokens == 64) expect_same_for_any_threads(run, "gated_activation");
    }
  }
  TestContext test;
  const float extremes[] = {-200.0f, -90.0f, 0.0f, -0.0f};
  const float ones[] = {1, 1, 1, 1};
  float out[4];
  EXPECT_OK(gated_activation({.tokens = 1, .dim = 4}, {.gate = extremes, .up = ones, .out = out}, test.context));
  for (const float value : out) EXPECT_NEAR(value, 0, 1e-30);
}

TEST(OutputGate, MultipliesBySigmoidOfInterleavedGates) {
  CaseRandom random(4);
  constexpr int64_t kTokens = 5, kHeads = 3, kDim = 7;
  const auto projection = random_normal(random, kTokens * kHeads * 2 * kDim, 4.0f);
  const auto attention = random_normal(random, kTokens * kHeads * kDim);
  Guarded<float> x(kTokens * kHeads * kDim);
  x.fill(attention);
  TestContext test;
  EXPECT_OK(attention_output_gate({.tokens = kTokens, .heads = kHeads, .head_dim = kDim},
                                  {.gate = {projection.data() + kDim, kHeads * 2 * kDim, 2 * kDim}, .x = {x.data()}},
                                  test.context));
  for (int64_t row = 0; row < kTokens * kHeads; ++row) {
    for (int64_t i = 0; i < kDim; ++i) {
      const double gate = projection[static_cast<size_t>(row * 2 * kDim + kDim + i)];
      EXPECT_NEAR(x[row * kDim + i], attention[static_cast<size_t>(row * kDim + i)] * sigmoid_of(gate), 3e-7);
    }
  }
  EXPECT_TRUE(x.intact());
}

TEST(Add, IsOneRounding) {
  CaseRandom random(5);
  for (const int64_t count : {0, 1, 63, 65, 100003}) {
    const auto a = random_normal(random, count);
    const auto b = random_normal(random, count);
    Guarded<float> out(count);
    TestContext test(3);
    EXPECT_OK(add({count}, {a.data(), b.data(), out.data()}, test.context));
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(out[i], a[static_cast<size_t>(i)] + b[static_cast<size_t>(i)]);
    EXPECT_TRUE(out.intact());
  }
}

TEST(Embedding, IsTheScaledRowOfEveryType) {
  CaseRandom random(6);
  for (const tensor::DType dtype : weight_types()) {
    if (dtype == tensor::DType::kParoW4) continue;
    constexpr int64_t kVocab = 11, kDim = 256;
    const Weight table = random_weight(dtype, kVocab, kDim, 1, 1.0f, random);
    const std::vector<int32_t> ids = {10, 0, 3, 3, 7, 1, 2};
    for (const float scale : {1.0f, 16.0f, 1.7f}) {
      Guarded<float> out(static_cast<int64_t>(ids.size()) * kDim);
      TestContext test(3);
      EXPECT_OK(embedding(table, ids, scale, out.data(), test.context));
      std::vector<float> row(kDim);
      for (size_t t = 0; t < ids.size(); ++t) {
        dequantize_weight_row(table, 0, ids[t], row.data());
        for (int64_t i = 0; i < kDim; ++i) {
          ASSERT_EQ(out[static_cast<int64_t>(t) * kDim + i], row[static_cast<size_t>(i)] * scale)
              << tensor::name(dtype);
        }
      }
      EXPECT_TRUE(out.intact());
    }
  }
}

TEST(Embedding, RefusesIdsOutsideTheVocabulary) {
  CaseRandom random(7);
  const Weight table = random_weight(tensor::DType::kF32, 11, 4, 1, 1.0f, random);
  float out[8];
  TestContext test;
  const int32_t high[] = {3, 11};
  const int32_t low[] = {-1, 3};
  expect_error(embedding(table, high, 1, out, test.context), "token 1 of the batch is id 11, allowed: 0 to 10");
  expect_error(embedding(table, low, 1, out, test.context), "token 0 of the batch is id -1");
}

}  // namespace
}  // namespace crest::ops::testing
