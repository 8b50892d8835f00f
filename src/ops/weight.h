#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "tensor/dtype.h"

namespace crest::ops {

/// Order of a weight's bytes in memory. It is chosen once, at load, from the format and the processor; kernels say in
/// `supports` which ones they read.
enum class WeightLayout : uint8_t {
  kRows,    // as in the file: one row after the other, each a run of blocks (kParoW4: ParoBlock, below)
  kPanels,  // panels of 16 rows in the order of the CPU's vector kernels: see gemm/panel.h
};
std::string_view name(WeightLayout layout);

/// 128 weights of one row of a ParoQuant matrix, w = scale * (q - zero); the nibble of weight i is in byte i / 2, even
/// i in the low half.
struct ParoBlock {
  uint16_t scale;  // IEEE half
  uint8_t zero;    // 0..15
  uint8_t unused;
  uint8_t quants[64];
};
static_assert(sizeof(ParoBlock) == 68);
inline constexpr int64_t kParoGroup = 128;

/// ParoQuant's transform of a linear layer's input (arXiv 2511.10645): multiply by channel_scales, then `rounds` rounds
/// of Givens rotations of disjoint pairs inside each group of 128 channels:
/// x_i' = x_i cos + x_j sin, x_j' = x_j cos - x_i sin.
struct Rotation {
  int64_t cols = 0;                   // channels, a multiple of 128
  int64_t rounds = 0;                 // krot
  std::vector<uint8_t> pairs;         // [rounds, cols]: pair t of group g in round r at r*cols + g*128 + 2t: local i, j
  std::vector<float> cosines, sines;  // [rounds, cols / 2]
  std::vector<float> channel_scales;  // [cols]
  /// [rounds + 1, cols]: for kernels that keep a round's results in the order of its pairs (first members of a group,
  /// then second ones), where the members of each round's pairs lie after the round before; the last row is for the
  /// channels.
  std::vector<uint8_t> places;

  /// From a checkpoint's tensors: theta f16 [rounds, cols/2], pairs i16 [rounds, cols], channel_scales f16 [cols].
  /// Refuses sizes that do not fit together, pair indices outside 0..127, a channel that a round uses twice, and angles
  /// or scales that are not finite.
  static Result<std::shared_ptr<const Rotation>> create(int64_t cols, int64_t rounds, std::span<const uint16_t> theta,
                                                        std::span<const int16_t> pairs,
                                                        std::span<const uint16_t> channel_scales);
};

/// A matrix [rows = out_features, cols = in_features], or a stack of `experts` such matrices, of any element type.
/// Cheap to copy: the bytes belong to `owner` (a file mapping or a repacked buffer).
struct Weight {
  tensor::DType dtype = tensor::DType::kF32;
  WeightLayout layout = WeightLayout::kRows;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t experts = 1;
  const std::byte* data = nullptr;
  int64_t row_bytes = 0;                     // from one row to the next
  int64_t expert_bytes = 0;                  // from one expert to the next
  std::shared_ptr<const Rotation> rotation;  // the input is rotated first (ParoQuant); shared by all experts
  std::shared_ptr<const void> owner;

  bool empty() const { return data == nullptr; }
  /// First byte of a row in layout kRows.
  const std::byte* row(int64_t row, int64_t expert = 0) const { return data + expert * expert_bytes + row * row_bytes; }
  /// Rows begin .. begin+count-1 as a weight of its own (layout kRows).
  Weight slice_rows(int64_t begin, int64_t count) const;
  /// One expert as a plain matrix.
  Weight slice_expert(int64_t expert) const;
};

/// A weight over bytes in GGUF order (rows of blocks, experts outermost). Refuses cols that are no multiple of the
/// block, sizes that overflow, and byte counts that do not fit the shape.
Result<Weight> make_weight(tensor::DType dtype, int64_t rows, int64_t cols, int64_t experts,
                           std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// ParoQuant tensors of one matrix as stored in a checkpoint: qweight i32 [cols, rows/8], qzeros i32 [cols/128,
/// rows/8], scales f16 [cols/128, rows]; AWQ nibble order along rows.
struct ParoTensors {
  std::span<const std::byte> qweight, qzeros, scales;
};
/// Repacks one matrix, or one for each expert, into rows of ParoBlock (a copy: the checkpoint's order is transposed).
Result<Weight> make_paro_weight(int64_t rows, int64_t cols, std::span<const ParoTensors> experts,
                                std::shared_ptr<const Rotation> rotation);

/// fp32 values of one row, in any layout, before any rotation is undone; dst has cols values.
void dequantize_weight_row(const Weight& weight, int64_t expert, int64_t row, float* dst);

/// What the loader asks for each weight before the first use: the layout that this processor's kernels read fastest.
/// May return the weight unchanged. With keep_mapping (--no-repack) it always does.
struct RepackOptions {
  bool keep_mapping = false;
  core::ThreadPool* pool = nullptr;  // shares the work; null: the calling thread does it alone
};
Result<Weight> prepare_weight(Weight weight, const RepackOptions& options);

}  // namespace crest::ops
