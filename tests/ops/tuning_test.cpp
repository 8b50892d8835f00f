#include "ops/tuning.h"

#include "ops/support.h"

namespace crest::ops::testing {
namespace {

constexpr std::string_view kHeader = "arch,cu,dtype,m,n,variant,params,us,tflops,gbps,err,source\n";

std::string parse_error(const std::string& text) {
  const auto table = TuningTable::parse(text, "linear.csv");
  return table.ok() ? "(no error)" : table.error().message;
}

std::vector<std::string> variants(const TuningTable& table, int64_t m, int64_t cu = 8) {
  return table.variants("avx2", cu, {"Q4_K", {tuned_rows("m", m), tuned_exact("n", 64)}});
}

TEST(TuningTable, LooksUpExactThenRoundedThenNothing) {
  const auto table = TuningTable::parse(std::string(kHeader) +
                                            "# measured\n"
                                            "avx2,0,Q4_K,7,64,exact,,1,1,1,0,here\n"
                                            "avx2,0,Q4_K,16,64,sixteen,,1,1,1,0,here\r\n"
                                            "avx2,0,Q4_K,512,64,power,,1,1,1,0,here\n"
                                            "avx2,8,Q4_K,300,64,eight threads,,1,1,1,0,here\n"
                                            "avx512,0,Q4_K,7,64,other machine,,1,1,1,0,here\n",
                                        "linear.csv");
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->rows(), 5u);
  EXPECT_EQ(variants(*table, 7), (std::vector<std::string>{"exact", "sixteen"}));  // nearest first
  EXPECT_EQ(variants(*table, 3), (std::vector<std::string>{"sixteen"}));
  EXPECT_EQ(variants(*table, 300), (std::vector<std::string>{"eight threads", "power"}));
  EXPECT_EQ(variants(*table, 300, 4), (std::vector<std::string>{"power"}));
  EXPECT_TRUE(variants(*table, 17).empty());
  EXPECT_TRUE(table->variants("avx2", 0, {"Q8_0", {tuned_rows("m", 7), tuned_exact("n", 64)}}).empty());
  EXPECT_TRUE(table->variants("avx2", 0, {"Q4_K", {tuned_rows("m", 7)}}).empty());  // another key than the file's
}

TEST(TuningKey, GridOfRows) {
  const std::pair<int64_t, int64_t> expected[] = {{1, 16},    {16, 16},     {17, 32},    {256, 256},
                                                  {257, 288}, {1025, 1088}, {4097, 4224}};
  for (const auto& [value, grid] : expected) EXPECT_EQ(tuned_rows("m", value).rounded[0], grid) << value;
  EXPECT_EQ(tuned_rows("m", 4097).rounded[1], 8192);
  EXPECT_EQ(tuned_power("kv_len", 0).rounded[0], 1);
}

TEST(TuningTable, NamesFileLineAndField) {
  const std::string header(kHeader);
  EXPECT_EQ(parse_error(header), "(no error)");
  EXPECT_NE(parse_error("").find("linear.csv: no line with column names"), std::string::npos);
  EXPECT_NE(parse_error("arch,cu,m,variant\n").find("linear.csv:1: columns are"), std::string::npos);
  EXPECT_NE(parse_error(header + "avx2,0,Q4_K,7,64,a,,1,1,1,0\n").find("linear.csv:2: 11 fields, allowed: 12"),
            std::string::npos);
  EXPECT_NE(parse_error(header + "avx2,x,Q4_K,7,64,a,,1,1,1,0,s\n").find("cu is 'x'"), std::string::npos);
  EXPECT_NE(parse_error(header + "avx2,0,Q4_K,-7,64,a,,1,1,1,0,s\n").find("m is '-7'"), std::string::npos);
  EXPECT_NE(parse_error(header + "avx2,0,Q4_K,99999999999999999999,64,a,,1,1,1,0,s\n").find("m is"), std::string::npos);
  EXPECT_NE(parse_error(header + "avx2,0,Q4_K,7,64,,,1,1,1,0,s\n").find("variant is empty"), std::string::npos);
  const std::string row = "avx2,0,Q4_K,7,64,a,,1,1,1,0,s\n";
  EXPECT_NE(parse_error(header + row + row).find("linear.csv:3: a second row for the same key"), std::string::npos);
}

struct ToyProblem {
  int64_t size = 0;
};
struct ToyArgs {};
bool even(const ToyProblem& p) { return p.size % 2 == 0; }
Status nothing(const ToyProblem&, const ToyArgs&, Launch&) { return {}; }

// A row whose kernel does not support the true problem is passed over, and forced names come before the table.
TEST(TuningTable, StandsBetweenForcedNamesAndPriority) {
  const Operator<ToyProblem, ToyArgs> op(
      "toy",
      {{.name = "reference", .launch = nothing},
       {.name = "fast", .priority = 5, .launch = nothing},
       {.name = "even", .priority = 1, .supports = even, .launch = nothing}},
      [](const ToyProblem& p) { return TuningKey{"F32", {tuned_power("size", p.size)}}; });
  const std::string arch(cpu_arch());
  TuningTables tables;
  tables.add("toy", TuningTable::parse("arch,cu,dtype,size,variant,params,us,tflops,gbps,err,source\n" + arch +
                                           ",0,F32,4,even,,1,1,1,0,s\n" + arch + ",0,F32,8,no-such-kernel,,1,1,1,0,s\n",
                                       "toy.csv")
                        .value());
  TestContext test;
  test.context.tuning = &tables;
  const auto choice = [&](int64_t size) { return op.choose({size}, test.context).value(); };
  EXPECT_EQ(choice(4).kernel->name, "even");
  EXPECT_EQ(choice(4).reason, ChoiceReason::kTuned);
  EXPECT_EQ(choice(3).kernel->name, "fast");  // the row of 4 names a kernel that cannot
  EXPECT_EQ(choice(8).kernel->name, "fast");
  EXPECT_EQ(choice(100).reason, ChoiceReason::kPriority);
  test.overrides.force("toy", {"reference"});
  EXPECT_EQ(choice(4).reason, ChoiceReason::kForced);
}

}  // namespace
}  // namespace crest::ops::testing
