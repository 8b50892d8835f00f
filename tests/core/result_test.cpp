#include "core/result.h"

#include <gtest/gtest.h>

namespace crest {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return make_error(ErrorCode::kInvalidArgument, "value is {}, expected an even number", value);
  return value / 2;
}

Result<int> quarter(int value) {
  CREST_TRY(const int once, half(value));
  CREST_TRY(const int twice, half(once));
  return twice;
}

TEST(Result, CarriesValuesAndErrors) {
  EXPECT_EQ(*quarter(12), 3);
  const auto failed = quarter(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(failed.error().message, "value is 3, expected an even number");
}

TEST(Result, ContextGoesInFront) {
  Error error = std::move(half(1)).error();
  EXPECT_EQ(std::move(error).with_context("a.gguf").message, "a.gguf: value is 1, expected an even number");
}

TEST(ResultDeathTest, ReadingAFailedResultAborts) { EXPECT_DEATH((void)half(1).value(), "internal error"); }

}  // namespace
}  // namespace crest
