#include "ops/cases/op_cases.h"

#include "ops/cases/internal.h"

namespace crest::ops {

Result<std::vector<float>> CaseData::outputs() const {
  std::vector<float> all;
  for (const auto& output : outputs_) {
    if (!output.buffer.intact()) return make_error(ErrorCode::kInternal, "memory around an output was written");
    const auto values = output.buffer.values();
    all.insert(all.end(), values.begin(), values.end());
  }
  for (const auto& input : inputs_) {
    if (!input.intact()) return make_error(ErrorCode::kInternal, "memory around an input was written");
  }
  return all;
}

namespace {

std::vector<OpCase> all_cases(bool benchmark) {
  Cases cases;
  add_linear_cases(cases, benchmark);
  add_elementwise_cases(cases, benchmark);
  add_attention_cases(cases, benchmark);
  add_linear_attention_cases(cases, benchmark);
  add_moe_cases(cases, benchmark);
  return cases;
}

}  // namespace

std::vector<OpCase> correctness_cases() { return all_cases(false); }
std::vector<OpCase> benchmark_cases() { return all_cases(true); }

}  // namespace crest::ops
