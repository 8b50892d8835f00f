#pragma once

#include "ops/registry.h"
#include "ops/views.h"

namespace crest::ops {

/// x *= sigmoid(gate): the gated attention output of Qwen3-Next and Qwen 3.5. For the interleaved projection of those
/// models (per head head_dim queries, then head_dim gates) gate.data points at the first gate, head_stride is
/// 2*head_dim.
struct OutputGateProblem {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
};
struct OutputGateArgs {
  HeadsView gate{};
  MutableHeadsView x{};  // in place
};
Status check(const OutputGateProblem& problem, const OutputGateArgs& args);
Status attention_output_gate(const OutputGateProblem& problem, const OutputGateArgs& args, Context& context);
const Operator<OutputGateProblem, OutputGateArgs>& attention_output_gate_operator();

}  // namespace crest::ops
