#include "tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace crest::tensor {
namespace {

TEST(Half, EveryPatternGoesThereAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = f16_to_f32(half);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(wide))));
    } else {
      EXPECT_EQ(f32_to_f16(wide), half);
    }
    const float brain = bf16_to_f32(half);
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(brain))));
    } else {
      EXPECT_EQ(f32_to_bf16(brain), half);
    }
  }
}

// Ties, overflow and subnormals against a rounding done in double precision.
TEST(Half, RoundsToNearestEven) {
  const auto naive = [](double x) {
    const double a = std::fabs(x);
    const int exponent = a == 0 ? -14 : std::max(-14, std::ilogb(a));
    const double unit = std::ldexp(1.0, exponent - 10);
    const double rounded = std::nearbyint(a / unit) * unit;
    return std::copysign(rounded >= 65520 || rounded > 65504 ? INFINITY : rounded, x);
  };
  uint32_t state = 1;
  for (int i = 0; i < 2000000; ++i) {
    state = state * 1664525 + 1013904223;
    const float x = std::bit_cast<float>(0x33000000 + state % 0x15000000 + (state & 0x80000000));
    EXPECT_EQ(f16_to_f32(f32_to_f16(x)), static_cast<float>(naive(x))) << x;
  }
}

// f32 -> bf16 must round, keep NaN a NaN and keep subnormals: engines have truncated, made Inf of NaN and flushed.
TEST(Half, Bf16HardPatterns) {
  const std::pair<uint32_t, uint16_t> cases[] = {{0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
                                                 {0x7f7f7fff, 0x7f7f}, {0x7f7fffff, 0x7f80}, {0x00008001, 0x0001},
                                                 {0x00018000, 0x0002}, {0x80000000, 0x8000}};
  for (const auto& [in, out] : cases) EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(in)), out);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace crest::tensor
