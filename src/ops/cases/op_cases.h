#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/context.h"

namespace crest::ops {

/// One call of an operator with random inputs and guarded outputs.
class CaseInstance {
 public:
  virtual ~CaseInstance() = default;
  /// Poisons outputs and restores what is read and written.
  virtual void reset() = 0;
  virtual Status run(Context& context) = 0;
  /// All outputs, one after the other. An error when something outside them was written.
  virtual Result<std::vector<float>> outputs() const = 0;
};

/// A row of the table of operator cases: the same cases check every kernel against the reference and are timed by the
/// benchmark.
struct OpCase {
  std::string op;    // name in the registry
  std::string name;  // "tokens=7 dim=64"
  /// Largest error of a kernel against the reference, relative to the root mean square of the reference's outputs. It
  /// follows from the number formats and the length of the sums, not from what kernels happen to reach.
  double tolerance = 0;
  int64_t bytes = 0;  // read and written at least once
  int64_t flops = 0;
  std::function<std::unique_ptr<CaseInstance>()> make;
};

/// Small, awkward shapes for correctness: 1, 7, 63, 64, 65, primes.
std::vector<OpCase> correctness_cases();
/// Shapes of real models for timing.
std::vector<OpCase> benchmark_cases();

}  // namespace crest::ops
