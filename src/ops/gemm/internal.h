#pragma once

#include "ops/gemm/linear.h"

namespace crest::ops {

LinearKernel linear_reference();

/// Work of one call, cut by rows of the weights: piece p of `pieces` is a range of rows in one or more segments. The
/// cut follows the cost of rows; results do not depend on it.
struct LinearSegment {
  const Operator<LinearProblem, LinearArgs, LinearTraits>::KernelType* kernel = nullptr;
  LinearProblem problem;
  LinearArgs args;    // row_begin and row_end are set for each piece
  int64_t units = 0;  // of row_grain rows
  int64_t unit_cost = 1;
  int64_t cost_begin = 0;  // costs of the segments before
};
/// Runs the part of the segments whose costs lie in [begin, end).
Status run_cost_range(std::span<const LinearSegment> segments, int64_t begin, int64_t end, Launch& launch);

}  // namespace crest::ops
