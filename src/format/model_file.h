#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/result.h"
#include "format/gguf.h"
#include "format/metadata.h"
#include "tensor/dtype.h"

namespace crest::text {
struct VocabData;
}

namespace crest::format {

/// A tensor of a model, under its GGUF name ("blk.0.attn_q.weight") whatever file it comes from.
struct TensorEntry {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  Shape shape;
  /// Bytes that data() will give; for kParoW4 the bytes of all parts together.
  uint64_t bytes = 0;
  /// Number of the tensor in its ModelFile.
  size_t index = 0;
};

/// Bytes of a tensor, row after row. Aligned to at least the element size (of a block: to 2 bytes).
struct TensorData {
  std::span<const std::byte> bytes;
  /// Keeps the bytes alive: a mapping, or memory of their own when a transform was needed.
  std::shared_ptr<const void> owner;
  /// The bytes lie in a mapped file, so they cost no memory of their own and may be dropped and read again.
  bool mapped = false;
};

/// One int4 matrix of a ParoQuant linear, packed as AWQ does: bits 4p..4p+3 of word w of a row hold output column
/// 8w + {0,2,4,6,1,3,5,7}[p].
struct ParoMatrix {
  TensorData qweight;  // i32 [in, out/8]
  TensorData qzeros;   // i32 [in/128, out/8]
  TensorData scales;   // f16 [in/128, out]
};

/// A ParoQuant linear (arXiv 2511.10645): y = deq(W') R(channel_scales * x), deq(w) = (q - zero) * scale. R applies, in
/// each group of 128 channels, `rotations` rounds of 64 disjoint Givens rotations: round r, pair t of group g turns
/// channels i = pairs[r*in + g*128 + 2t] and j = pairs[r*in + g*128 + 2t+1] (0..127 inside the group) by
/// theta[r*in/2 + g*64 + t]: x_i' = x_i cos + x_j sin, x_j' = -x_i sin + x_j cos.
struct ParoParts {
  static constexpr int64_t kGroup = 128;
  int64_t in_features = 0;
  int64_t out_features = 0;
  int64_t rotations = 0;
  std::vector<ParoMatrix> matrices;   // one, or one for each expert; they share the rotation
  std::vector<float> theta;           // [rotations, in/2]
  std::vector<int16_t> pairs;         // [rotations, in], checked: each round of a group uses each channel once
  std::vector<float> channel_scales;  // [in]
};

struct OpenOptions {
  /// Present a Hugging Face folder exactly as the GGUF file that convert would write: value heads of gated DeltaNet
  /// tiled, fused gate_up expert tensors split. Without it, what needs no copy is left as it is (see ModelFile).
  bool as_converted = false;
};

/// A model on disk: a GGUF file, a split GGUF set (any of its files may be named) or a Hugging Face folder, presented
/// alike: metadata under GGUF keys ("qwen35.block_count"), tensors under GGUF names with GGUF shapes and content (norms
/// 1+w, ssm_a = -exp(A_log), llama q/k rows permuted for adjacent-pair RoPE, …).
///
/// A folder opened for running differs from a converted file in two ways, both to save a copy of the weights:
///  * the value heads of gated DeltaNet stay in grouped order: string key `crest.v_head_order` is "grouped" (absent or
///    "tiled" otherwise). Grouped: value head h uses key head h / (n_v / n_k); tiled: h % n_k.
///  * experts stored as one gate_up tensor stay so: blk.N.ffn_gate_up_exps.weight {H, 2I, E} (rows 0..I-1 gate, I..2I-1
///    up) in place of ffn_gate_exps and ffn_up_exps {H, I, E}.
/// ParoQuant linears appear as dtype kParoW4; paro() gives their parts.
class ModelFile {
 public:
  enum class Kind { kGguf, kHuggingFace };

  static Result<std::shared_ptr<const ModelFile>> open(const std::filesystem::path& path, OpenOptions options = {});
  virtual ~ModelFile() = default;
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  Kind kind() const { return kind_; }
  /// The path as it was given.
  const std::filesystem::path& path() const { return path_; }
  /// Every file that weights are read from.
  virtual std::vector<std::filesystem::path> files() const = 0;
  const Metadata& metadata() const { return metadata_; }
  /// general.architecture ("qwen35moe"); empty when the file does not say.
  std::string architecture() const;
  /// Metadata key of this architecture: key("block_count") is "qwen35.block_count".
  std::string key(std::string_view suffix) const { return architecture() + "." + std::string(suffix); }

  std::span<const TensorEntry> tensors() const { return tensors_; }
  /// Null when there is no such tensor.
  const TensorEntry* find(std::string_view name) const;
  /// As find(), with an error that names the file.
  Result<const TensorEntry*> require(std::string_view name) const;

  /// The tensor's bytes: a view into the mapped file where no transform is needed, else made anew by each call. Not for
  /// kParoW4. Reports a file that became shorter since it was opened.
  virtual Result<TensorData> data(const TensorEntry& entry) const = 0;
  /// Values of rows [first_row, first_row + rows) as f32 into out[rows * shape[0]], whatever the stored type (kParoW4:
  /// with the rotation and the scales undone, so that y = W x).
  virtual Status read_rows(const TensorEntry& entry, int64_t first_row, int64_t rows, float* out) const = 0;
  /// Parts of a kParoW4 tensor.
  virtual Result<ParoParts> paro(const TensorEntry& entry) const;
  /// Tells the system that a tensor will be read soon, or will not be needed for a while.
  virtual void will_need(const TensorEntry&) const {}
  virtual void dont_need(const TensorEntry&) const {}

  /// Everything a tokenizer needs (include text/vocab_data.h). One token for each row of the embedding: rows without a
  /// token get an unused one. End-of-generation ids are the union of all that the files say.
  virtual Result<text::VocabData> vocab() const = 0;

 protected:
  ModelFile(Kind kind, std::filesystem::path path, Metadata metadata)
      : kind_(kind), path_(std::move(path)), metadata_(std::move(metadata)) {}
  void add_tensor(TensorEntry entry);

  Kind kind_;
  std::filesystem::path path_;
  Metadata metadata_;

 private:
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string, size_t, StringHash, std::equal_to<>> by_name_;
};

}  // namespace crest::format
