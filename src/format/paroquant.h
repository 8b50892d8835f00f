#pragma once

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "format/hf_plan.h"
#include "format/model_file.h"

namespace crest::format {

/// A tensor of a set as bytes: a view into the mapping when it lies there aligned to `alignment`, else a copy.
Result<TensorData> tensor_view(const SafetensorsSet& weights, const SafetensorsTensor& tensor, size_t alignment);

/// The parts of a planned ParoQuant linear, checked: pairs are disjoint in each round of a group, scales and angles are
/// finite. The early layout is repacked; `rows` of the plan (an order of the outputs) is applied.
Result<ParoParts> load_paro(const PlannedTensor& planned, const SafetensorsSet& weights);

/// Plain weights of a ParoQuant linear: w = channel_scales * R^-1 deq(w'), so that y = W x.
class ParoRows {
 public:
  explicit ParoRows(const ParoParts& parts);
  /// Row `row` (one output) of matrix `matrix`, in_features values.
  void read(size_t matrix, int64_t row, float* out);

 private:
  void unpack(size_t matrix, int64_t word);
  const ParoParts& parts_;
  std::vector<float> cos_, sin_;
  std::vector<float> block_;  // eight rows that share packed words
  size_t block_matrix_ = 0;
  int64_t block_word_ = -1;
};

/// Column c of a packed word: bit offset of its nibble.
inline int paro_nibble_shift(int64_t column) {
  constexpr int kSlot[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  return 4 * kSlot[column % 8];
}

}  // namespace crest::format
