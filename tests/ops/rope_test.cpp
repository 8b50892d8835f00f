#include "ops/rope/rope.h"

#include <numbers>

#include "ops/support.h"

namespace crest::ops::testing {
namespace {

using Config = RopeConfig;

RopeFrequencies frequencies(const Config& config) { return RopeFrequencies::create(config).value(); }

std::string error_of(const Config& config) {
  const auto result = RopeFrequencies::create(config);
  return result.ok() ? "(no error)" : result.error().message;
}

TEST(RopeFrequencies, PlainAndLinear) {
  const auto plain = frequencies({.rotary_dim = 64, .theta = 1e7});
  const auto linear = frequencies({.rotary_dim = 64, .theta = 1e7, .scaling = RopeScaling::kLinear, .factor = 8});
  ASSERT_EQ(plain.inverse.size(), 32u);
  for (size_t j = 0; j < 32; ++j) {
    EXPECT_DOUBLE_EQ(plain.inverse[j], std::pow(1e7, -static_cast<double>(j) / 32));
    EXPECT_DOUBLE_EQ(linear.inverse[j], plain.inverse[j] / 8);
  }
  EXPECT_EQ(plain.attention_factor, 1);
}

// Llama 3.1 (head_dim 128): long waves are divided, short ones stay, a linear blend between.
TEST(RopeFrequencies, Llama3) {
  const auto f = frequencies(
      {.rotary_dim = 128, .theta = 500000, .scaling = RopeScaling::kLlama3, .factor = 8, .original_context = 8192});
  const auto plain = frequencies({.rotary_dim = 128, .theta = 500000});
  for (size_t j = 0; j < 64; ++j) {
    const double wavelength = 2 * std::numbers::pi / plain.inverse[j];
    if (wavelength < 8192.0 / 4) {
      EXPECT_DOUBLE_EQ(f.inverse[j], plain.inverse[j]) << j;
    } else if (wavelength > 8192) {
      EXPECT_DOUBLE_EQ(f.inverse[j], plain.inverse[j] / 8) << j;
    } else {
      const double smooth = (8192 / wavelength - 1) / 3;
      EXPECT_NEAR(f.inverse[j], plain.inverse[j] * ((1 - smooth) / 8 + smooth), 1e-15) << j;
      EXPECT_LT(f.inverse[j], plain.inverse[j]);
      EXPECT_GT(f.inverse[j], plain.inverse[j] / 8);
    }
  }
}

TEST(RopeFrequencies, YarnOfQwen35) {
  const auto f = frequencies(
      {.rotary_dim = 64, .theta = 1e7, .scaling = RopeScaling::kYarn, .factor = 4, .original_context = 262144});
  const auto plain = frequencies({.rotary_dim = 64, .theta = 1e7});
  // Dimension at which a frequency turns r times over the original context.
  const auto dim = [](double r) { return 64 * std::log(262144 / (r * 2 * std::numbers::pi)) / (2 * std::log(1e7)); };
  const double low = std::floor(dim(32));
  const double high = std::ceil(dim(1));
  EXPECT_EQ(low, 14);
  EXPECT_EQ(high, 22);
  for (size_t j = 0; j < 32; ++j) {
    const double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(j) - low) / (high - low)));
    EXPECT_NEAR(f.inverse[j] / plain.inverse[j], 1 - ramp + ramp / 4, 1e-12) << j;
  }
  EXPECT_DOUBLE_EQ(f.attention_factor, 0.1 * std::log(4) + 1);
  EXPECT_EQ(frequencies({.rotary_dim = 64,
                         .scaling = RopeScaling::kYarn,
                         .factor = 4,
                         .original_context = 4096,
                         .attention_factor = 1.5})
                .attention_factor,
            1.5);
}

TEST(RopeFrequencies, FactorsOfTheFileDivide) {
  const std::vector<float> factors = {1, 2, 4, 8};
  const auto f = frequencies({.rotary_dim = 8, .factors = factors});
  const auto plain = frequencies({.rotary_dim = 8});
  for (size_t j = 0; j < 4; ++j) EXPECT_DOUBLE_EQ(f.inverse[j], plain.inverse[j] / factors[j]);
}

TEST(RopeFrequencies, StreamsOfMRope) {
  const auto interleaved = frequencies({.rotary_dim = 64, .mrope_sections = {11, 11, 10}});
  int counts[3] = {};
  for (size_t j = 0; j < 32; ++j) {
    const int expected = j % 3 == 1 && j < 33 ? 1 : j % 3 == 2 && j < 30 ? 2 : 0;
    EXPECT_EQ(interleaved.stream[j], expected) << j;
    ++counts[interleaved.stream[j]];
  }
  EXPECT_EQ(counts[0], 11);
  EXPECT_EQ(counts[1], 11);
  EXPECT_EQ(counts[2], 10);
  const auto blocks = frequencies({.rotary_dim = 128, .mrope_sections = {16, 24, 24}, .mrope_interleaved = false});
  EXPECT_EQ(blocks.stream[15], 0);
  EXPECT_EQ(blocks.stream[16], 1);
  EXPECT_EQ(blocks.stream[39], 1);
  EXPECT_EQ(blocks.stream[40], 2);
}

TEST(RopeFrequencies, NamesBadParameters) {
  EXPECT_NE(error_of({.rotary_dim = 7}).find("rotary_dim is 7, allowed: even"), std::string::npos);
  EXPECT_NE(error_of({.rotary_dim = 0}).find("rotary_dim is 0"), std::string::npos);
  EXPECT_NE(error_of({.rotary_dim = 8, .theta = 0}).find("theta is 0"), std::string::npos);
  EXPECT_NE(error_of({.rotary_dim = 8, .theta = INFINITY}).find("theta is inf"), std::string::npos);
  EXPECT_NE(error_of({.rotary_dim = 8, .scaling = RopeScaling::kLinear, .factor = 0}).find("scaling factor is 0"),
            std::string::npos);
  EXPECT_NE(
      error_of({.rotary_dim = 8, .scaling = RopeScaling::kYarn, .factor = 2}).find("original context length is 0"),
      std::string::npos);
  EXPECT_NE(
      error_of(
          {.rotary_dim = 8, .scaling = RopeScaling::kLlama3, .factor = 2, .original_context = 9, .high_freq_factor = 1})
          .find("high_freq_factor is 1"),
      std::string::npos);
  EXPECT_NE(error_of({.rotary_dim = 8, .mrope_sections = {1, 1, 1}}).find("1 + 1 + 1"), std::string::npos);
  const std::vector<float> factors = {1, 0, 1, 1};
  EXPECT_NE(error_of({.rotary_dim = 8, .factors = factors}).find("frequency factor is 0"), std::string::npos);
  EXPECT_NE(error_of({.rotary_dim = 16, .factors = factors}).find("number of frequency factors is 4"),
            std::string::npos);
}

// Long contexts: an angle formed in fp32 is off by 0.01 radians at position 262143.
TEST(RopeTable, IsExactAtLargePositions) {
  const auto f = frequencies({.rotary_dim = 64, .theta = 1e7, .attention_factor = 1.25});
  const std::vector<int32_t> positions = {0, 1, 63, 64, 65, 99991, 262143, 1010000};
  const auto tokens = static_cast<int64_t>(positions.size());
  const auto run = [&](Context& context) {
    Guarded<float> cosines(tokens * 32), sines(tokens * 32);
    EXPECT_OK(rope_table(
        {.tokens = tokens, .rotary_dim = 64},
        {.frequencies = &f, .positions = positions.data(), .cosines = cosines.data(), .sines = sines.data()}, context));
    EXPECT_TRUE(cosines.intact() && sines.intact());
    auto values = cosines.values();
    const auto more = sines.values();
    values.insert(values.end(), more.begin(), more.end());
    return values;
  };
  TestContext test;
  const auto values = run(test.context);
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t j = 0; j < 32; ++j) {
      const long double angle = positions[static_cast<size_t>(t)] * std::pow(1e7L, -static_cast<long double>(j) / 32);
      ASSERT_NEAR(values[static_cast<size_t>(t * 32 + j)], static_cast<double>(std::cos(angle) * 1.25L), 1e-7)
          << t << " " << j;
      ASSERT_NEAR(values[static_cast<size_t>((tokens + t) * 32 + j)], static_cast<double>(std::sin(angle) * 1.25L),
                  1e-7);
    }
  }
  expect_same_for_any_threads(run, "rope_table");
}

TEST(RopeTable, PicksTheStreamOfEachFrequency) {
  const auto f = frequencies({.rotary_dim = 8, .mrope_sections = {2, 1, 1}});  // streams 0, 1, 2, 0
  const std::vector<int32_t> positions = {10, 11, 20, 21, 30, 31};             // [3, 2]
  Guarded<float> cosines(8), sines(8);
  TestContext test;
  EXPECT_OK(
      rope_table({.tokens = 2, .rotary_dim = 8, .streams = 3},
                 {.frequencies = &f, .positions = positions.data(), .cosines = cosines.data(), .sines = sines.data()},
                 test.context));
  const int32_t expected[2][4] = {{10, 20, 30, 10}, {11, 21, 31, 11}};
  for (size_t t = 0; t < 2; ++t) {
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(sines[static_cast<int64_t>(t * 4 + j)], std::sin(expected[t][j] * f.inverse[j]), 1e-7);
    }
  }
  const int32_t negative[] = {-1};
  expect_error(rope_table({.tokens = 1, .rotary_dim = 8},
                          {.frequencies = &f, .positions = negative, .cosines = cosines.data(), .sines = sines.data()},
                          test.context),
               "positions[0] is -1");
  expect_error(
      rope_table({.tokens = 1, .rotary_dim = 8, .streams = 2},
                 {.frequencies = &f, .positions = positions.data(), .cosines = cosines.data(), .sines = sines.data()},
                 test.context),
      "streams is 2");
}

TEST(Rope, RotatesPairsOfBothStyles) {
  CaseRandom random(1);
  for (const RopeStyle style : {RopeStyle::kNeox, RopeStyle::kNormal}) {
    for (const auto& [tokens, heads, head_dim, rotary_dim] : {std::array<int64_t, 4>{1, 1, 2, 2},
                                                              {7, 3, 64, 64},
                                                              {65, 2, 80, 32},
                                                              {3, 5, 256, 64},
                                                              {2, 2, 9, 6},
                                                              {2, 1, 5, 0}}) {
      const auto cosines = random_normal(random, std::max<int64_t>(1, tokens * rotary_dim / 2));
      const auto sines = random_normal(random, std::max<int64_t>(1, tokens * rotary_dim / 2));
      const auto original = random_normal(random, tokens * heads * head_dim);
      const auto run = [&](Context& context) {
        Guarded<float> x(tokens * heads * head_dim);
        x.fill(original);
        EXPECT_OK(
            rope({.tokens = tokens, .heads = heads, .head_dim = head_dim, .rotary_dim = rotary_dim, .style = style},
                 {.x = {x.data()}, .cosines = cosines.data(), .sines = sines.data()}, context));
        EXPECT_TRUE(x.intact());
        return x.values();
      };
      TestContext test;
      const auto x = run(test.context);
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t h = 0; h < heads; ++h) {
          std::vector<double> expected;
          const float* source = original.data() + (t * heads + h) * head_dim;
          expected.assign(source, source + head_dim);
          for (int64_t j = 0; j < rotary_dim / 2; ++j) {
            const auto a = static_cast<size_t>(style == RopeStyle::kNeox ? j : 2 * j);
            const auto b = static_cast<size_t>(style == RopeStyle::kNeox ? j + rotary_dim / 2 : 2 * j + 1);
            const double c = cosines[static_cast<size_t>(t * rotary_dim / 2 + j)];
            const double s = sines[static_cast<size_t>(t * rotary_dim / 2 + j)];
            expected[a] = source[a] * c - source[b] * s;
            expected[b] = source[b] * c + source[a] * s;
          }
          expect_close(x.data() + (t * heads + h) * head_dim, expected, 0, 2e-6, "rope");
        }
      }
      if (tokens == 65) expect_same_for_any_threads(run, "rope");
    }
  }
}

// Rotation keeps lengths, and scores depend on distances only.
TEST(Rope, ScoresDependOnDistance) {
  CaseRandom random(2);
  const auto f = frequencies({.rotary_dim = 64, .theta = 1e7});
  const auto q = random_normal(random, 128);
  const auto k = random_normal(random, 128);
  const auto score = [&](int32_t q_position, int32_t k_position) {
    std::vector<float> x(q);
    x.insert(x.end(), k.begin(), k.end());
    const int32_t positions[] = {q_position, k_position};
    std::vector<float> cosines(64), sines(64);
    TestContext test;
    EXPECT_OK(rope_table({.tokens = 2, .rotary_dim = 64},
                         {.frequencies = &f, .positions = positions, .cosines = cosines.data(), .sines = sines.data()},
                         test.context));
    EXPECT_OK(rope({.tokens = 2, .heads = 1, .head_dim = 128, .rotary_dim = 64},
                   {.x = {x.data()}, .cosines = cosines.data(), .sines = sines.data()}, test.context));
    double sum = 0;
    for (size_t i = 0; i < 128; ++i) sum += double{x[i]} * x[128 + i];
    return sum;
  };
  EXPECT_NEAR(score(5, 2), score(200003, 200000), 2e-5);
  EXPECT_NEAR(score(5, 2), score(262143, 262140), 2e-5);
  EXPECT_GT(std::fabs(score(5, 2) - score(5, 3)), 1e-3);
}

}  // namespace
}  // namespace crest::ops::testing
