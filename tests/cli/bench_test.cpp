#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "cli/program.h"

namespace crest::cli::testing {
namespace {

using Json = nlohmann::json;

TEST(Bench, JsonHasTheFieldsOfLlamaBenchAndTheMachinesLimits) {
  const Outcome o = shell("\"$crest\" bench -m \"$model\" -p 16 -n 3 -d 0,8 -r 2 -o json");
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const Json rows = Json::parse(o.out, nullptr, false);
  ASSERT_TRUE(rows.is_array() && rows.size() == 4u) << o.out;
  for (const Json& row : rows) {
    EXPECT_EQ(row["samples_ns"].size(), 2u);
    EXPECT_GT(row["avg_ts"], 0);
    EXPECT_GT(row["weight_gb_s"], 0);
    EXPECT_GT(row["gops"], 0);
    EXPECT_GT(row["machine_read_gb_s"], 0);
    EXPECT_GT(row["machine_fp32_gflops"], 0);
    EXPECT_GT(row["peak_rss_bytes"], 1 << 20);
  }
  // A token reads each weight that it meets once: less than the file, whose experts mostly sleep, more than a tenth of
  // it.
  const Json& decode = rows[1];
  const double bytes = double(decode["weight_gb_s"]) * double(decode["avg_ns"]) / int(decode["n_gen"]);
  EXPECT_LT(bytes, double(decode["model_size"]));
  EXPECT_GT(bytes, 0.1 * double(decode["model_size"]));
}

TEST(Bench, TableNamesTheLimits) {
  const Outcome o = shell("\"$crest\" bench -m \"$model\" -p 8 -n 0 -r 1");
  ASSERT_EQ(o.exit_code, 0) << o.err;
  EXPECT_NE(o.out.find("GB/s of "), std::string::npos) << o.out;
  EXPECT_NE(o.out.find(" pp8 |"), std::string::npos) << o.out;
}

TEST(Bench, Operators) {
  const Outcome o = shell("\"$crest\" bench --ops -t 1 -r 1 -o json");
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const Json rows = Json::parse(o.out, nullptr, false);
  ASSERT_TRUE(rows.is_array()) << o.out;
  std::set<std::string> operators;
  for (const Json& row : rows) {
    operators.insert(row["operator"]);
    EXPECT_NE(row["kernel"], "") << row;
    EXPECT_GT(row["ns"], 0);
  }
  EXPECT_TRUE(operators.contains("linear") && operators.contains("attention") && operators.contains("gated_delta"));
}

TEST(Bench, NeedsAModelOrOperators) {
  const Outcome o = shell("\"$crest\" bench -p 8");
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_NE(o.err.find("--ops"), std::string::npos) << o.err;
}

}  // namespace
}  // namespace crest::cli::testing
