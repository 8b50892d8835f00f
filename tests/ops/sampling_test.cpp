#include "ops/sampling/sampling.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "ops/support.h"

namespace crest::ops::testing {
namespace {

SampleResult sampled(const SamplingParams& params, const SampleInput& input) {
  TestContext test;
  auto result = sample(params, input, test.context);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? *result : SampleResult{.token = -1};
}
int32_t token_of(const SamplingParams& params, const SampleInput& input) { return sampled(params, input).token; }
std::string error_of(const SamplingParams& params, const SampleInput& input) {
  TestContext test;
  const auto result = sample(params, input, test.context);
  return result.ok() ? "(no error)" : result.error().message;
}

// Known answer of the Random123 distribution (philox4x32-10, counter 0, key 0).
TEST(SamplingRng, IsPhilox) {
  EXPECT_EQ(SamplingRng(0).block(0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_NE(SamplingRng(uint64_t{1} << 32).block(0), SamplingRng(0).block(0));
  EXPECT_NE(SamplingRng(0).block(uint64_t{1} << 32), SamplingRng(0).block(0));
  double sum = 0;
  for (uint64_t n = 0; n < 10000; ++n) {
    const double u = SamplingRng(7).uniform(n);
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

/// Shares of the tokens in many draws, checked against probabilities with a 5-sigma margin.
void expect_distribution(const SamplingParams& params, const std::vector<float>& logits,
                         const std::vector<double>& expected) {
  constexpr int kDraws = 20000;
  std::vector<int> counts(logits.size());
  TestContext test;
  for (uint64_t n = 0; n < kDraws; ++n) {
    const auto result = sample(params, {.logits = logits, .draw = n}, test.context);
    ASSERT_TRUE(result.ok());
    ++counts[static_cast<size_t>(result->token)];
  }
  double total = 0;
  for (const double p : expected) total += p;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double p = expected[i] / total;
    EXPECT_NEAR(counts[i], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)) + 1e-9) << "token " << i;
  }
}

const std::vector<float> kLogits = {1.0f, 3.0f, 2.0f, -1.0f, 2.5f, 0.0f};

std::vector<double> powers(double temperature, const std::vector<int>& kept) {
  std::vector<double> p(kLogits.size(), 0.0);
  for (const int i : kept) p[static_cast<size_t>(i)] = std::exp(kLogits[static_cast<size_t>(i)] / temperature);
  return p;
}

TEST(Sample, DrawsFromTheSoftmax) {
  expect_distribution({.temperature = 1, .seed = 1}, kLogits, powers(1, {0, 1, 2, 3, 4, 5}));
  expect_distribution({.temperature = 2, .seed = 2}, kLogits, powers(2, {0, 1, 2, 3, 4, 5}));
}

TEST(Sample, TopKTopPMinP) {
  expect_distribution({.temperature = 0.7f, .top_k = 3, .seed = 3}, kLogits, powers(0.7, {1, 4, 2}));
  // Probabilities at temperature 1: .46 .28 .17 .06 .02 .01, so 0.9 is reached by the third (0.91).
  expect_distribution({.temperature = 1, .top_p = 0.9f, .seed = 4}, kLogits, powers(1, {1, 4, 2}));
  expect_distribution({.temperature = 1, .top_p = 0.92f, .seed = 4}, kLogits, powers(1, {1, 4, 2, 0}));
  expect_distribution({.temperature = 3, .min_p = 0.3f, .seed = 5}, kLogits, powers(3, {1, 2, 4}));
  // Steps follow each other: top-p works on what top-k left (.62 .38), min-p on what top-p left.
  expect_distribution({.temperature = 1, .top_k = 2, .top_p = 0.6f, .seed = 6}, kLogits, powers(1, {1}));
  expect_distribution({.temperature = 1, .top_k = 2, .top_p = 0.65f, .min_p = 0.5f, .seed = 7}, kLogits,
                      powers(1, {1, 4}));
}

TEST(Sample, OffValuesChangeNothing) {
  for (uint64_t n = 0; n < 50; ++n) {
    const SampleInput input{.logits = kLogits, .draw = n};
    const int32_t plain = token_of({.seed = 9}, input);
    EXPECT_EQ(token_of({.top_k = 6, .seed = 9}, input), plain);
    EXPECT_EQ(token_of({.top_k = 100, .seed = 9}, input), plain);
    EXPECT_EQ(token_of({.top_p = 1.0f, .min_p = 0.0f, .seed = 9}, input), plain);
  }
}

TEST(Sample, ZeroTemperatureTakesTheBestLowestId) {
  EXPECT_EQ(token_of({.temperature = 0}, {.logits = kLogits}), 1);
  const std::vector<float> ties = {0, 7, 7, -INFINITY, 7};
  EXPECT_EQ(token_of({.temperature = 0, .top_k = 1, .top_p = 0.1f}, {.logits = ties}), 1);
  // Tiny temperatures neither overflow nor choose something else.
  EXPECT_EQ(token_of({.temperature = 1e-30f}, {.logits = kLogits}), 1);
}

TEST(Sample, SeedsRepeatAndDiffer) {
  std::vector<int32_t> first, again, other;
  for (uint64_t n = 0; n < 64; ++n) {
    first.push_back(token_of({.seed = 42}, {.logits = kLogits, .draw = n}));
    again.push_back(token_of({.seed = 42}, {.logits = kLogits, .draw = n}));
    other.push_back(token_of({.seed = 43}, {.logits = kLogits, .draw = n}));
  }
  EXPECT_EQ(first, again);
  EXPECT_NE(first, other);
}

std::vector<float> penalized(const SamplingParams& params, const std::vector<int32_t>& prompt,
                             const std::vector<int32_t>& generated) {
  // The logit after the penalties is found by asking which bias on token 0 makes it the greedy choice.
  std::vector<float> result;
  for (int32_t token = 1; token < 4; ++token) {
    double low = -1000, high = 1000;
    for (int step = 0; step < 60; ++step) {
      const double middle = (low + high) / 2;
      SamplingParams p = params;
      p.temperature = 0;
      p.logit_bias = {{0, static_cast<float>(middle)}};
      for (int32_t other = 1; other < 4; ++other) {
        if (other != token) p.logit_bias.emplace_back(other, -INFINITY);
      }
      const std::vector<float> logits = {0, 2.0f, -1.0f, 0.5f};
      (token_of(p, {.logits = logits, .prompt = prompt, .generated = generated}) == 0 ? high : low) = middle;
    }
    result.push_back(static_cast<float>(high));
  }
  return result;
}

void expect_logits(const std::vector<float>& actual, const std::vector<float>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
}

// Logits of tokens 1..3 are 2, -1, 0.5.
TEST(Sample, Penalties) {
  expect_logits(penalized({}, {1, 2}, {1, 1, 3}), {2, -1, 0.5});
  // Repetition: prompt and answer, once a token, towards zero from both sides.
  expect_logits(penalized({.repetition_penalty = 2}, {1, 2, 2}, {1, 1}), {1, -2, 0.5});
  // Presence and frequency: generated tokens only.
  expect_logits(penalized({.presence_penalty = 0.75f}, {2}, {1, 1, 3}), {1.25, -1, -0.25});
  expect_logits(penalized({.frequency_penalty = 0.5f}, {2}, {1, 1, 3}), {1, -1, 0});
  expect_logits(penalized({.repetition_penalty = 2, .presence_penalty = 1, .frequency_penalty = 0.5f}, {2}, {1, 1}),
                {-1, -2, 0.5});
  // Last n tokens of prompt and answer together.
  expect_logits(penalized({.repetition_penalty = 2, .penalty_last_n = 2}, {2, 3}, {1}), {1, -1, 0.25});
  expect_logits(penalized({.frequency_penalty = 0.5f, .penalty_last_n = 1}, {}, {1, 1, 1}), {1.5, -1, 0.5});
  expect_logits(penalized({.repetition_penalty = 2, .presence_penalty = 1, .penalty_last_n = 0}, {1}, {1}),
                {2, -1, 0.5});
  // Ids outside the vocabulary (padding of a caller) are ignored.
  expect_logits(penalized({.repetition_penalty = 2}, {-1, 4, 99}, {}), {2, -1, 0.5});
}

TEST(Sample, LogitBias) {
  EXPECT_EQ(token_of({.temperature = 0, .logit_bias = {{3, 10.0f}}}, {.logits = kLogits}), 3);
  EXPECT_EQ(token_of({.temperature = 0, .logit_bias = {{1, -INFINITY}, {4, -INFINITY}}}, {.logits = kLogits}), 2);
  for (uint64_t n = 0; n < 200; ++n) {
    EXPECT_NE(token_of({.temperature = 5, .logit_bias = {{1, -INFINITY}}, .seed = 1}, {.logits = kLogits, .draw = n}),
              1);
  }
}

// Log-probabilities are the model's own, whatever temperature, top-k, bias and penalties did.
TEST(Sample, LogprobsComeFromTheRawLogits) {
  double sum = 0;
  for (const float logit : kLogits) sum += std::exp(double{logit});
  const std::vector<int32_t> generated = {1, 1, 1};
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 0}, SamplingParams{.temperature = 2, .seed = 3},
        SamplingParams{.temperature = 1, .top_k = 2},
        SamplingParams{.temperature = 0, .presence_penalty = 5, .logit_bias = {{5, 50.0f}}}}) {
    const auto result = sampled(params, {.logits = kLogits, .generated = generated, .logprobs = 5});
    EXPECT_NEAR(result.logprob, kLogits[static_cast<size_t>(result.token)] - std::log(sum), 1e-6);
    ASSERT_EQ(result.top.size(), 5u);
    const int32_t order[] = {1, 4, 2, 0, 5};
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(result.top[i].token, order[i]);
      EXPECT_NEAR(result.top[i].logprob, kLogits[static_cast<size_t>(order[i])] - std::log(sum), 1e-6);
    }
  }
  // The chosen one is reported even outside the top.
  const auto outside = sampled({.temperature = 0, .logit_bias = {{3, 100.0f}}}, {.logits = kLogits, .logprobs = 1});
  EXPECT_EQ(outside.token, 3);
  EXPECT_NEAR(outside.logprob, -1 - std::log(sum), 1e-6);
  EXPECT_TRUE(sampled({}, {.logits = kLogits}).top.empty());
  EXPECT_EQ(sampled({}, {.logits = kLogits, .logprobs = 100}).top.size(), kLogits.size());
}

TEST(Sample, RefusesUnusableLogits) {
  EXPECT_NE(error_of({}, {.logits = std::vector<float>{0, NAN, 1}}).find("logit of token 1 is nan"), std::string::npos);
  EXPECT_NE(
      error_of({.temperature = 0}, {.logits = std::vector<float>{0, 1, INFINITY}}).find("logit of token 2 is inf"),
      std::string::npos);
  EXPECT_NE(error_of({}, {.logits = std::vector<float>{-INFINITY, -INFINITY}}).find("nothing is left"),
            std::string::npos);
  EXPECT_NE(error_of({.logit_bias = {{0, -INFINITY}}}, {.logits = std::vector<float>{1}}).find("nothing is left"),
            std::string::npos);
  EXPECT_EQ(token_of({}, {.logits = std::vector<float>{-INFINITY, -3e38f, -INFINITY}}), 1);
}

TEST(Sample, NamesBadParameters) {
  const SampleInput input{.logits = kLogits};
  EXPECT_NE(error_of({.temperature = -1}, input).find("temperature is -1"), std::string::npos);
  EXPECT_NE(error_of({.temperature = NAN}, input).find("temperature is nan"), std::string::npos);
  EXPECT_NE(error_of({.top_k = -1}, input).find("top_k is -1"), std::string::npos);
  EXPECT_NE(error_of({.top_p = 0}, input).find("top_p is 0"), std::string::npos);
  EXPECT_NE(error_of({.top_p = NAN}, input).find("top_p is nan"), std::string::npos);
  EXPECT_NE(error_of({.min_p = 1.5f}, input).find("min_p is 1.5"), std::string::npos);
  EXPECT_NE(error_of({.repetition_penalty = 0}, input).find("repetition_penalty is 0"), std::string::npos);
  EXPECT_NE(error_of({.penalty_last_n = -2}, input).find("penalty_last_n is -2"), std::string::npos);
  EXPECT_NE(error_of({.logit_bias = {{6, 1.0f}}}, input).find("token of a logit bias is 6, allowed: 0 to 5"),
            std::string::npos);
  EXPECT_NE(error_of({.logit_bias = {{1, NAN}}}, input).find("logit bias is nan"), std::string::npos);
}

// A large vocabulary with a wide nucleus takes the growing-front path through several rounds.
TEST(Sample, LargeVocabularies) {
  constexpr int32_t kVocab = 50021;
  CaseRandom random(1);
  std::vector<float> logits(kVocab);
  for (auto& logit : logits) logit = random.normal() * 0.5f;
  std::vector<int32_t> order(kVocab);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]; });
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit});
  for (const float top_p : {0.01f, 0.5f, 0.9f}) {
    size_t size = 0;
    for (double mass = 0; mass < double{top_p} * total; ++size)
      mass += std::exp(double{logits[static_cast<size_t>(order[size])]});
    std::vector<bool> in_nucleus(kVocab);
    for (size_t i = 0; i < size; ++i) in_nucleus[static_cast<size_t>(order[i])] = true;
    for (uint64_t n = 0; n < 20; ++n) {
      const double u = SamplingRng(5).uniform(n);
      double mass = 0, kept = 0;
      for (size_t i = 0; i < size; ++i) kept += std::exp(double{logits[static_cast<size_t>(order[i])]});
      size_t expected = 0;
      while (expected + 1 < size &&
             (mass += std::exp(double{logits[static_cast<size_t>(order[expected])]})) <= u * kept)
        ++expected;
      const int32_t token = token_of({.top_p = top_p, .seed = 5}, {.logits = logits, .draw = n});
      EXPECT_TRUE(in_nucleus[static_cast<size_t>(token)]);
      EXPECT_EQ(token, order[expected]) << top_p << " " << n;
    }
  }
}

TEST(TopLogprobs, BreaksTiesById) {
  const auto top = top_logprobs(std::vector<float>{1, 2, 2, 0}, 3).value();
  EXPECT_EQ(top[0].token, 1);
  EXPECT_EQ(top[1].token, 2);
  EXPECT_EQ(top[2].token, 0);
  EXPECT_FALSE(top_logprobs(std::vector<float>{1, NAN}, 1).ok());
  EXPECT_NEAR(log_sum_exp(std::vector<float>{1000, 1000}), 1000 + std::log(2), 1e-12);
  EXPECT_EQ(log_sum_exp(std::vector<float>{-INFINITY}), -INFINITY);
}

}  // namespace
}  // namespace crest::ops::testing
