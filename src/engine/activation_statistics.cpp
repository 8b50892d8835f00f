#include "engine/activation_statistics.h"

namespace crest::engine {

void ActivationStatistics::linear_input(std::string_view name, int64_t experts, int64_t expert, const float* x,
                                        int64_t rows, int64_t cols, int64_t stride) {
  auto found = entries_.find(name);
  if (found == entries_.end()) {
    Entry entry{cols, experts, std::vector<double>(static_cast<size_t>(experts * cols)),
                std::vector<int64_t>(static_cast<size_t>(experts))};
    found = entries_.emplace(std::string(name), std::move(entry)).first;
  }
  Entry& entry = found->second;
  double* const sums = entry.sums.data() + expert * cols;
  for (int64_t row = 0; row < rows; ++row) {
    const float* const values = x + row * stride;
    for (int64_t c = 0; c < cols; ++c) sums[c] += static_cast<double>(values[c]) * values[c];
  }
  entry.counts[static_cast<size_t>(expert)] += rows;
}

}  // namespace crest::engine
