#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "format/model_file.h"
#include "tensor/dtype.h"

namespace crest::format {

struct ConvertOptions {
  /// "auto" (each matrix keeps the type that it has; ParoQuant becomes F16), or what quantise takes: "f32", "bf16",
  /// "q8_0", "q4_k_m", … (without an importance matrix).
  std::string type = "auto";
  /// Called with the bytes written and in all; false stops the conversion (kCancelled).
  std::function<bool(uint64_t done, uint64_t total)> progress = {};
};

struct ConvertReport {
  size_t tensors = 0;
  uint64_t bytes = 0;                  // of the file
  std::vector<std::string> fallbacks;  // tensors that got another type, as their rows are no multiple of the block
};

/// Hugging Face folder to GGUF file, as llama.cpp's converter makes it: V heads tiled, norms 1+w, ssm_a, llama q/k
/// rows, rope_freqs, tokenizer and chat template. The bytes depend on the folder's content and name only, not on the
/// number of threads. Refuses an output that is one of the folder's files.
Result<ConvertReport> convert(const std::filesystem::path& folder, const std::filesystem::path& output,
                              const ConvertOptions& options, core::ThreadPool& pool);

/// Metadata of the file that convert makes of a folder, tokenizer keys included; general.file_type is left to the
/// caller.
Result<Metadata> converted_metadata(const ModelFile& folder);
/// Every file that goes into a model: weights and, of a folder, configuration and tokenizer.
std::vector<std::filesystem::path> input_files(const ModelFile& model);

/// Writes all values of a tensor of `model` as `dtype` to `sink`, a few million values at a time.
Status write_tensor_as(const ModelFile& model, const TensorEntry& entry, tensor::DType dtype, core::ThreadPool& pool,
                       const std::function<Status(std::span<const std::byte>)>& sink);

}  // namespace crest::format
