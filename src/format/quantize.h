#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "format/imatrix.h"
#include "format/quantize_mix.h"

namespace crest::format {

struct QuantizeProgress {
  std::string_view tensor;  // being worked on
  size_t index = 0;         // its number, from 0
  size_t tensors = 0;
  uint64_t elements_done = 0;
  uint64_t elements = 0;
};

struct QuantizeOptions {
  /// Importance of columns; the name goes into the file's metadata.
  const Imatrix* imatrix = nullptr;
  std::string imatrix_name;
  /// Accept inputs that are quantised already and would lose a second time. Not needed for F32, F16 and BF16 outputs.
  bool allow_requantize = false;
  /// Called often; false stops the work (error kCancelled, no output file).
  std::function<bool(const QuantizeProgress&)> progress;
};

struct QuantizeReport {
  struct Tensor {
    std::string name;
    Shape shape;
    tensor::DType from = tensor::DType::kF32;
    QuantChoice choice;
  };
  std::vector<Tensor> tensors;
  size_t quantised = 0;      // tensors that a rule gave a type
  size_t fallbacks = 0;      // of these, those whose row length fits no block of the type wanted
  size_t no_importance = 0;  // of these, those without an entry in the importance matrix
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;  // of tensors
};

/// Rewrites a model (a GGUF file or set, or a Hugging Face folder, converted on the way) as one GGUF file in another
/// type. `type` is a name of quant_mixes(). Works through the rows of one tensor after the other: memory for a few
/// megabytes of rows, whatever the model's size. All metadata is kept; general.file_type and
/// general.quantization_version are set, split.* keys dropped.
/// Refused before anything is written: an output that is one of the inputs (device and inode, so through any link), an
/// unknown type, quantised inputs without allow_requantize, an importance matrix of other sizes. Values that are NaN,
/// infinite or too large are reported with tensor and row.
Result<QuantizeReport> quantize_file(const std::filesystem::path& input, const std::filesystem::path& output,
                                     std::string_view type, const QuantizeOptions& options, core::ThreadPool& pool);

}  // namespace crest::format
