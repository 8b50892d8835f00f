#pragma once

#include "ops/registry.h"
#include "ops/weight.h"

namespace crest::ops {

/// out[t] = R(x[t] * channel_scales), ParoQuant's input transform (see Rotation), in fp32. out may be x.
struct RotationProblem {
  int64_t tokens = 0;
  int64_t cols = 0;
  int64_t rounds = 0;
};
struct RotationArgs {
  const float* x = nullptr;  // [tokens, cols]
  int64_t x_stride = 0;      // floats; 0: cols
  const Rotation* rotation = nullptr;
  float* out = nullptr;  // [tokens, cols]
};
Status check(const RotationProblem& problem, const RotationArgs& args);
Status rotate(const RotationProblem& problem, const RotationArgs& args, Context& context);
const Operator<RotationProblem, RotationArgs>& rotate_operator();

}  // namespace crest::ops
