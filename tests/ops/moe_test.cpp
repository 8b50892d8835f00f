#include "ops/moe/moe.h"

#include <algorithm>
#include <numeric>

#include "ops/cases/weights.h"
#include "ops/support.h"

namespace crest::ops::testing {
namespace {

using tensor::DType;

TEST(MoeRouter, IsSoftmaxTopKWithTheLowestIndexFirst) {
  CaseRandom random(1);
  for (const auto& [tokens, experts, top_k] :
       {std::array<int64_t, 3>{1, 1, 1}, {7, 8, 3}, {65, 64, 8}, {3, 257, 10}, {5, 4, 4}}) {
    for (const bool renormalize : {true, false}) {
      auto logits = random_normal(random, tokens * experts, 2.0f);
      for (int64_t e = 0; e < experts; ++e) logits[static_cast<size_t>(e)] = static_cast<float>(e / 2 % 3);  // ties
      const auto run = [&](Context& context) {
        Guarded<int32_t> ids(tokens * top_k);
        Guarded<float> weights(tokens * top_k);
        EXPECT_OK(moe_router(
            {.tokens = tokens, .experts = experts, .top_k = top_k, .renormalize = renormalize, .scale = 1.5f},
            {.logits = logits.data(), .expert_ids = ids.data(), .weights = weights.data()}, context));
        EXPECT_TRUE(ids.intact() && weights.intact());
        auto values = weights.values();
        for (int64_t i = 0; i < ids.size(); ++i) values.push_back(static_cast<float>(ids[i]));
        return values;
      };
      TestContext test;
      const auto values = run(test.context);
      for (int64_t t = 0; t < tokens; ++t) {
        const float* row = logits.data() + t * experts;
        std::vector<int64_t> order(static_cast<size_t>(experts));
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
        double all = 0, chosen = 0;
        for (int64_t e = 0; e < experts; ++e) all += std::exp(double{row[e]});
        for (int64_t k = 0; k < top_k; ++k) chosen += std::exp(double{row[order[static_cast<size_t>(k)]]});
        for (int64_t k = 0; k < top_k; ++k) {
          const int64_t e = order[static_cast<size_t>(k)];
          const auto index = static_cast<size_t>(t * top_k + k);
          EXPECT_EQ(values[static_cast<size_t>(tokens * top_k) + index], static_cast<float>(e)) << t << " " << k;
          EXPECT_NEAR(values[index], 1.5 * std::exp(double{row[e]}) / (renormalize ? chosen : all), 2e-7);
        }
      }
      expect_same_for_any_threads(run, "moe_router");
    }
  }
}

TEST(MoeRouter, SurvivesExtremesAndRefusesNaN) {
  TestContext test;
  int32_t ids[2];
  float weights[2];
  const RouterProblem problem{.tokens = 1, .experts = 3, .top_k = 2};
  const float huge[] = {3e38f, -3e38f, 3e38f};
  EXPECT_OK(moe_router(problem, {.logits = huge, .expert_ids = ids, .weights = weights}, test.context));
  EXPECT_EQ(ids[0], 0);
  EXPECT_EQ(ids[1], 2);
  EXPECT_FLOAT_EQ(weights[0], 0.5f);
  const float masked[] = {-INFINITY, 1.0f, -INFINITY};
  EXPECT_OK(moe_router(problem, {.logits = masked, .expert_ids = ids, .weights = weights}, test.context));
  EXPECT_EQ(ids[0], 1);
  EXPECT_EQ(weights[0], 1.0f);
  EXPECT_EQ(weights[1], 0.0f);
  const float broken[] = {1, 2, 3, 1, NAN, 3};
  int32_t two_ids[4];
  float two_weights[4];
  expect_error(moe_router({.tokens = 2, .experts = 3, .top_k = 2},
                          {.logits = broken, .expert_ids = two_ids, .weights = two_weights}, test.context),
               "router logits of token 1 of the batch are not finite");
  expect_error(moe_router({.tokens = 1, .experts = 3, .top_k = 4},
                          {.logits = huge, .expert_ids = ids, .weights = weights}, test.context),
               "top_k is 4, allowed: 1 to 3");
}

struct Experts {
  int64_t tokens, top_k, experts, hidden, intermediate;
  DType dtype;
  GatedActivation activation = GatedActivation::kSwiGlu;
};

std::vector<double> exact_linear(const Weight& w, int64_t expert, const std::vector<double>& x, Context& context) {
  std::vector<float> input(x.begin(), x.end()), row(static_cast<size_t>(w.cols));
  if (w.rotation) {
    EXPECT_OK(rotate({.tokens = 1, .cols = w.cols, .rounds = w.rotation->rounds},
                     {.x = input.data(), .rotation = w.rotation.get(), .out = input.data()}, context));
  }
  std::vector<double> out;
  for (int64_t r = 0; r < w.rows; ++r) {
    dequantize_weight_row(w, expert, r, row.data());
    double sum = 0;
    for (size_t i = 0; i < row.size(); ++i) sum += double{row[i]} * (w.rotation ? double{input[i]} : x[i]);
    out.push_back(sum);
  }
  return out;
}

void check_experts(const Experts& c) {
  CaseRandom random(static_cast<uint64_t>(c.tokens * 100 + c.experts));
  const Weight gate_up = random_weight(c.dtype, 2 * c.intermediate, c.hidden, c.experts, 0.3f, random);
  Weight gate = gate_up.slice_rows(0, c.intermediate);
  Weight up = gate_up.slice_rows(c.intermediate, c.intermediate);
  const Weight down = random_weight(c.dtype, c.hidden, c.intermediate, c.experts, 0.3f, random);
  const auto x = random_normal(random, c.tokens * c.hidden);
  const auto weights = random_normal(random, c.tokens * c.top_k);
  std::vector<int32_t> ids;
  for (int64_t t = 0; t < c.tokens; ++t) {
    std::vector<int32_t> all(static_cast<size_t>(c.experts));
    std::iota(all.begin(), all.end(), 0);
    for (int64_t k = 0; k < c.top_k; ++k) {
      std::swap(all[static_cast<size_t>(k)], all[static_cast<size_t>(k + random.below(c.experts - k))]);
      ids.push_back(all[static_cast<size_t>(k)]);
    }
  }
  const MoeExpertsProblem problem{.tokens = c.tokens,
                                  .top_k = c.top_k,
                                  .experts = c.experts,
                                  .hidden = c.hidden,
                                  .intermediate = c.intermediate,
                                  .activation = c.activation};
  const auto run = [&](bool fused, Context& context) {
    Guarded<float> out(c.tokens * c.hidden);
    MoeExpertsArgs args{
        .x = x.data(), .expert_ids = ids.data(), .weights = weights.data(), .down = &down, .out = out.data()};
    if (fused) {
      args.gate_up = &gate_up;
    } else {
      args.gate = &gate;
      args.up = &up;
    }
    EXPECT_OK(moe_experts(problem, args, context));
    EXPECT_TRUE(out.intact());
    return out.values();
  };
  TestContext test;
  test.overrides.force("linear", {"reference"});
  const auto out = run(true, test.context);
  EXPECT_EQ(out, run(false, test.context));
  for (int64_t t = 0; t < c.tokens; ++t) {
    std::vector<double> expected(static_cast<size_t>(c.hidden), 0.0);
    const std::vector<double> input(x.begin() + t * c.hidden, x.begin() + (t + 1) * c.hidden);
    for (int64_t k = 0; k < c.top_k; ++k) {
      const auto index = static_cast<size_t>(t * c.top_k + k);
      const auto g = exact_linear(gate, ids[index], input, test.context);
      const auto u = exact_linear(up, ids[index], input, test.context);
      std::vector<double> inner;
      for (size_t i = 0; i < g.size(); ++i) {
        const double gelu = 0.5 * g[i] * (1 + std::tanh(std::sqrt(2 / M_PI) * (g[i] + 0.044715 * g[i] * g[i] * g[i])));
        inner.push_back((c.activation == GatedActivation::kSwiGlu ? g[i] / (1 + std::exp(-g[i])) : gelu) * u[i]);
      }
      const auto y = exact_linear(down, ids[index], inner, test.context);
      for (size_t i = 0; i < y.size(); ++i) expected[i] += weights[index] * y[i];
    }
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::fabs(value));
    expect_close(out.data() + t * c.hidden, expected, 1e-5, 3e-6 * (largest + 1), "moe_experts");
  }
  expect_same_for_any_threads([&](Context& context) { return run(true, context); }, "moe_experts");
}

TEST(MoeExperts, FollowTheDefinition) {
  check_experts({1, 1, 1, 32, 32, DType::kF32});
  check_experts({7, 3, 8, 64, 32, DType::kQ8_0});
  check_experts({33, 2, 5, 32, 96, DType::kQ4_0, GatedActivation::kGeGluTanh});
  check_experts({3, 8, 384, 32, 32, DType::kF16});  // Far more experts than pairs
  check_experts({5, 2, 3, 128, 128, DType::kParoW4});
}

TEST(MoeExperts, NothingToDoIsFine) {
  CaseRandom random(3);
  const Weight gate_up = random_weight(DType::kF32, 8, 4, 3, 1, random);
  const Weight down = random_weight(DType::kF32, 4, 4, 3, 1, random);
  TestContext test;
  EXPECT_OK(moe_experts({.tokens = 0, .top_k = 2, .experts = 3, .hidden = 4, .intermediate = 4},
                        {.gate_up = &gate_up, .down = &down}, test.context));
  const int32_t ids[] = {0, 3};
  const float x[4] = {}, weights[2] = {};
  float out[4];
  expect_error(
      moe_experts({.tokens = 1, .top_k = 2, .experts = 3, .hidden = 4, .intermediate = 4},
                  {.x = x, .expert_ids = ids, .weights = weights, .gate_up = &gate_up, .down = &down, .out = out},
                  test.context),
      "expert id is 3, allowed: 0 to 2");
  expect_error(
      moe_experts({.tokens = 1, .top_k = 2, .experts = 3, .hidden = 4, .intermediate = 5},
                  {.x = x, .expert_ids = ids, .weights = weights, .gate_up = &gate_up, .down = &down, .out = out},
                  test.context),
      "gate_up is [3, 8, 4], allowed: [3, 10, 4]");
}

TEST(SharedExpert, IsAddedWithItsGate) {
  CaseRandom random(2);
  for (const auto& [tokens, hidden] : {std::array<int64_t, 2>{1, 1}, {7, 63}, {65, 64}}) {
    const auto gate = random_normal(random, tokens, 4.0f);
    const auto shared = random_normal(random, tokens * hidden);
    const auto routed = random_normal(random, tokens * hidden);
    Guarded<float> out(tokens * hidden);
    out.fill(routed);
    TestContext test(3);
    EXPECT_OK(shared_expert_add({.tokens = tokens, .hidden = hidden},
                                {.gate = gate.data(), .shared = shared.data(), .out = out.data()}, test.context));
    EXPECT_TRUE(out.intact());
    for (int64_t i = 0; i < tokens * hidden; ++i) {
      const auto index = static_cast<size_t>(i);
      EXPECT_NEAR(out[i],
                  routed[index] + shared[index] / (1 + std::exp(-double{gate[static_cast<size_t>(i / hidden)]})), 1e-6);
    }
  }
}

}  // namespace
}  // namespace crest::ops::testing
