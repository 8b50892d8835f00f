// Runs one assembled instruction on random registers and EXEC masks and compares the whole register file.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "assemble.h"
#include "machine.h"

namespace crest_sim_test {

/// Registers before execution, as one lane sees them.
class LaneView {
 public:
  LaneView(const std::vector<uint32_t>& rows, const crest_sim::Wave& wave, int lanes, int lane)
      : rows_(rows), wave_(wave), lanes_(lanes), lane_(lane) {}
  uint32_t v(int reg) const { return rows_[size_t(reg * lanes_ + lane_)]; }
  uint32_t s(int reg) const { return wave_.s[reg]; }
  int lane() const { return lane_; }

 private:
  const std::vector<uint32_t>& rows_;
  const crest_sim::Wave& wave_;
  int lanes_, lane_;
};

using Writes = std::vector<std::pair<int, uint32_t>>;  ///< register, value

struct LaneCheck {
  crest_sim::Arch arch = crest_sim::Arch::kGfx942;
  int lanes = 64;
  std::string text = {};
  std::function<uint32_t(std::mt19937&, int reg)> fill = nullptr;  ///< random contents of VGPRs; SGPRs get them too
  std::function<Writes(const LaneView&)> expected = nullptr;
  uint32_t mode = 0x3f0;  ///< nearest, denormals on, IEEE, DX10 clamp
  int cases = 10240;      ///< lanes
  int registers = 8;      ///< that are filled anew for each round: all that the instruction names
};

inline void run_check(const LaneCheck& check) {
  using namespace crest_sim;
  const auto& target = target_info(check.arch);
  const auto assembled = test::assemble(std::string(target.name), uint32_t(check.lanes), {check.text});
  ASSERT_FALSE(assembled.at(0).bytes.empty()) << check.text << " is not an instruction of " << target.name;
  const test::Decoded decoded = test::decode_one(target, uint32_t(check.lanes), assembled[0].bytes);
  ASSERT_TRUE(decoded.ok) << decoded.problem;
  test::Machine machine(check.arch, uint32_t(check.lanes));
  set_mode(machine.wave, check.mode);
  std::mt19937 random(uint32_t(std::hash<std::string>{}(check.text)) + uint32_t(check.lanes));
  int compared = 0;
  for (int round = 0; compared < check.cases; ++round) {
    for (int reg = 0; reg < check.registers; ++reg) {
      machine.wave.s[reg] = check.fill(random, reg);
      for (int lane = 0; lane < check.lanes; ++lane) machine.v(reg, lane) = check.fill(random, reg);
    }
    const uint64_t any = uint64_t(random()) << 32 | random();
    machine.set_exec(round % 3 == 0 ? ~uint64_t(0) : any);
    const uint64_t exec = machine.wave.exec();
    const auto before = machine.snapshot();
    auto want = before;
    for (int lane = 0; lane < check.lanes; ++lane) {
      if (!(exec >> lane & 1)) continue;
      for (const auto& [reg, value] : check.expected(LaneView(before, machine.wave, check.lanes, lane))) {
        want[size_t(reg * check.lanes + lane)] = value;
      }
      ++compared;
    }
    machine.run(decoded);
    const auto after = machine.snapshot();
    if (after == want) continue;
    for (size_t at = 0; at < after.size(); ++at) {
      ASSERT_EQ(after[at], want[at]) << check.text << " on " << target.name << " wave" << check.lanes << ", round "
                                     << round << ": v" << at / size_t(check.lanes) << " lane "
                                     << at % size_t(check.lanes) << std::hex << ", " << after[at] << " for "
                                     << want[at];
    }
  }
}

}  // namespace crest_sim_test
