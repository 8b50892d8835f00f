#include "ops/probe/machine_peaks.h"

#include <gtest/gtest.h>

#include "core/cpu_features.h"

namespace crest::ops::testing {
namespace {

TEST(MachinePeaks, AreThoseOfAProcessor) {
  core::ThreadPool pool(2);
  const auto peaks = measure_machine_peaks(pool);
  ASSERT_TRUE(peaks.ok());
  EXPECT_GT(peaks->read_gb_s, 0.1);
  EXPECT_LT(peaks->read_gb_s, 5000);
  EXPECT_GT(peaks->fp32_gflops, 0.5);
  EXPECT_LT(peaks->fp32_gflops, 5000);
  EXPECT_EQ(peaks->int8_gops > 0, core::cpu_features().avx2);
}

}  // namespace
}  // namespace crest::ops::testing
