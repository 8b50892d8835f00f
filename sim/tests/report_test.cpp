// The fidelity and coverage report.
#include <algorithm>

#include "crest_sim/profile.h"
#include "kernel_support.h"

namespace crest_sim::test {
namespace {

class Report : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    load("report");
  }
  static const MnemonicUse* find(const KernelUse& k, std::string_view name) {
    for (const MnemonicUse& m : k.mnemonics)
      if (m.name == name) return &m;
    return nullptr;
  }
  KernelUse use_of(const Profile& profile, std::string_view kernel) {
    for (KernelUse& k : profile.report().kernels)
      if (k.kernel == kernel) return k;
    ADD_FAILURE() << kernel;
    return {};
  }
  std::vector<float> positive(size_t count) {
    std::vector<float> v(count);
    for (auto& x : v) x = 2 + uniform();
    return v;
  }
};

TEST_P(Report, CountsEveryInstruction) {
  Profile profile;
  config.observers = {&profile};
  std::vector<int> in(64, 5);
  launch("two_ways", {3}, {64}, Arguments().add(upload(in)).add(upload(in)).add(1));
  uint64_t executed = result.wave_instructions;
  KernelUse k = use_of(profile, "two_ways");
  uint64_t waves = GetParam().wave64() ? 3 : 6;
  EXPECT_EQ(k.launches, 1u);
  EXPECT_EQ(k.workgroups, 3u);
  EXPECT_EQ(k.waves, waves);
  EXPECT_EQ(k.wave_instructions, executed);
  uint64_t by_mnemonic = 0, by_place = 0;
  for (const auto& m : k.mnemonics) by_mnemonic += m.count;
  for (const auto& i : k.instructions) {
    by_place += i.count;
    EXPECT_TRUE(i.count == 0 || i.count == waves) << i.disassembly;
    EXPECT_EQ(i.active_lanes, i.count * 64 / (GetParam().wave64() ? 1 : 2)) << i.disassembly;
  }
  EXPECT_EQ(by_mnemonic, executed);
  EXPECT_EQ(by_place, executed);
  EXPECT_EQ(find(k, "s_endpgm")->count, waves);
  EXPECT_EQ(k.count(Fidelity::kExact), executed);
  config.threads = 3;
  launch("two_ways", {3}, {64}, Arguments().add(upload(in)).add(upload(in)).add(1));
  EXPECT_EQ(use_of(profile, "two_ways").wave_instructions, 2 * executed);
  EXPECT_NE(profile.report().to_text().find("two_ways"), std::string::npos);
  EXPECT_NE(profile.report().to_json(true).find("\"listing\""), std::string::npos);
}

TEST_P(Report, CoversSourceLines) {
  Profile profile;
  config.observers = {&profile};
  std::vector<int> in(64, 5);
  launch("two_ways", {1}, {64}, Arguments().add(upload(in)).add(upload(in)).add(1));
  KernelUse one = use_of(profile, "two_ways");
  ASSERT_FALSE(one.lines.empty());
  for (const LineUse& l : one.lines) EXPECT_TRUE(l.file.ends_with("report.hip") || l.file.ends_with("gpu.h")) << l.file;
  EXPECT_LE(one.covered_lines(), one.lines.size());
  launch("two_ways", {1}, {64}, Arguments().add(upload(in)).add(upload(in)).add(101));
  KernelUse both = use_of(profile, "two_ways");
  EXPECT_GE(both.covered_lines(), one.covered_lines());
  EXPECT_EQ(both.executed_instructions(), both.instructions.size());
  EXPECT_EQ(both.covered_lines(), both.lines.size());
}

TEST_P(Report, FollowsApproximateResults) {
  Profile profile(ProfileOptions{.follow_approximate = true, .source_lines = false});
  config.observers = {&profile};
  float *x = upload(positive(64)), *y = upload(std::vector<float>(64)), *z = upload(std::vector<float>(64));
  auto one = [&](const char* kernel, const char* mnemonic) {
    Profile own(ProfileOptions{.follow_approximate = true, .source_lines = false});
    config.observers = {&own};
    launch(kernel, {1}, {64}, Arguments().add(x).add(y));
    KernelUse k = use_of(own, kernel);
    const MnemonicUse* m = find(k, mnemonic);
    EXPECT_NE(m, nullptr) << mnemonic;
    return m ? *m : MnemonicUse{};
  };
  MnemonicUse data = one("only_data", "v_exp_f32");
  EXPECT_EQ(data.fidelity, Fidelity::kApproximate);
  EXPECT_FALSE(data.reached_address);
  EXPECT_FALSE(data.reached_branch);
  MnemonicUse address = one("to_address", "v_exp_f32");
  EXPECT_TRUE(address.reached_address);
  EXPECT_FALSE(address.reached_branch);
  MnemonicUse branch = one("to_branch", "v_log_f32");
  EXPECT_TRUE(branch.reached_branch);
  EXPECT_FALSE(branch.reached_address);
  // From one kernel to the next.
  config.observers = {&profile};
  launch("first_half", {1}, {64}, Arguments().add(x).add(y));
  EXPECT_FALSE(find(use_of(profile, "first_half"), "v_rsq_f32")->reached_address);
  launch("second_half", {1}, {64}, Arguments().add(y).add(z));
  EXPECT_TRUE(find(use_of(profile, "first_half"), "v_rsq_f32")->reached_address);
}

INSTANTIATE_TEST_SUITE_P(Targets, Report, ::testing::ValuesIn(kAllTargets), target_name);

}  // namespace
}  // namespace crest_sim::test
