#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "format/model_file.h"
#include "ops/weight.h"

namespace crest::model {

/// A weight matrix (or a stack of one for each expert) with its name in the file and, for plain matrices, its bias.
struct Linear {
  std::string name;
  ops::Weight weight;
  std::vector<float> bias;  // empty: none

  bool empty() const { return weight.empty(); }
};

struct LoadOptions {
  /// Called with the bytes of weights done and in all; false stops the loading (kCancelled).
  std::function<bool(uint64_t done, uint64_t total)> progress = nullptr;
  bool keep_mapping = false;         // never repack: weights stay in the file's layout and mapping
  core::ThreadPool* pool = nullptr;  // shares the work of repacking; null: the caller does it alone
};

/// Takes the tensors of a model file, each checked against the shape that the configuration asks for, and remembers
/// which ones were taken. Matrices are views of the mapped file wherever the format allows it.
class WeightLoader {
 public:
  WeightLoader(const format::ModelFile& file, const LoadOptions& options);

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  /// [out, in] as `name`.weight in the file's own layout: rows that are looked up, not multiplied.
  Result<Linear> table(std::string_view name, int64_t in, int64_t out);
  /// The same matrix to multiply with: tied output layers.
  Result<Linear> from_table(const Linear& table);
  /// [out, in] as `name`.weight, with `name`.bias if the file has one.
  Result<Linear> linear(std::string_view name, int64_t in, int64_t out);
  /// [experts, out, in] as `name`.weight.
  Result<Linear> experts(std::string_view name, int64_t in, int64_t out, int64_t experts);
  /// A vector or a small matrix, converted to fp32; `shape` as in GGUF (contiguous dimension first).
  Result<std::vector<float>> values(std::string_view name, const format::Shape& shape);

  /// Error that names file and tensor.
  template <typename... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(code, "{}: {}", file_.path().string(), fmt::format(format, std::forward<Args>(args)...));
  }
  /// Tensors that nobody asked for.
  std::vector<std::string> unused() const;
  /// Counts those tensors as taken that begin so: for parts that are left out on purpose.
  void skip(std::string_view prefix);
  /// Values in all tensors taken, and their bytes.
  int64_t parameters() const { return parameters_; }
  uint64_t bytes() const { return done_; }

 private:
  Result<const format::TensorEntry*> take(std::string_view name, const format::Shape& shape);
  Result<ops::Weight> matrix(const format::TensorEntry& entry, int64_t in, int64_t out, int64_t experts);
  Result<ops::Weight> stored(const format::TensorEntry& entry, int64_t in, int64_t out, int64_t experts);
  Result<ops::Weight> prepare(ops::Weight weight, const format::TensorEntry& entry);
  Result<ops::Weight> paro_matrix(const format::TensorEntry& entry, int64_t in, int64_t out, int64_t experts);
  Status report(const format::TensorEntry& entry);

  const format::ModelFile& file_;
  const LoadOptions& options_;
  std::vector<bool> taken_;
  uint64_t total_ = 0;
  uint64_t done_ = 0;
  int64_t parameters_ = 0;
};

}  // namespace crest::model
