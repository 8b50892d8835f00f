#include "ops/weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/checked.h"
#include "core/cpu_features.h"
#include "ops/checks.h"
#include "ops/context.h"
#include "ops/gemm/panel.h"
#include "tensor/half.h"
#include "tensor/quant.h"

namespace crest::ops {

using tensor::DType;

std::string_view name(WeightLayout layout) {
  switch (layout) {
    case WeightLayout::kRows:
      return "rows";
    case WeightLayout::kPanels:
      return "panels";
  }
  return "?";
}

Weight Weight::slice_rows(int64_t begin, int64_t count) const {
  CREST_CHECK(layout == WeightLayout::kRows && begin >= 0 && count >= 0 && begin + count <= rows, "rows {} + {} of {}",
              begin, count, rows);
  Weight slice = *this;
  slice.data = data + begin * row_bytes;
  slice.rows = count;
  return slice;
}

Weight Weight::slice_expert(int64_t expert) const {
  CREST_CHECK(expert >= 0 && expert < experts, "expert {} of {}", expert, experts);
  Weight slice = *this;
  slice.data = data + expert * expert_bytes;
  slice.experts = 1;
  return slice;
}

namespace {

std::vector<uint8_t> places_of(const Rotation& r) {
  constexpr int64_t kHalf = kParoGroup / 2;
  std::vector<uint8_t> places(static_cast<size_t>((r.rounds + 1) * r.cols));
  for (int64_t column = 0; column < r.cols; column += kParoGroup) {
    uint8_t where[kParoGroup];  // of each channel
    for (int64_t i = 0; i < kParoGroup; ++i) where[i] = static_cast<uint8_t>(i);
    for (int64_t round = 0; round < r.rounds; ++round) {
      const uint8_t* pairs = r.pairs.data() + round * r.cols + column;
      uint8_t* row = places.data() + round * r.cols + column;
      for (int64_t t = 0; t < kHalf; ++t) {
        row[t] = where[pairs[2 * t]];
        row[kHalf + t] = where[pairs[2 * t + 1]];
      }
      for (int64_t t = 0; t < kHalf; ++t) {
        where[pairs[2 * t]] = static_cast<uint8_t>(t);
        where[pairs[2 * t + 1]] = static_cast<uint8_t>(kHalf + t);
      }
    }
    std::copy_n(where, kParoGroup, places.data() + r.rounds * r.cols + column);
  }
  return places;
}

}  // namespace

Result<std::shared_ptr<const Rotation>> Rotation::create(int64_t cols, int64_t rounds, std::span<const uint16_t> theta,
                                                         std::span<const int16_t> pairs,
                                                         std::span<const uint16_t> channel_scales) {
  CREST_RETURN_IF_ERROR(check_range("rotation", "columns", cols, kParoGroup, kMaxExtent));
  if (cols % kParoGroup != 0) {
    return make_error(ErrorCode::kInvalidFile, "rotation: {} columns, allowed: multiples of {}", cols, kParoGroup);
  }
  CREST_RETURN_IF_ERROR(check_range("rotation", "rounds", rounds, 0, 1024));
  const auto expect = [](std::string_view what, size_t found, int64_t wanted) -> Status {
    if (found == static_cast<size_t>(wanted)) return {};
    return make_error(ErrorCode::kInvalidFile, "rotation: {} has {} values, allowed: {}", what, found, wanted);
  };
  CREST_RETURN_IF_ERROR(expect("theta", theta.size(), rounds * cols / 2));
  CREST_RETURN_IF_ERROR(expect("pairs", pairs.size(), rounds * cols));
  CREST_RETURN_IF_ERROR(expect("channel_scales", channel_scales.size(), cols));

  auto rotation = std::make_shared<Rotation>();
  rotation->cols = cols;
  rotation->rounds = rounds;
  for (size_t i = 0; i < theta.size(); ++i) {
    const double angle = tensor::f16_to_f32(theta[i]);
    if (!std::isfinite(angle)) return make_error(ErrorCode::kInvalidFile, "rotation: theta[{}] is not finite", i);
    rotation->cosines.push_back(static_cast<float>(std::cos(angle)));
    rotation->sines.push_back(static_cast<float>(std::sin(angle)));
  }
  for (size_t group = 0; group < pairs.size(); group += kParoGroup) {
    bool used[kParoGroup] = {};
    for (size_t i = group; i < group + kParoGroup; ++i) {
      if (pairs[i] < 0 || pairs[i] >= kParoGroup) {
        return make_error(ErrorCode::kInvalidFile, "rotation: pairs[{}] is {}, allowed: 0 to {}", i, pairs[i],
                          kParoGroup - 1);
      }
      if (std::exchange(used[pairs[i]], true)) {
        return make_error(ErrorCode::kInvalidFile, "rotation: pairs[{}] is {}, which its round uses twice", i,
                          pairs[i]);
      }
      rotation->pairs.push_back(static_cast<uint8_t>(pairs[i]));
    }
  }
  for (size_t i = 0; i < channel_scales.size(); ++i) {
    const float scale = tensor::f16_to_f32(channel_scales[i]);
    if (!std::isfinite(scale))
      return make_error(ErrorCode::kInvalidFile, "rotation: channel_scales[{}] is not finite", i);
    rotation->channel_scales.push_back(scale);
  }
  rotation->places = places_of(*rotation);
  return std::shared_ptr<const Rotation>(std::move(rotation));
}

Result<Weight> make_weight(DType dtype, int64_t rows, int64_t cols, int64_t experts, std::span<const std::byte> bytes,
                           std::shared_ptr<const void> owner) {
  const auto& type = tensor::info(dtype);
  if (type.block_bytes == 0) {
    return make_error(ErrorCode::kUnsupported, "weight: {} is made of several tensors, not of one", type.name);
  }
  CREST_RETURN_IF_ERROR(check_range("weight", "rows", rows, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range("weight", "columns", cols, 1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range("weight", "experts", experts, 1, kMaxExtent));
  if (cols % type.block_size != 0) {
    return make_error(ErrorCode::kInvalidFile, "weight: {} columns are no multiple of the {} of a {} block", cols,
                      type.block_size, type.name);
  }
  const int64_t row_bytes = tensor::row_bytes(dtype, cols);
  const auto matrix = core::checked_mul(static_cast<uint64_t>(row_bytes), static_cast<uint64_t>(rows));
  const auto total = matrix ? core::checked_mul(*matrix, static_cast<uint64_t>(experts)) : std::nullopt;
  if (!total || *total != bytes.size()) {
    return make_error(ErrorCode::kInvalidFile, "weight: {} bytes do not fit {} x {} x {} of {}", bytes.size(), experts,
                      rows, cols, type.name);
  }
  Weight weight;
  weight.dtype = dtype;
  weight.rows = rows;
  weight.cols = cols;
  weight.experts = experts;
  weight.data = bytes.data();
  weight.row_bytes = row_bytes;
  weight.expert_bytes = static_cast<int64_t>(*matrix);
  weight.owner = std::move(owner);
  return weight;
}

namespace {

/// Slot of column c % 8 inside a word of AWQ's packing.
constexpr int kAwqSlot[8] = {0, 4, 1, 5, 2, 6, 3, 7};

uint32_t read_u32(std::span<const std::byte> bytes, int64_t index) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + index * 4, sizeof value);
  return value;
}

void pack_paro(int64_t rows, int64_t cols, const ParoTensors& tensors, ParoBlock* blocks) {
  const int64_t groups = cols / kParoGroup;
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t row = 0; row < rows; ++row) {
      ParoBlock& block = blocks[row * groups + group];
      const int shift = 4 * kAwqSlot[row % 8];
      std::memcpy(&block.scale, tensors.scales.data() + (group * rows + row) * 2, 2);
      block.zero = read_u32(tensors.qzeros, group * (rows / 8) + row / 8) >> shift & 15;
      block.unused = 0;
      for (int64_t i = 0; i < kParoGroup; i += 2) {
        const int64_t word = (group * kParoGroup + i) * (rows / 8) + row / 8;
        const uint32_t even = read_u32(tensors.qweight, word) >> shift & 15;
        const uint32_t odd = read_u32(tensors.qweight, word + rows / 8) >> shift & 15;
        block.quants[i / 2] = static_cast<uint8_t>(even | odd << 4);
      }
    }
  }
}

}  // namespace

Result<Weight> make_paro_weight(int64_t rows, int64_t cols, std::span<const ParoTensors> experts,
                                std::shared_ptr<const Rotation> rotation) {
  CREST_RETURN_IF_ERROR(check_range("ParoQuant weight", "rows", rows, 8, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range("ParoQuant weight", "columns", cols, kParoGroup, kMaxExtent));
  CREST_RETURN_IF_ERROR(
      check_range("ParoQuant weight", "experts", static_cast<int64_t>(experts.size()), 1, kMaxExtent));
  if (rows % 8 != 0 || cols % kParoGroup != 0) {
    return make_error(ErrorCode::kInvalidFile,
                      "ParoQuant weight: {} x {}, allowed: a multiple of 8 rows and of {} columns", rows, cols,
                      kParoGroup);
  }
  if (rotation && rotation->cols != cols) {
    return make_error(ErrorCode::kInvalidFile, "ParoQuant weight: {} columns, but its rotation has {}", cols,
                      rotation->cols);
  }
  const int64_t groups = cols / kParoGroup;
  for (const auto& tensors : experts) {
    const auto expect = [](std::string_view what, size_t found, int64_t wanted) -> Status {
      if (found == static_cast<size_t>(wanted)) return {};
      return make_error(ErrorCode::kInvalidFile, "ParoQuant weight: {} has {} bytes, allowed: {}", what, found, wanted);
    };
    CREST_RETURN_IF_ERROR(expect("qweight", tensors.qweight.size(), cols * (rows / 8) * 4));
    CREST_RETURN_IF_ERROR(expect("qzeros", tensors.qzeros.size(), groups * (rows / 8) * 4));
    CREST_RETURN_IF_ERROR(expect("scales", tensors.scales.size(), groups * rows * 2));
  }
  Weight weight;
  weight.dtype = DType::kParoW4;
  weight.rows = rows;
  weight.cols = cols;
  weight.experts = static_cast<int64_t>(experts.size());
  weight.row_bytes = groups * static_cast<int64_t>(sizeof(ParoBlock));
  weight.expert_bytes = rows * weight.row_bytes;
  auto blocks = std::make_shared<std::vector<ParoBlock>>(static_cast<size_t>(weight.experts * rows * groups));
  for (int64_t e = 0; e < weight.experts; ++e) {
    pack_paro(rows, cols, experts[static_cast<size_t>(e)], blocks->data() + e * rows * groups);
  }
  weight.data = reinterpret_cast<const std::byte*>(blocks->data());
  weight.owner = std::move(blocks);
  weight.rotation = std::move(rotation);
  return weight;
}

void dequantize_weight_row(const Weight& weight, int64_t expert, int64_t row, float* dst) {
  if (weight.layout == WeightLayout::kPanels) return panel::decode_row(weight, expert, row, dst);
  const std::byte* source = weight.row(row, expert);
  if (weight.dtype != DType::kParoW4) return tensor::dequantize_row(weight.dtype, source, dst, weight.cols);
  for (int64_t group = 0; group < weight.cols / kParoGroup; ++group) {
    ParoBlock block;
    std::memcpy(&block, source + group * static_cast<int64_t>(sizeof block), sizeof block);
    const float scale = tensor::f16_to_f32(block.scale);
    float* values = dst + group * kParoGroup;
    for (int64_t i = 0; i < kParoGroup; i += 2) {
      values[i] = static_cast<float>((block.quants[i / 2] & 15) - block.zero) * scale;
      values[i + 1] = static_cast<float>((block.quants[i / 2] >> 4) - block.zero) * scale;
    }
  }
}

Result<Weight> prepare_weight(Weight weight, const RepackOptions& options) {
  const auto& forced = KernelOverrides::from_environment().forced("linear");
  const bool reference_only = std::find(forced.begin(), forced.end(), "reference") != forced.end();
  const panel::Format* format = panel::find_format(weight.dtype);
  if (options.keep_mapping || reference_only || !core::cpu_features().avx2 || format == nullptr ||
      weight.layout != WeightLayout::kRows || weight.cols % format->chunk_cols != 0) {
    return weight;
  }
  if (options.pool != nullptr) return panel::pack(weight, *options.pool);
  core::ThreadPool alone(1);
  return panel::pack(weight, alone);
}

}  // namespace crest::ops
