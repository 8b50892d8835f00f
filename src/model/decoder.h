#pragma once

#include <memory>

#include "model/pass.h"

namespace crest::model {

/// The layers of one decoder family: weights and how they act on the residual stream.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// x [tokens, hidden] after layer `index`, in place. Indices from config.layers.size() on are the MTP head's.
  virtual Status run_layer(size_t index, float* x, Pass& pass) const = 0;
};

using LoadedDecoder = Result<std::unique_ptr<Decoder>>;
LoadedDecoder load_llama(const ModelConfig& config, WeightLoader& loader);
LoadedDecoder load_qwen3_moe(const ModelConfig& config, WeightLoader& loader);
LoadedDecoder load_gemma3(const ModelConfig& config, WeightLoader& loader);
LoadedDecoder load_qwen3_5(const ModelConfig& config, WeightLoader& loader);

}  // namespace crest::model
