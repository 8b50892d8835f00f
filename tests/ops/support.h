#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "ops/cases/buffers.h"
#include "ops/ops.h"

namespace crest::ops::testing {

/// A context of its own with poisoned workspace.
struct TestContext {
  explicit TestContext(int threads = 2) : pool(threads), context{pool, workspace, &log, &overrides} {
    workspace.set_poison(true);
  }
  core::ThreadPool pool;
  Workspace workspace;
  KernelLog log;
  KernelOverrides overrides;
  Context context;
};

inline std::vector<float> random_normal(CaseRandom& random, int64_t count, float scale = 1.0f) {
  std::vector<float> values(static_cast<size_t>(count));
  for (auto& value : values) value = random.normal() * scale;
  return values;
}

#define EXPECT_OK(expression)                                           \
  do {                                                                  \
    const auto status_of_test = (expression);                           \
    EXPECT_TRUE(status_of_test.ok()) << status_of_test.error().message; \
  } while (false)

/// The message of a failed status, for EXPECT_THAT-like searches.
inline std::string message_of(const Status& status) { return status.ok() ? "(no error)" : status.error().message; }
inline void expect_error(const Status& status, std::string_view part) {
  EXPECT_NE(message_of(status).find(part), std::string::npos) << message_of(status) << "\nlacks: " << part;
}

/// |actual - expected| <= absolute + relative * |expected|, element by element; reports the worst.
inline void expect_close(const float* actual, const std::vector<double>& expected, double relative, double absolute,
                         const std::string& what) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::fabs(actual[i] - expected[i]);
    ASSERT_LE(error, absolute + relative * std::fabs(expected[i]))
        << what << ": element " << i << " is " << actual[i] << ", expected " << expected[i];
  }
}

/// Runs with 1, 2, 3 and 7 threads and demands the same bits. run fills its outputs and returns them.
inline void expect_same_for_any_threads(const std::function<std::vector<float>(Context&)>& run,
                                        const std::string& what) {
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 7}) {
    TestContext test(threads);
    const auto values = run(test.context);
    if (first.empty()) first = values;
    ASSERT_EQ(values.size(), first.size());
    EXPECT_EQ(std::memcmp(values.data(), first.data(), first.size() * sizeof(float)), 0)
        << what << ": " << threads << " threads give other bits than one";
  }
}

}  // namespace crest::ops::testing
