#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ops/cases/case_data.h"
#include "ops/cases/op_cases.h"

namespace crest::ops {

using Cases = std::vector<OpCase>;

inline constexpr double kFp32Tolerance = 2e-6;  // a few roundings, sums of some hundred terms
inline constexpr int64_t kFloatBytes = sizeof(float);

/// Adds a case whose buffers `build(CaseData&)` makes from a seed that depends on its name.
template <typename Build>
void add_case(Cases& cases, std::string op, std::string name, double tolerance, int64_t bytes, int64_t flops,
              Build build) {
  const uint64_t seed = std::hash<std::string>{}(op + name);
  cases.push_back({std::move(op), std::move(name), tolerance, bytes, flops, [seed, build] {
                     auto data = std::make_unique<CaseData>(seed);
                     build(*data);
                     data->reset();
                     return std::unique_ptr<CaseInstance>(std::move(data));
                   }});
}

void add_linear_cases(Cases& cases, bool benchmark);
void add_elementwise_cases(Cases& cases, bool benchmark);
void add_attention_cases(Cases& cases, bool benchmark);
void add_linear_attention_cases(Cases& cases, bool benchmark);
void add_moe_cases(Cases& cases, bool benchmark);

}  // namespace crest::ops
