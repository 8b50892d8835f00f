#pragma once

#include "ops/registry.h"

namespace crest::ops {

/// out = act(gate) * up (arXiv 2002.05202).
enum class GatedActivation : uint8_t {
  kSwiGlu,     // silu(x) = x * sigmoid(x)
  kGeGluTanh,  // gelu(x) = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
};
struct GatedActivationProblem {
  int64_t tokens = 0;
  int64_t dim = 0;
  GatedActivation kind = GatedActivation::kSwiGlu;
};
struct GatedActivationArgs {
  const float* gate = nullptr;  // [tokens, dim]
  const float* up = nullptr;    // [tokens, dim]
  int64_t gate_stride = 0;      // floats; 0: dim (2*dim when both come from one matrix)
  int64_t up_stride = 0;
  float* out = nullptr;  // [tokens, dim]; may be gate or up when their stride is dim
};
Status check(const GatedActivationProblem& problem, const GatedActivationArgs& args);
Status gated_activation(const GatedActivationProblem& problem, const GatedActivationArgs& args, Context& context);
const Operator<GatedActivationProblem, GatedActivationArgs>& gated_activation_operator();

/// out[i] = a[i] + b[i]: residual connections. out may be a or b.
struct AddProblem {
  int64_t count = 0;
};
struct AddArgs {
  const float* a = nullptr;
  const float* b = nullptr;
  float* out = nullptr;
};
Status check(const AddProblem& problem, const AddArgs& args);
Status add(const AddProblem& problem, const AddArgs& args, Context& context);
const Operator<AddProblem, AddArgs>& add_operator();

}  // namespace crest::ops
