#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace crest::format {

/// Importance matrix: for each weight matrix and each of its input columns, the sum of the squared inputs that the
/// column met on a calibration text. Matrices of experts (3-D tensors) have sums of their own for each expert.
/// Files: GGUF with general.type "imatrix" and tensors NAME.in_sum2 [columns, experts] and NAME.counts [1, experts],
/// and the older .dat files of llama.cpp.
class Imatrix {
 public:
  struct Entry {
    int64_t columns = 0;
    int64_t experts = 1;
    std::vector<float> in_sum2;  // [experts, columns]
    std::vector<float> counts;   // [experts]: input rows seen
  };

  /// Hostile-safe; refuses sums and counts that are negative, NaN or infinite.
  static Result<Imatrix> read(const std::filesystem::path& path);
  /// GGUF; refuses to write over `inputs` (device and inode).
  Status write(const std::filesystem::path& path, std::span<const std::filesystem::path> inputs = {}) const;

  /// Adds `rows` input rows [rows, columns] of weight tensor `name`, used by matrix `expert` of `experts` (0 of 1 for
  /// 2-D tensors). Error when a tensor changes its size.
  Status add(std::string_view name, int64_t columns, int64_t experts, int64_t expert, const float* x, int64_t rows);
  /// Notes that `chunks` more chunks of `tokens` tokens were evaluated; both are written into the file.
  void add_chunks(int64_t chunks, int64_t tokens);
  /// Name of the calibration text, written into the file.
  void set_dataset(std::string name) { dataset_ = std::move(name); }

  const Entry* find(std::string_view name) const;
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  int64_t chunks() const { return chunks_; }
  int64_t chunk_tokens() const { return chunk_tokens_; }
  const std::string& dataset() const { return dataset_; }

 private:
  friend class ImatrixReader;
  std::map<std::string, Entry, std::less<>> entries_;
  int64_t chunks_ = 0;
  int64_t chunk_tokens_ = 0;
  std::string dataset_;
};

/// Mean squared input of each column of one expert's matrix; empty when the expert was never used.
std::vector<float> mean_importance(const Imatrix::Entry& entry, int64_t expert);

}  // namespace crest::format
