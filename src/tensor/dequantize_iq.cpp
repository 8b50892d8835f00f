#include <array>
#include <bit>
#include <cstring>

#include "tensor/blocks.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"
#include "tensor/iq_grids.h"

// Codebook types: magnitudes from a grid, signs apart.
namespace crest::tensor::detail {
namespace {

template <typename Block, typename Body>
void each_block(const void* src, float* dst, int64_t n, Body body) {
  const auto* blocks = static_cast<const Block*>(src);
  for (int64_t i = 0; i < n / kSuperBlock; ++i) body(blocks[i], dst + i * kSuperBlock);
}

// Seven sign bits are stored; the eighth makes the number of minus signs even.
uint8_t expand_signs(uint32_t seven) {
  return static_cast<uint8_t>(seven | (static_cast<uint32_t>(std::popcount(seven)) & 1) << 7);
}

// Row s holds 1 or -1 for the bits of s.
constexpr std::array<std::array<float, 8>, 256> sign_table() {
  std::array<std::array<float, 8>, 256> table{};
  for (size_t s = 0; s < 256; ++s) {
    for (size_t j = 0; j < 8; ++j) table[s][j] = s >> j & 1 ? -1.0f : 1.0f;
  }
  return table;
}
constexpr auto kSigns = sign_table();

// kCount (4 or 8) values; bit j of signs negates value j.
template <size_t kCount, typename Entry>
void emit(float scale, Entry entry, uint8_t signs, float* y) {
  static_assert(sizeof(Entry) == kCount);
  const auto magnitudes = std::bit_cast<std::array<uint8_t, kCount>>(entry);
  const float* sign = kSigns[signs].data();
  for (size_t j = 0; j < kCount; ++j) y[j] = scale * static_cast<float>(magnitudes[j]) * sign[j];
}

uint32_t load_u32(const void* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

}  // namespace

void dequantize_iq2_xxs(const void* src, float* dst, int64_t n) {
  each_block<BlockIQ2_XXS>(src, dst, n, [](const BlockIQ2_XXS& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int ib = 0; ib < 8; ++ib) {
      const char* group = reinterpret_cast<const char*>(&b) + 2 + 8 * ib;
      const uint32_t indices = load_u32(group);
      const uint32_t scale_signs = load_u32(group + 4);
      const float db = d * (0.5f + static_cast<float>(scale_signs >> 28)) * 0.25f;
      for (int l = 0; l < 4; ++l) {
        emit<8>(db, kIQ2XXSGrid[indices >> (8 * l) & 255], expand_signs(scale_signs >> (7 * l) & 127),
                y + 32 * ib + 8 * l);
      }
    }
  });
}

void dequantize_iq2_xs(const void* src, float* dst, int64_t n) {
  each_block<BlockIQ2_XS>(src, dst, n, [](const BlockIQ2_XS& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int l = 0; l < 32; ++l) {
      const float scale = static_cast<float>(b.scales[l / 4] >> (l / 2 % 2 * 4) & 15);
      const float db = d * (0.5f + scale) * 0.25f;
      emit<8>(db, kIQ2XSGrid[b.qs[l] & 511u], expand_signs(b.qs[l] >> 9u), y + 8 * l);
    }
  });
}

void dequantize_iq2_s(const void* src, float* dst, int64_t n) {
  each_block<BlockIQ2_S>(src, dst, n, [](const BlockIQ2_S& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int l = 0; l < 32; ++l) {
      const float scale = static_cast<float>(b.scales[l / 4] >> (l / 2 % 2 * 4) & 15);
      const float db = d * (0.5f + scale) * 0.25f;
      const unsigned index = b.qs[l] | (b.qh[l / 4] >> (2 * (l % 4)) & 3u) << 8;
      emit<8>(db, kIQ2SGrid[index], b.signs[l], y + 8 * l);
    }
  });
}

void dequantize_iq3_xxs(const void* src, float* dst, int64_t n) {
  each_block<BlockIQ3_XXS>(src, dst, n, [](const BlockIQ3_XXS& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int ib = 0; ib < 8; ++ib) {
      const uint32_t scale_signs = load_u32(b.scales_signs + 4 * ib);
      const float db = d * (0.5f + static_cast<float>(scale_signs >> 28)) * 0.5f;
      for (int l = 0; l < 4; ++l) {
        const uint8_t signs = expand_signs(scale_signs >> (7 * l) & 127);
        const uint8_t* indices = b.qs + 8 * ib + 2 * l;
        float* out = y + 32 * ib + 8 * l;
        emit<4>(db, kIQ3XXSGrid[indices[0]], signs & 15, out);
        emit<4>(db, kIQ3XXSGrid[indices[1]], signs >> 4, out + 4);
      }
    }
  });
}

void dequantize_iq3_s(const void* src, float* dst, int64_t n) {
  each_block<BlockIQ3_S>(src, dst, n, [](const BlockIQ3_S& b, float* y) {
    const float d = f16_to_f32(b.d);
    for (int k = 0; k < 64; ++k) {
      const int scale = b.scales[k / 16] >> (k / 8 % 2 * 4) & 15;
      const float db = d * static_cast<float>(1 + 2 * scale);
      const unsigned index = b.qs[k] | (b.qh[k / 8] >> (k % 8) & 1u) << 8;
      emit<4>(db, kIQ3SGrid[index], static_cast<uint8_t>(b.signs[k / 2] >> (k % 2 * 4) & 15), y + 4 * k);
    }
  });
}

}  // namespace crest::tensor::detail
