#pragma once

#include "model/pass.h"
#include "ops/activation/activation.h"

namespace crest::model {

/// down(act(gate(x)) * up(x))
struct FeedForward {
  Linear gate, up, down;
  ops::GatedActivation activation = ops::GatedActivation::kSwiGlu;

  /// <prefix>_{gate,up,down}<suffix>: "blk.0.ffn", or "_shexp" at the end for a shared expert.
  static Result<FeedForward> load(WeightLoader& loader, std::string_view prefix, std::string_view suffix,
                                  int64_t hidden, int64_t intermediate);
  /// out = ffn(x), or out += when accumulate; x [tokens, hidden], not out.
  Status run(Pass& pass, const float* x, float* out, bool accumulate) const;
};

/// Mixture of experts: softmax router, the best of them, and for Qwen 3.5 a shared expert behind a sigmoid gate.
struct MixtureOfExperts {
  Linear router;
  Linear gate_up;   // gate and up in one stack, or
  Linear gate, up;  // apart
  Linear down;
  FeedForward shared;  // empty: none
  Linear shared_gate;

  static Result<MixtureOfExperts> load(WeightLoader& loader, const ModelConfig& config, size_t block);
  /// out += experts(x); x [tokens, hidden], not out.
  Status run(Pass& pass, const float* x, float* out) const;

 private:
  Status run_experts(Pass& pass, const float* x, const int32_t* ids, const float* weights, float* out) const;
  Status observe(Pass& pass, const float* x, const int32_t* ids) const;
};

}  // namespace crest::model
