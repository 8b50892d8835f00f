#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch.h"

namespace crest::engine {

/// Collects, for every weight, the sums of squares of its input columns: what an importance matrix is made of.
class ActivationStatistics final : public model::ActivationObserver {
 public:
  struct Entry {
    int64_t cols = 0;
    int64_t experts = 0;
    std::vector<double> sums;     // [experts, cols]: sum of x^2
    std::vector<int64_t> counts;  // [experts]: rows seen
  };

  void linear_input(std::string_view name, int64_t experts, int64_t expert, const float* x, int64_t rows, int64_t cols,
                    int64_t stride) override;
  /// By the weight's name in the file.
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace crest::engine
