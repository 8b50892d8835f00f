#pragma once

#include "ops/registry.h"

namespace crest::ops {

/// Depthwise causal convolution over packed sequences, then optionally SiLU:
/// out[t, c] = sum_i weight[c, i] * x[t - (width-1) + i, c] (+ bias[c]); weight[:, width-1] meets the current token.
/// The columns before a sequence's first token come from its state slot, and its last width-1 columns replace them.
struct CausalConv1dProblem {
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t channels = 0;
  int64_t width = 4;
  int64_t slots = 0;  // of the state pool
  bool silu = true;
};
struct CausalConv1dArgs {
  const float* x = nullptr;              // [tokens, channels]
  int64_t x_stride = 0;                  // floats; 0: channels
  const float* weight = nullptr;         // [channels, width], oldest tap first
  const float* bias = nullptr;           // [channels] or null
  const int32_t* cu_seqlens = nullptr;   // [sequences + 1]
  const int32_t* state_slots = nullptr;  // [sequences], all different
  const uint8_t* has_state =
      nullptr;             // [sequences]: 0 = new sequence, the slot's content is ignored; null: all have one
  float* state = nullptr;  // [slots, width-1, channels], oldest column first; values before the convolution
  float* out = nullptr;    // [tokens, channels]; not x
};
Status check(const CausalConv1dProblem& problem, const CausalConv1dArgs& args);
Status causal_conv1d(const CausalConv1dProblem& problem, const CausalConv1dArgs& args, Context& context);
const Operator<CausalConv1dProblem, CausalConv1dArgs>& causal_conv1d_operator();

}  // namespace crest::ops
