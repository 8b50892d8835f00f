#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
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

}  // namespace
}  // namespace crest::tensor
