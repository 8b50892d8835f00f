#include "ops/registry.h"

#include "ops/support.h"

namespace crest::ops::testing {
namespace {

struct ToyProblem {
  int64_t size = 0;
};
struct ToyArgs {
  std::string* ran = nullptr;
};
template <char Name>
Status note(const ToyProblem&, const ToyArgs& a, Launch& launch) {
  *a.ran = std::string(1, Name) + std::to_string(launch.workspace.size());
  return {};
}
bool even(const ToyProblem& p) { return p.size % 2 == 0; }
int64_t bytes(const ToyProblem& p, int threads) { return p.size * threads; }

using ToyOperator = Operator<ToyProblem, ToyArgs>;

ToyOperator& toy() {
  static ToyOperator op(
      "toy", {{.name = "reference", .launch = note<'r'>},
              {.name = "zeta", .priority = 5, .supports = even, .launch = note<'z'>},
              {.name = "alpha", .priority = 5, .supports = even, .workspace = bytes, .launch = note<'a'>},
              {.name = "slow", .priority = 1, .launch = note<'s'>},
              {.name = "gpu", .backend = Backend::kHip, .arch = "gfx*", .priority = 9, .launch = note<'g'>}});
  return op;
}

std::string run(TestContext& test, int64_t size) {
  std::string ran;
  const auto status = toy().run({size}, {&ran}, test.context, "detail");
  return status.ok() ? ran : status.error().message;
}

TEST(Registry, TakesTheHighestPriorityAndBreaksTiesByName) {
  TestContext test(3);
  EXPECT_EQ(run(test, 10), "a30");  // workspace for 3 threads
  EXPECT_EQ(run(test, 11), "s0");
  const auto& entries = test.log.entries();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.begin()->first.kernel, "alpha");
  EXPECT_EQ(entries.begin()->first.detail, "detail");
  EXPECT_EQ(entries.begin()->first.reason, ChoiceReason::kPriority);
  EXPECT_EQ(entries.begin()->second.calls, 1);
}

TEST(Registry, ForcedNamesComeFirst) {
  TestContext test;
  test.overrides.force("toy", {"zeta", "reference"});
  EXPECT_EQ(run(test, 10), "z0");
  EXPECT_EQ(run(test, 11), "r0");  // zeta does not support it
  EXPECT_EQ(test.log.entries().begin()->first.reason, ChoiceReason::kForced);
}

TEST(Registry, UnknownForcedNameListsTheKernels) {
  TestContext test;
  test.overrides.force("toy", {"beta"});
  EXPECT_EQ(run(test, 10), "operator toy has no kernel 'beta'; its kernels are: gpu, alpha, zeta, slow, reference");
  test.overrides.force("toy", {"gpu"});
  EXPECT_EQ(run(test, 10), "kernel 'gpu' of operator toy needs gfx* (hip), which this machine does not offer");
}

TEST(Registry, CountsLaunches) {
  const auto calls = [](std::string_view name) {
    for (const auto& kernel : toy().kernels()) {
      if (kernel.name == name) return kernel.calls;
    }
    return uint64_t{0};
  };
  TestContext test;
  const uint64_t before = calls("slow");
  run(test, 1);
  run(test, 3);
  EXPECT_EQ(calls("slow"), before + 2);
}

TEST(Registry, EveryOperatorHasExactlyOneReferenceThatRunsAnywhere) {
  std::string previous;
  for (const OperatorBase* op : all_operators()) {
    EXPECT_LT(previous, op->name());
    previous = op->name();
    int references = 0;
    for (const auto& kernel : op->kernels()) {
      if (kernel.priority != kReferencePriority) continue;
      ++references;
      EXPECT_TRUE(kernel.available && kernel.arch == "*") << op->name();
    }
    EXPECT_EQ(references, 1) << op->name();
  }
}

TEST(Workspace, ReusesMemoryAndKeepsPointersOfOuterScopes) {
  Workspace workspace;
  {
    Workspace::Scope outer(workspace);
    float* a = workspace.allocate<float>(1000).value();
    std::fill(a, a + 1000, 1.0f);
    for (int round = 0; round < 3; ++round) {
      Workspace::Scope inner(workspace);
      float* b = workspace.allocate<float>(1 << 20).value();
      std::fill(b, b + (1 << 20), 2.0f);
      float* c = workspace.allocate<float>(3 << 20).value();
      std::fill(c, c + (3 << 20), 3.0f);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(c) % Workspace::kAlignment, 0u);
    }
    EXPECT_EQ(a[0], 1.0f);
    EXPECT_EQ(a[999], 1.0f);
  }
  // One block of the whole size has replaced the several.
  Workspace::Scope scope(workspace);
  float* first = workspace.allocate<float>(4 << 20).value();
  {
    Workspace::Scope inner(workspace);
    EXPECT_NE(workspace.allocate<float>(0).value(), nullptr);
  }
  EXPECT_NE(first, nullptr);
  EXPECT_GE(workspace.peak_bytes(), (4 << 22) + 4000);
}

TEST(Workspace, RefusesWhatDoesNotFit) {
  Workspace workspace;
  Workspace::Scope scope(workspace);
  const auto huge = workspace.allocate<double>(std::numeric_limits<int64_t>::max() / 2);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code, ErrorCode::kOutOfMemory);
  EXPECT_TRUE(workspace.allocate<float>(16).ok());
}

}  // namespace
}  // namespace crest::ops::testing
