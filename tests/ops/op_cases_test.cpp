// The table of operator cases: every kernel that this machine can run against the reference.
#include "ops/cases/op_cases.h"

#include <iostream>
#include <map>
#include <set>

#include "ops/support.h"

namespace crest::ops::testing {
namespace {

const OperatorBase& operator_named(const std::string& name) {
  for (const OperatorBase* op : all_operators()) {
    if (op->name() == name) return *op;
  }
  ADD_FAILURE() << "no operator " << name;
  return *all_operators().front();
}

/// Outputs under a forced kernel, or nothing when the kernel does not support the problem and another one ran.
std::vector<float> run_forced(CaseInstance& instance, const std::string& op, const std::string& kernel, int threads) {
  TestContext test(threads);
  test.overrides.force(op, {kernel});
  instance.reset();
  const auto status = instance.run(test.context);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
  for (const auto& [key, entry] : test.log.entries()) {
    if (key.op == op && key.kernel != kernel) return {};
  }
  auto outputs = instance.outputs();
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().message);
  return outputs.ok() ? std::move(*outputs) : std::vector<float>{};
}

double root_mean_square(const std::vector<float>& values) {
  double sum = 0;
  int64_t finite = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    sum += double{value} * value;
    ++finite;
  }
  return std::sqrt(sum / static_cast<double>(std::max<int64_t>(1, finite)));
}

void compare(const OpCase& op_case, const std::string& kernel, const std::vector<float>& actual,
             const std::vector<float>& expected) {
  const double limit = op_case.tolerance * root_mean_square(expected);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(expected[i])) {
      // Only a query that sees no key has such an output: LSE = -infinity. A NaN is memory that was never written.
      ASSERT_TRUE(expected[i] == -INFINITY && actual[i] == -INFINITY)
          << kernel << ": " << op_case.name << " [" << i << "]";
      continue;
    }
    ASSERT_LE(std::fabs(double{actual[i]} - expected[i]), limit + op_case.tolerance * std::fabs(expected[i]))
        << kernel << ": " << op_case.name << " [" << i << "] is " << actual[i] << ", reference " << expected[i];
  }
}

std::vector<std::string> operators_with_cases() {
  std::set<std::string> names;
  for (const auto& op_case : correctness_cases()) names.insert(op_case.op);
  return {names.begin(), names.end()};
}

class OpCases : public ::testing::TestWithParam<std::string> {};

TEST_P(OpCases, EveryKernelAgreesWithTheReferenceForAnyThreads) {
  const auto& op = operator_named(GetParam());
  std::string reference;
  for (const auto& kernel : op.kernels()) {
    if (kernel.priority == kReferencePriority) reference = kernel.name;
  }
  std::map<std::string, int> tried;
  for (const auto& op_case : correctness_cases()) {
    if (op_case.op != GetParam()) continue;
    const auto instance = op_case.make();
    const auto expected = run_forced(*instance, op_case.op, reference, 1);
    ASSERT_FALSE(expected.empty()) << op_case.name;
    for (const auto& kernel : op.kernels()) {
      if (!kernel.available) continue;
      const auto single = run_forced(*instance, op_case.op, kernel.name, 1);
      if (single.empty()) continue;
      ++tried[kernel.name];
      ASSERT_NO_FATAL_FAILURE(compare(op_case, kernel.name, single, expected));
      for (const int threads : {2, 3, 7}) {
        const auto many = run_forced(*instance, op_case.op, kernel.name, threads);
        ASSERT_EQ(std::memcmp(many.data(), single.data(), single.size() * sizeof(float)), 0)
            << kernel.name << ": " << op_case.name << " with " << threads << " threads differs from one";
      }
    }
  }
  std::string not_run;
  for (const auto& kernel : op.kernels()) {
    if (!kernel.available) {
      not_run += " " + kernel.name;
      continue;
    }
    EXPECT_GT(tried[kernel.name], 0) << "no case of " << op.name() << " reaches kernel " << kernel.name;
  }
  if (!not_run.empty()) std::cout << "not run, for lack of processor features:" << not_run << "\n";
}

INSTANTIATE_TEST_SUITE_P(Operators, OpCases, ::testing::ValuesIn(operators_with_cases()),
                         [](const auto& info) { return info.param; });

TEST(OpCaseTable, ReachesEveryOperator) {
  const auto names = operators_with_cases();
  for (const OperatorBase* op : all_operators()) {
    if (op->name() == "kv_read") continue;  // part of the cases of kv_write
    EXPECT_NE(std::find(names.begin(), names.end(), op->name()), names.end()) << op->name();
  }
}

}  // namespace
}  // namespace crest::ops::testing
