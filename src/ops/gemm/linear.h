#pragma once

#include <span>

#include "ops/quant/activations.h"
#include "ops/registry.h"
#include "ops/weight.h"

namespace crest::ops {

/// One weight that reads the input: out[i, o] = sum_c x[i, c] * w[o, c] + bias[o] (+ out[i, o] when accumulate).
struct LinearTarget {
  const Weight* weight = nullptr;  // [out_features, in_features], experts = 1
  float* out = nullptr;            // [tokens, out_features], fp32
  int64_t out_stride = 0;          // floats from token to token; 0: out_features
  const float* bias = nullptr;     // [out_features] or null
  bool accumulate = false;         // add to what out holds (residual connections)
};

/// fp32 input of one or several weights. Activations are quantised, and rotated for ParoQuant, once for all the weights
/// that want the same form.
struct LinearInput {
  const float* x = nullptr;  // [x_rows, in_features]
  int64_t tokens = 0;        // number of output rows; 0 does nothing
  int64_t in_features = 0;
  int64_t stride = 0;             // floats from row to row of x; 0: in_features
  int64_t x_rows = 0;             // rows of x; 0: tokens
  const int32_t* rows = nullptr;  // output row i reads x row rows[i]; null: row i (logit_rows pick the last tokens)
};

/// Linear layers of any weight type: every type of tensor::DType but the integers. Weights of one call may differ in
/// type and size. Errors: sizes that do not match (named), types without a kernel.
Status linear(const LinearInput& input, std::span<const LinearTarget> targets, Context& context);
Status linear(const LinearInput& input, const LinearTarget& target, Context& context);

/// The same for a stack of experts: input row rows[i] (i in [offsets[e], offsets[e+1])) meets the matrix of expert e
/// and gives output row i. This is the grouped GEMM of mixture-of-experts layers.
struct ExpertGroups {
  int64_t experts = 0;
  const int32_t* offsets = nullptr;  // [experts + 1], not decreasing, from 0 to tokens of the input
};
Status grouped_linear(const LinearInput& input, const ExpertGroups& groups, std::span<const LinearTarget> targets,
                      Context& context);

// ---- what a kernel sees -------------------------------------------------------------------------------------------

/// Key of the choice. tokens is a hint of size only: the results of a kernel for one token do not depend on it.
struct LinearProblem {
  int64_t tokens = 0;  // of one expert, on average, in the grouped form
  int64_t rows = 0;    // out_features
  int64_t cols = 0;    // in_features
  tensor::DType dtype = tensor::DType::kF32;
  WeightLayout layout = WeightLayout::kRows;
  int64_t experts = 1;
};

/// A piece of work for one thread: rows [row_begin, row_end) of one expert's matrix for `tokens` activation rows.
/// The driver splits the work; a kernel neither starts threads nor sees other experts.
struct LinearArgs {
  const Activations* x = nullptr;
  const int32_t* x_rows = nullptr;  // activation row of token i; null: first_x_row + i
  int64_t first_x_row = 0;
  int64_t tokens = 0;
  const Weight* weight = nullptr;
  int64_t expert = 0;
  int64_t row_begin = 0, row_end = 0;
  const float* bias = nullptr;
  float* out = nullptr;  // row of token 0
  int64_t out_stride = 0;
  bool accumulate = false;

  int64_t x_row(int64_t token) const { return x_rows ? x_rows[token] : first_x_row + token; }
};

/// What the driver needs to feed a kernel. The kernel's workspace is that of one thread.
struct LinearTraits {
  ActivationFormat activations = ActivationFormat::kF32;
  int64_t row_grain = 1;  // pieces begin at multiples of it
};
using LinearKernel = Kernel<LinearProblem, LinearArgs, LinearTraits>;
const Operator<LinearProblem, LinearArgs, LinearTraits>& linear_operator();

}  // namespace crest::ops
