#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "format/model_file.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/decoder.h"
#include "ops/rope/rope.h"

namespace crest::model {

/// A decoder-only language model: weights and how to evaluate them. It keeps no state of any sequence, so one model
/// serves any number of them; caches belong to the caller.
class Model {
 public:
  /// Loads every weight, checked by name and shape against the metadata. A tensor that nothing uses, and an MTP head
  /// that is announced but missing, is a warning.
  static Result<std::unique_ptr<Model>> load(std::shared_ptr<const format::ModelFile> file,
                                             const LoadOptions& options = {});

  const ModelConfig& config() const { return config_; }
  int64_t vocab_size() const { return embedding_.weight.rows; }
  /// Main layers and those of the MTP head that was loaded: the layers that a cache has.
  std::vector<LayerConfig> cache_layers() const;
  bool has_mtp() const { return mtp_.has_value(); }
  /// Values in all weights, and the bytes that they take in the file.
  int64_t parameters() const { return parameters_; }
  uint64_t weight_bytes() const { return weight_bytes_; }
  const format::ModelFile& file() const { return *file_; }

  /// Evaluates a batch; keys, values and recurrent states go to the caches. Errors: a token id outside the vocabulary,
  /// memory that the system refuses.
  Status forward(const Batch& batch, const Outputs& outputs, ForwardContext& context) const;

  /// Evaluates the multi-token prediction head: row t of `hidden` [tokens, hidden] is what forward() gave as
  /// final_hidden for a token at positions[t], token_ids[t] is the token after that one, and logits of row t are of the
  /// token after those two. The head's own cache is that of its layer. Requires has_mtp(). outputs.hidden is not used.
  Status forward_mtp(const Batch& batch, const float* hidden, const Outputs& outputs, ForwardContext& context) const;

 private:
  struct MtpHead {
    Linear projection;  // [hidden, 2 * hidden] of (embedding, hidden)
    std::vector<float> embedding_norm, hidden_norm, final_norm;
    Linear embedding, output;  // empty: the model's own
  };
  Model() = default;
  Status load_weights(const LoadOptions& options);
  Status load_mtp(WeightLoader& loader);
  Status begin(Pass& pass) const;
  Status finish(Pass& pass, const float* x, const std::vector<float>& norm_weight, const Linear& output,
                const Outputs& outputs) const;

  std::shared_ptr<const format::ModelFile> file_;
  ModelConfig config_;
  Linear embedding_;
  Linear output_;  // the embedding itself where they are tied
  std::vector<float> final_norm_;
  ops::RopeFrequencies rope_, local_rope_;
  std::unique_ptr<Decoder> decoder_;
  std::optional<MtpHead> mtp_;
  int64_t parameters_ = 0;
  uint64_t weight_bytes_ = 0;
};

}  // namespace crest::model
