#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tensor/plain_quantizers.h"
#include "tensor/quant.h"

namespace crest::tensor {
namespace {

struct Golden {
  DType dtype;
  double plain_error;
  uint64_t plain_fnv;
  double weighted_error;
  uint64_t weighted_fnv;
};
// Made with ggml (x86-64, no contraction) from the input of GoldenInput.
constexpr Golden kGolden[] = {
    {DType::kQ4_0, .083744, 0x14bb48a916314f10, .079197, 0xeabd56f778c4ae74},
    {DType::kQ4_1, .076098, 0x34b6caf878f12be6, .068720, 0x1a19e86ac49a9c22},
    {DType::kQ5_0, .041517, 0x91d94b7abca8d25f, .039785, 0xf8afa35092174beb},
    {DType::kQ5_1, .037229, 0x429b4133ef8ee2b9, .033021, 0xb19aa8b0a5b6c192},
    {DType::kQ8_0, .005154, 0x29c4848b6e1a2d55, .005154, 0x29c4848b6e1a2d55},
    {DType::kQ2_K, .285966, 0x4c99853511304f41, .265133, 0xae0aa5e961beca88},
    {DType::kQ3_K, .148157, 0x12585d4da097f401, .142337, 0x433ffa2d620588ca},
    {DType::kQ4_K, .069329, 0xa72b2e4090a26914, .068907, 0xcfa52404b3df1026},
    {DType::kQ5_K, .034747, 0xccc243efc2540e07, .034206, 0x30e75604ac23c842},
    {DType::kQ6_K, .017421, 0x99d3472627f8cec6, .017100, 0x444af9dfbf2f698c},
    {DType::kIQ4_NL, .074160, 0xce553074a1c59efb, .073597, 0xa18bb3e56f3f4b85},
    {DType::kIQ4_XS, .074966, 0xf84e43525a7c2239, .074179, 0x75f0456ce36fb320},
    {DType::kMXFP4, .111642, 0xc81d660cd3d98600, .111642, 0xc81d660cd3d98600},
};

struct GoldenInput {
  std::vector<float> x;
  std::vector<float> weights;
  GoldenInput() {
    uint32_t state = 12345;
    const auto uniform = [&] {
      state = state * 1664525 + 1013904223;
      return static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
    };
    for (int i = 0; i < 2048; ++i) {
      float sum = uniform();
      for (int k = 0; k < 3; ++k) sum += uniform();
      x.push_back(sum);
    }
    for (int i = 0; i < 256; ++i) weights.push_back(0.75f + uniform());
  }
};

uint64_t fnv(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 1469598103934665603u;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

double relative_error(DType dtype, const std::vector<float>& x, const std::vector<uint8_t>& bytes) {
  std::vector<float> y(x.size());
  dequantize_row(dtype, bytes.data(), y.data(), static_cast<int64_t>(x.size()));
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (double{y[i]} - x[i]) * (double{y[i]} - x[i]);
    norm += double{x[i]} * x[i];
  }
  return std::sqrt(error / norm);
}

std::vector<uint8_t> plain_rows(DType dtype, const std::vector<float>& x, const float* weights) {
  std::vector<uint8_t> bytes;
  for (size_t row = 0; row < x.size() / 256; ++row) {
    const auto part = testing::plain_quantize(dtype, x.data() + 256 * row, 256, weights);
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

// The yardstick itself is right: same errors, and where nothing was left open the same bytes, as ggml.
TEST(PlainQuantizers, MatchGgml) {
  const GoldenInput input;
  EXPECT_EQ(input.x[0], -0x1.91ea2cp-1f);
  EXPECT_EQ(input.weights[0], 0x1.fc9f78p-1f);
  for (const Golden& golden : kGolden) {
    const auto plain = plain_rows(golden.dtype, input.x, nullptr);
    const auto weighted = plain_rows(golden.dtype, input.x, input.weights.data());
    EXPECT_NEAR(relative_error(golden.dtype, input.x, plain), golden.plain_error, 1e-6) << name(golden.dtype);
    EXPECT_NEAR(relative_error(golden.dtype, input.x, weighted), golden.weighted_error, 1e-6) << name(golden.dtype);
    EXPECT_EQ(fnv(plain), golden.plain_fnv) << name(golden.dtype);
    EXPECT_EQ(fnv(weighted), golden.weighted_fnv) << name(golden.dtype);
  }
}

std::vector<uint8_t> crest_rows(DType dtype, const std::vector<float>& x, const float* weights) {
  const auto size = static_cast<size_t>(row_bytes(dtype, 256));
  std::vector<uint8_t> bytes(x.size() / 256 * size);
  for (size_t row = 0; row < x.size() / 256; ++row) {
    EXPECT_TRUE(quantize_row(dtype, x.data() + 256 * row, bytes.data() + size * row, 256, weights).ok());
  }
  return bytes;
}

TEST(Quantize, ErrorsAtOrBelowTheYardstick) {
  const GoldenInput input;
  for (const Golden& golden : kGolden) {
    const double plain = relative_error(golden.dtype, input.x, crest_rows(golden.dtype, input.x, nullptr));
    const double weighted =
        relative_error(golden.dtype, input.x, crest_rows(golden.dtype, input.x, input.weights.data()));
    EXPECT_LE(plain, golden.plain_error) << name(golden.dtype);
    EXPECT_LE(weighted, golden.weighted_error) << name(golden.dtype);
  }
}

constexpr DType kBlockTypes[] = {DType::kQ4_0,   DType::kQ4_1,   DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                 DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                 DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};

struct Random {
  uint32_t state;
  float uniform() {  // (0, 1)
    state = state * 1664525 + 1013904223;
    return (static_cast<float>(state >> 8) + 0.5f) * 0x1p-24f;
  }
  float normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(6.2831853f * uniform()); }
};

double squared_error(DType dtype, const std::vector<float>& x, const std::vector<uint8_t>& bytes,
                     const float* weights = nullptr) {
  std::vector<float> y(x.size());
  dequantize_row(dtype, bytes.data(), y.data(), static_cast<int64_t>(x.size()));
  double error = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    error += (weights != nullptr ? weights[i % 256] : 1.0) * (double{y[i]} - x[i]) * (double{y[i]} - x[i]);
  }
  return error;
}

// Other shapes of data than the golden input: heavy tails, outliers, one sign, rows of very different size.
TEST(Quantize, NeverWorseThanTheYardstickOnOddData) {
  const auto kinds = {+[](Random& r) { return r.normal(); },
                      +[](Random& r) { return r.normal() / (r.uniform() + 0.05f); },
                      +[](Random& r) { return r.uniform() < 0.01f ? 40 * r.normal() : r.normal(); },
                      +[](Random& r) { return std::fabs(r.normal()); },
                      +[](Random& r) { return -1 - r.uniform(); },
                      +[](Random& r) { return r.uniform() < 0.7f ? 0.0f : r.normal(); },
                      +[](Random& r) { return r.normal() * std::exp2(-20 * r.uniform()); }};
  Random random{99};
  std::vector<float> weights(256);
  for (float& w : weights) w = random.uniform() * random.uniform() * 10;
  int kind = 0;
  for (const auto make : kinds) {
    std::vector<float> x(256 * 16);
    for (float& value : x) value = make(random);
    for (const DType dtype : kBlockTypes) {
      const double ours = squared_error(dtype, x, crest_rows(dtype, x, nullptr));
      EXPECT_LE(ours, 1.0001 * squared_error(dtype, x, plain_rows(dtype, x, nullptr)))
          << name(dtype) << ", data " << kind;
      const double ours_weighted = squared_error(dtype, x, crest_rows(dtype, x, weights.data()), weights.data());
      EXPECT_LE(ours_weighted, 1.0001 * squared_error(dtype, x, plain_rows(dtype, x, weights.data()), weights.data()))
          << name(dtype) << ", weighted, data " << kind;
    }
    ++kind;
  }
}

// Blocks without a scale to speak of: the result is finite and no further away than zero would be.
TEST(Quantize, EdgesOfTheRange) {
  const auto row = [](float a, float b) {
    std::vector<float> x(256, a);
    for (size_t i = 0; i < 256; i += 37) x[i] = b;
    return x;
  };
  const std::vector<float> rows[] = {row(0, 0),          row(-0.f, -0.f), row(1e-45f, 0),    row(1e-38f, -1e-38f),
                                     row(1e-8f, -3e-8f), row(0, 6e-8f),   row(3e-5f, 0),     row(1, 1),
                                     row(-1, -1),        row(0, 5),       row(0, -5),        row(1, 1e-20f),
                                     row(60000, -65504), row(-3e4f, 1),   row(1000, -1e-10f)};
  for (const DType dtype : kBlockTypes) {
    for (const std::vector<float>& x : rows) {
      for (const float weight : {-1.0f, 0.0f, 1e-30f, 1e30f}) {
        const std::vector<float> weights(256, weight);
        std::vector<uint8_t> bytes(static_cast<size_t>(row_bytes(dtype, 256)) + 1, 0xa5);
        const auto status = quantize_row(dtype, x.data(), bytes.data(), 256, weight < 0 ? nullptr : weights.data());
        ASSERT_TRUE(status.ok()) << status.error().message;
        EXPECT_EQ(bytes.back(), 0xa5);
        std::vector<float> y(256);
        dequantize_row(dtype, bytes.data(), y.data(), 256);
        double error = 0;
        double norm = 0;
        for (size_t i = 0; i < 256; ++i) {
          ASSERT_TRUE(std::isfinite(y[i])) << name(dtype) << " of " << x[1] << ", " << x[0];
          error += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
          norm += double{x[i]} * x[i];
        }
        EXPECT_LE(error, norm * 1.000001) << name(dtype) << " of " << x[1] << ", " << x[0];
      }
    }
  }
}

// Whatever is accepted comes back finite and close, up to the largest scale.
TEST(Quantize, LargestValues) {
  for (const DType dtype : kBlockTypes) {
    int accepted = 0;
    for (int exponent = 10; exponent < 128; ++exponent) {
      Random random{static_cast<uint32_t>(exponent)};
      std::vector<float> x(256);
      for (float& value : x) value = std::ldexp(random.uniform() * 2 - 1, exponent);
      std::vector<uint8_t> bytes(static_cast<size_t>(row_bytes(dtype, 256)));
      if (!quantize_row(dtype, x.data(), bytes.data(), 256, nullptr).ok()) break;
      ++accepted;
      const double error = relative_error(dtype, x, bytes);
      EXPECT_LT(error, 0.5) << name(dtype) << " at 2^" << exponent;
    }
    EXPECT_GE(accepted, 6) << name(dtype);
  }
}

TEST(Quantize, RefusesWhatItCannotHold) {
  std::vector<uint8_t> bytes(256 * 4);
  for (const DType dtype : kBlockTypes) {
    for (const float bad : {NAN, INFINITY, -INFINITY, 3e38f}) {
      std::vector<float> x(256, 1);
      x[77] = bad;
      const auto status = quantize_row(dtype, x.data(), bytes.data(), 256, nullptr);
      ASSERT_FALSE(status.ok()) << name(dtype) << " of " << bad;
      EXPECT_NE(status.error().message.find("element 77"), std::string::npos) << status.error().message;
    }
  }
  const std::vector<float> x(256, 1);
  for (const DType dtype : {DType::kIQ2_XXS, DType::kIQ3_S, DType::kI8, DType::kF64, DType::kParoW4}) {
    EXPECT_FALSE(can_quantize(dtype));
    EXPECT_FALSE(quantize_row(dtype, x.data(), bytes.data(), 256, nullptr).ok());
  }
  const float large = 65520;
  EXPECT_FALSE(quantize_row(DType::kF16, &large, bytes.data(), 1, nullptr).ok());
}

// f32 -> bf16 in a row: rounding, NaN, subnormals.
TEST(Quantize, PlainTypesConvertAsIeee) {
  const uint32_t in[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x7f7f7fff, 0x7f7fffff,
                         0x7f800001, 0x8001,     0x18000,    0x80000000};
  const uint16_t out[] = {0x3f80, 0x3f82, 0x3f81, 0x7f7f, 0x7f80, 0, 0x0001, 0x0002, 0x8000};
  float x[9];
  std::memcpy(x, in, sizeof(in));
  uint16_t bits[9];
  ASSERT_TRUE(quantize_row(DType::kBF16, x, bits, 9, nullptr).ok());
  for (int i = 0; i < 9; ++i) {
    if (i != 5) {
      EXPECT_EQ(bits[i], out[i]);
    }
  }
  EXPECT_GT(bits[5] & 0x7fff, 0x7f80);
  uint8_t codes[9];
  ASSERT_TRUE(quantize_row(DType::kF8_E4M3FN, x, codes, 9, nullptr).ok());
  EXPECT_EQ(codes[4], 0x7e);
  ASSERT_TRUE(quantize_row(DType::kF8_E4M3FNUZ, x, codes, 9, nullptr).ok());
  EXPECT_EQ(codes[8], 0x00);
}

}  // namespace
}  // namespace crest::tensor
