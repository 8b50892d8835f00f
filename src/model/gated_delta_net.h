#pragma once

#include "model/pass.h"

namespace crest::model {

/// Gated DeltaNet mixer (arXiv 2412.06464) as in Qwen 3.5: causal convolution over q, k and v, the gated delta rule per
/// value head, a gated norm and the output projection.
struct GatedDeltaNet {
  Linear qkv;   // q | k | v
  Linear gate;  // z
  Linear beta, alpha;
  std::vector<float> conv;     // [conv_dim, conv_kernel], oldest tap first
  std::vector<float> a_scale;  // [value_heads] = -exp(A_log)
  std::vector<float> dt_bias;  // [value_heads]
  std::vector<float> norm;     // [value_dim]
  Linear output;

  static Result<GatedDeltaNet> load(WeightLoader& loader, const ModelConfig& config, size_t block);
  /// out += mixer(x); x [tokens, hidden], not out.
  Status run(Pass& pass, const LayerCache& cache, const float* x, float* out) const;
};

}  // namespace crest::model
