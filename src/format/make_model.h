#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"
#include "format/gguf_writer.h"
#include "format/hf_config.h"

namespace crest::format {

/// Sizes of a public model, from its config.json.
struct ModelSize {
  std::string_view name;  // "qwen3.6-35b-a3b"
  Family family;
  int64_t layers, hidden, heads, kv_heads, head_dim;
  int64_t ffn;  // of a dense layer, or of an expert
  int64_t vocab, context;
  bool tied;
  double theta;
  double epsilon = 1e-6;
  int64_t experts = 0, experts_used = 0, shared_ffn = 0;
  int64_t value_heads = 0;     // gated DeltaNet, with 16 key heads of 128
  double rope_factor = 0;      // scaling: llama3 for llama, linear for gemma3
  int64_t sliding_window = 0;  // gemma3
};
std::span<const ModelSize> model_sizes();
/// By name, whatever the case and with or without "-" and "."; an error lists the names.
Result<ModelSize> find_model_size(std::string_view name);

struct MakeModelOptions {
  std::string like;             // name of a ModelSize
  std::string type = "q4_k_m";  // a type or a mix that quantise knows
  /// In place of the public size's.
  std::optional<int64_t> layers, experts, vocab;
  /// Add the head for multi-token prediction (Qwen 3.5 and 3.6 only).
  bool mtp = false;
  /// Tokenizer to copy: a tokenizer.json, a GGUF file or a Hugging Face folder. Empty: a byte-level one of the right
  /// size is made up.
  std::filesystem::path tokenizer;
  uint64_t seed = 0;
  /// Called with the bytes written and in all; false stops (kCancelled).
  std::function<bool(uint64_t done, uint64_t total)> progress = {};
};

struct MakeModelReport {
  size_t tensors = 0;
  uint64_t bytes = 0;
  int64_t parameters = 0;
};

/// Writes a GGUF file with the shapes, types and metadata of a public model and random weights, scaled so that
/// activations and logits stay near 1: for timing and memory, not for text. Weights are streamed through a fixed
/// buffer. The same options give the same bytes, whatever the number of threads.
Result<MakeModelReport> make_model(const std::filesystem::path& output, const MakeModelOptions& options,
                                   core::ThreadPool& pool);

/// A size's tensors in GGUF order, all as F32, and its metadata without the tokenizer.
struct ModelSkeleton {
  HfConfig config;
  Metadata metadata;
  std::vector<TensorSpec> tensors;
};
Result<ModelSkeleton> make_skeleton(const ModelSize& size, bool mtp);

}  // namespace crest::format
