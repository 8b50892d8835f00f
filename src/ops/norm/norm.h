#pragma once

#include "ops/registry.h"
#include "ops/views.h"

namespace crest::ops {

enum class NormWeight : uint8_t {
  kPlain,        // y * w
  kZeroCentred,  // y * (1 + w)
};

/// RMSNorm (arXiv 1910.07467) of each vector of dim values: y = x / sqrt(mean(x^2) + eps), times the weight; with a
/// gate, times silu(gate) after the weight (the output norm of gated DeltaNet). The sum of squares is in double.
/// heads > 1 is the per-head form: [tokens, heads, dim] with one weight vector for all heads. out may be x.
struct RmsNormProblem {
  int64_t tokens = 0;
  int64_t heads = 1;
  int64_t dim = 0;
  float eps = 1e-6f;
  NormWeight weight = NormWeight::kPlain;
  bool gated = false;
};
struct RmsNormArgs {
  HeadsView x{};
  const float* weight = nullptr;  // [dim], null: ones (zeros when zero-centred)
  HeadsView gate{};               // when gated
  MutableHeadsView out{};
};
Status check(const RmsNormProblem& problem, const RmsNormArgs& args);
Status rms_norm(const RmsNormProblem& problem, const RmsNormArgs& args, Context& context);
const Operator<RmsNormProblem, RmsNormArgs>& rms_norm_operator();

}  // namespace crest::ops
