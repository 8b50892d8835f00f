#include "ops/cases/weights.h"

#include <numeric>
#include <utility>

#include "tensor/half.h"

namespace crest::ops {
namespace {

using tensor::DType;
using Bytes = std::vector<std::byte>;

std::vector<uint16_t> random_halves(int64_t count, float low, float high, CaseRandom& random) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (auto& value : values) value = tensor::f32_to_f16(random.uniform(low, high));
  return values;
}

template <typename T>
std::span<const std::byte> as_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)};
}

std::vector<uint32_t> random_words(int64_t count, CaseRandom& random) {
  std::vector<uint32_t> words(static_cast<size_t>(count));
  for (auto& word : words) word = static_cast<uint32_t>(random.bits());
  return words;
}

std::shared_ptr<const Rotation> random_rotation(int64_t cols, CaseRandom& random) {
  constexpr int64_t kRounds = 8;
  std::vector<int16_t> pairs;
  for (int64_t group = 0; group < kRounds * cols / kParoGroup; ++group) {
    std::vector<int16_t> channels(kParoGroup);
    std::iota(channels.begin(), channels.end(), int16_t{0});
    for (size_t i = channels.size() - 1; i > 0; --i) {
      std::swap(channels[i], channels[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
    }
    pairs.insert(pairs.end(), channels.begin(), channels.end());
  }
  const auto theta = random_halves(kRounds * cols / 2, -1.5f, 1.5f, random);
  const auto scales = random_halves(cols, 0.5f, 2.0f, random);
  return Rotation::create(cols, kRounds, theta, pairs, scales).value();
}

Weight random_paro(int64_t rows, int64_t cols, int64_t experts, float scale, CaseRandom& random) {
  std::vector<std::vector<uint32_t>> words;
  std::vector<std::vector<uint16_t>> scales;
  std::vector<ParoTensors> tensors;
  for (int64_t e = 0; e < experts; ++e) {
    words.push_back(random_words(cols * rows / 8, random));
    words.push_back(random_words(cols / kParoGroup * rows / 8, random));
    scales.push_back(random_halves(cols / kParoGroup * rows, scale / 16, scale / 4, random));
  }
  for (size_t e = 0; e < static_cast<size_t>(experts); ++e) {
    tensors.push_back({as_bytes(words[2 * e]), as_bytes(words[2 * e + 1]), as_bytes(scales[e])});
  }
  return make_paro_weight(rows, cols, tensors, random_rotation(cols, random)).value();
}

/// Where a block keeps its half-precision scale and, if it has one, its minimum.
struct ScaleOffsets {
  int64_t scale = 0;
  int64_t minimum = -1;
};
ScaleOffsets scale_offsets(DType dtype) {
  using enum DType;
  switch (dtype) {
    case kQ4_1:
    case kQ5_1:
    case kQ4_K:
    case kQ5_K:
      return {0, 2};
    case kQ2_K:
      return {80, 82};
    case kQ3_K:
      return {108};
    case kQ6_K:
      return {208};
    default:
      return {0};
  }
}

/// Random codes, which reach every value of a format; scales are set so that values are of order `scale`.
void random_blocks(DType dtype, std::byte* row, int64_t blocks, float scale, CaseRandom& random) {
  const int64_t bytes = tensor::info(dtype).block_bytes;
  const bool super = tensor::info(dtype).block_size == 256;
  const ScaleOffsets offsets = scale_offsets(dtype);
  for (int64_t i = 0; i < blocks * bytes; ++i) row[i] = static_cast<std::byte>(random.bits());
  for (int64_t b = 0; b < blocks; ++b) {
    std::byte* block = row + b * bytes;
    if (dtype == DType::kMXFP4) {
      block[0] = static_cast<std::byte>(124 + random.below(3));
      continue;
    }
    for (const int64_t offset : {offsets.scale, offsets.minimum}) {
      if (offset < 0) continue;
      const uint16_t d = tensor::f32_to_f16(random.uniform(0.005f, 0.02f) * (super ? 0.1f : 1.0f) * scale);
      std::memcpy(block + offset, &d, sizeof d);
    }
  }
}

void random_plain(DType dtype, std::byte* row, int64_t cols, float scale, CaseRandom& random) {
  using enum DType;
  for (int64_t i = 0; i < cols; ++i) {
    const float value = random.normal() * scale;
    const uint16_t half = dtype == kF16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value);
    if (dtype == kF32) {
      std::memcpy(row + 4 * i, &value, 4);
    } else if (dtype == kF16 || dtype == kBF16) {
      std::memcpy(row + 2 * i, &half, 2);
    } else if (dtype == kF8_E4M3FN || dtype == kF8_E4M3FNUZ) {
      row[i] = static_cast<std::byte>(1 + random.below(0x47) + 0x80 * random.below(2));  // up to 4 or so, never a NaN
    } else {
      const int64_t bytes = tensor::info(dtype).block_bytes;
      for (int64_t b = 0; b < bytes; ++b) row[i * bytes + b] = static_cast<std::byte>(random.bits());
    }
  }
}

}  // namespace

std::vector<DType> weight_types() {
  using enum DType;
  return {kF32,     kF16,   kBF16,   kQ4_0,   kQ4_1,  kQ5_0,      kQ5_1,        kQ8_0,
          kQ2_K,    kQ3_K,  kQ4_K,   kQ5_K,   kQ6_K,  kIQ2_XXS,   kIQ2_XS,      kIQ2_S,
          kIQ3_XXS, kIQ3_S, kIQ4_NL, kIQ4_XS, kMXFP4, kF8_E4M3FN, kF8_E4M3FNUZ, kParoW4};
}

Weight random_weight(DType dtype, int64_t rows, int64_t cols, int64_t experts, float scale, CaseRandom& random) {
  if (dtype == DType::kParoW4) return random_paro(rows, cols, experts, scale, random);
  const int64_t row_bytes = tensor::row_bytes(dtype, cols);
  auto bytes = std::make_shared<Bytes>(static_cast<size_t>(experts * rows * row_bytes));
  for (int64_t row = 0; row < experts * rows; ++row) {
    std::byte* target = bytes->data() + row * row_bytes;
    if (tensor::is_quantised(dtype)) {
      random_blocks(dtype, target, cols / tensor::info(dtype).block_size, scale, random);
    } else {
      random_plain(dtype, target, cols, scale, random);
    }
  }
  const std::span<const std::byte> view(*bytes);
  return make_weight(dtype, rows, cols, experts, view, std::move(bytes)).value();
}

}  // namespace crest::ops
