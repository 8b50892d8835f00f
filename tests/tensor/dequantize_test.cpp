#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "tensor/fp8.h"
#include "tensor/quant.h"

namespace crest::tensor {
namespace {

// Hashes of 64 random blocks a type, made with PyPI's gguf package by tests/oracle/dequantize_gguf.py.
struct Golden {
  DType dtype;
  uint64_t fnv;
};
constexpr Golden kGolden[] = {
    {DType::kQ4_0, 0x73613c5c183d223c},   {DType::kQ4_1, 0xf1b18c9be9b7ac3a},    {DType::kQ5_0, 0xa7f0a628bd54ca64},
    {DType::kQ5_1, 0xc0153fff29b7cdd0},   {DType::kQ8_0, 0xb0f32cecab68cd00},    {DType::kQ2_K, 0x715706b8ac01a39c},
    {DType::kQ3_K, 0xd7e14ac3a0f2e48a},   {DType::kQ4_K, 0x0457816a13f91fe4},    {DType::kQ5_K, 0x9e87d6d939238f76},
    {DType::kQ6_K, 0x288b00903c40da2d},   {DType::kIQ2_XXS, 0x8a69f719f006f25d}, {DType::kIQ2_XS, 0x8b0801d15c0d7a50},
    {DType::kIQ2_S, 0xd3292a3723b7acdd},  {DType::kIQ3_XXS, 0x57cb83e15b3e0d43}, {DType::kIQ3_S, 0x47100375a43f0211},
    {DType::kIQ4_NL, 0xe397ee4c3be58c8b}, {DType::kIQ4_XS, 0xfbcd9d5dc51d396e},  {DType::kMXFP4, 0xe41dfcd1e8c51dc6},
};

TEST(Dequantize, EqualsGgufPackageBitForBit) {
  for (const Golden& golden : kGolden) {
    const DTypeInfo& type = info(golden.dtype);
    // One byte of offset: blocks of a file may lie at any address.
    std::vector<uint8_t> storage(static_cast<size_t>(type.block_bytes * 64 + 1));
    uint32_t state = 1;
    for (size_t i = 1; i < storage.size(); ++i) {
      state = state * 1664525 + 1013904223;
      storage[i] = static_cast<uint8_t>(state >> 24);
    }
    const int64_t n = type.block_size * 64;
    constexpr float kGuard = -12345.0f;
    std::vector<float> values(static_cast<size_t>(n + 1), kGuard);
    dequantize_row(golden.dtype, storage.data() + 1, values.data(), n);
    EXPECT_EQ(values.back(), kGuard) << type.name;
    values.pop_back();
    uint64_t hash = 1469598103934665603u;
    for (const float value : values) {
      const uint32_t bits = std::isnan(value) ? 0x7fc00000 : std::bit_cast<uint32_t>(value);
      for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (bits >> shift & 255)) * 1099511628211u;
    }
    EXPECT_EQ(hash, golden.fnv) << type.name;
  }
}

// Engines have read MXFP4 nibbles in pairs, forgot that the table is doubled, and let the scale byte wrap at its ends.
TEST(Dequantize, Mxfp4NibbleOrderAndExtremeScales) {
  const float expected[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, 0, -.5f, -1, -1.5f, -2, -3, -4, -6};
  uint8_t block[17];
  for (int i = 0; i < 16; ++i) block[i + 1] = static_cast<uint8_t>(i | (15 - i) << 4);
  float y[32];
  for (const int scale : {127, 0, 1, 2, 128, 254, 255}) {
    block[0] = static_cast<uint8_t>(scale);
    dequantize_row(DType::kMXFP4, block, y, 32);
    for (int i = 0; i < 32; ++i) {
      const double exact = std::ldexp(expected[i < 16 ? i : 31 - i], scale - 127);
      const float rounded = static_cast<float>(exact);
      EXPECT_EQ(y[i], rounded) << "scale byte " << scale << ", element " << i;
    }
  }
  block[0] = 0;
  dequantize_row(DType::kMXFP4, block, y, 32);
  EXPECT_EQ(y[1], 0x1p-128f);  // subnormal: neither 0 nor Inf
}

TEST(Dequantize, PlainTypes) {
  const int64_t wide[] = {0, -1, 1, int64_t{1} << 40, std::numeric_limits<int64_t>::min(), (int64_t{1} << 53) + 1};
  float y[6];
  dequantize_row(DType::kI64, wide, y, 6);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], static_cast<float>(wide[i]));
  const double doubles[] = {0.1, -1e300, 1e-320};
  dequantize_row(DType::kF64, doubles, y, 3);
  EXPECT_EQ(y[0], 0.1f);
  EXPECT_EQ(y[1], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(y[2], 0.0f);
  const int8_t bytes[] = {-128, 127, 0};
  dequantize_row(DType::kI8, bytes, y, 3);
  EXPECT_EQ(y[0], -128.0f);
  EXPECT_EQ(y[1], 127.0f);
}

// Overflow to NaN on one target and clamping on another; NaN byte lost; small numbers decoded as normal ones.
TEST(Fp8, E4m3fnTable) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::pair<float, int> cases[] = {{448, 0x7e},      {464, 0x7e},        {465, 0x7e},   {480, 0x7e},
                                         {kInf, 0x7e},     {NAN, 0x7f},        {-0.f, 0x80},  {0x1p-9f, 0x01},
                                         {0x1p-10f, 0x00}, {0x1.8p-10f, 0x01}, {-kInf, 0xfe}, {1e-30f, 0x00},
                                         {0x1p-6f, 0x08},  {0x1.fp-7f, 0x08}};
  for (const auto& [in, out] : cases) EXPECT_EQ(f32_to_e4m3fn(in), out) << in;
  EXPECT_EQ(e4m3fn_to_f32(0x01), 0x1p-9f);
  EXPECT_EQ(e4m3fn_to_f32(0x07), 0.013671875f);
  EXPECT_TRUE(std::isnan(e4m3fn_to_f32(0x7f)) && std::isnan(e4m3fn_to_f32(0xff)));
}

TEST(Fp8, E4m3fnuzTable) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::pair<float, int> cases[] = {{240, 0x7f}, {247.9f, 0x7f}, {248, 0x7f},     {kInf, 0x7f},    {-kInf, 0xff},
                                         {NAN, 0x80}, {-0.f, 0x00},   {-1e-30f, 0x00}, {0x1p-10f, 0x01}};
  for (const auto& [in, out] : cases) EXPECT_EQ(f32_to_e4m3fnuz(in), out) << in;
  EXPECT_EQ(e4m3fnuz_to_f32(0x01), 0x1p-10f);
  EXPECT_EQ(e4m3fnuz_to_f32(0x7f), 240.0f);
  EXPECT_TRUE(std::isnan(e4m3fnuz_to_f32(0x80)));
}

// Every byte goes there and back; every midpoint between neighbours goes to the even code, its neighbours to theirs.
template <typename Encode, typename Decode>
void check_all_codes(Encode encode, Decode decode, int largest) {
  for (int code = 0; code < 256; ++code) {
    const float value = decode(static_cast<uint8_t>(code));
    if (std::isnan(value)) continue;
    EXPECT_EQ(encode(value), code);
  }
  for (int code = 0; code < largest; ++code) {
    const float a = decode(static_cast<uint8_t>(code));
    const float b = decode(static_cast<uint8_t>(code + 1));
    const float middle = (a + b) / 2;
    EXPECT_EQ(encode(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(encode(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(encode(std::nextafter(middle, 1000.0f)), code + 1);
  }
}
TEST(Fp8, RoundsToNearestEvenEverywhere) {
  check_all_codes(f32_to_e4m3fn, e4m3fn_to_f32, 0x7e);
  check_all_codes(f32_to_e4m3fnuz, e4m3fnuz_to_f32, 0x7f);
}

}  // namespace
}  // namespace crest::tensor
