#pragma once

#include "model/pass.h"

namespace crest::model {

/// Multi-head attention with grouped key-value heads over the paged cache, as all families have it; what a family lacks
/// (biases, head norms, output gate) is empty.
struct Attention {
  Linear q, k, v, output;
  std::vector<float> q_norm, k_norm;  // [head_dim], empty: none
  bool gated = false;                 // q holds, per head, head_dim queries and then head_dim gates (Qwen 3.5)

  /// blk.<block>.attn_{q,k,v,output}, attn_{q,k}_norm if head_norms.
  static Result<Attention> load(WeightLoader& loader, const ModelConfig& config, const LayerConfig& layer, size_t block,
                                bool head_norms);
  /// out = attention(x), or out += when accumulate; x [tokens, hidden], not out.
  Status run(Pass& pass, const LayerConfig& layer, const LayerCache& cache, const float* x, float* out,
             bool accumulate) const;
};

}  // namespace crest::model
