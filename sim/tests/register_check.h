// Runs assembled instructions on random registers and EXEC masks; a reference sees all registers of all lanes and says
// what one lane's results are. Every other register must stay as it was.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "assemble.h"
#include "machine.h"
#include "valu_support.h"

namespace crest_sim::test {

/// Registers before the instruction.
struct Before {
  const std::vector<uint32_t>& rows;
  const Wave& wave;
  uint32_t lanes;
  uint64_t exec;
  uint32_t v(int reg, uint32_t lane) const { return rows[size_t(reg) * lanes + lane]; }
  uint64_t v64(int reg, uint32_t lane) const { return uint64_t(v(reg + 1, lane)) << 32 | v(reg, lane); }
  uint32_t s(int reg) const { return wave.s[reg]; }
};

using Put = std::function<void(int reg, uint32_t value)>;
using Expect = std::function<void(const Before&, uint32_t lane, const Put&)>;

/// When two results are the same.
enum class Same { kExact, kFloat, kHalfPair, kDouble };  // floats: NaNs are equal

inline bool half_nan(uint32_t x) { return (x & 0x7fff) > 0x7c00; }
inline bool is_same(uint32_t got, uint32_t want, Same rule) {
  if (got == want) return true;
  if (rule == Same::kFloat) return std::isnan(f32(got)) && std::isnan(f32(want));
  if (rule != Same::kHalfPair) return false;
  auto half = [](uint32_t a, uint32_t b) { return a == b || (half_nan(a) && half_nan(b)); };
  return half(got & 0xffff, want & 0xffff) && half(got >> 16, want >> 16);
}

class RegisterCheck {
 public:
  struct Line {
    std::string text;
    Expect expect;
    Same same = Same::kExact;
    int cases = 1024;
  };

  RegisterCheck(Arch arch, uint32_t lanes) : arch_(arch), lanes_(lanes) {}
  bool cdna() const { return target_info(arch_).cdna; }
  void add(Line line) { lines_.push_back(std::move(line)); }
  /// Lines that the assembler refuses for the target are skipped if `optional`; returns how many ran.
  int run(const std::function<uint32_t(std::mt19937_64&)>& value, bool optional = false, uint32_t mode = 0x3f0) {
    std::vector<std::string> texts;
    for (const Line& l : lines_) texts.push_back(l.text);
    auto assembled = assemble(std::string(target_info(arch_).name), lanes_, texts);
    int ran = 0;
    for (size_t k = 0; k < lines_.size(); ++k) {
      if (assembled[k].bytes.empty()) {
        EXPECT_TRUE(optional) << lines_[k].text << " is not an instruction of " << target_info(arch_).name;
        continue;
      }
      Decoded d = decode_one(target_info(arch_), lanes_, assembled[k].bytes);
      EXPECT_TRUE(d.ok) << lines_[k].text << ": " << d.problem;
      if (d.ok) check(lines_[k], d, value, mode), ++ran;
      if (::testing::Test::HasFatalFailure()) break;
    }
    lines_.clear();
    return ran;
  }
  std::mt19937_64 random{5};

 private:
  void check(const Line& line, const Decoded& d, const std::function<uint32_t(std::mt19937_64&)>& value,
             uint32_t mode) {
    constexpr int kRegisters = 24, kScalars = 16;
    Machine m(arch_, lanes_);
    set_mode(m.wave, mode);
    for (int compared = 0, round = 0; compared < line.cases; ++round) {
      for (int r = 0; r < kRegisters; ++r)
        for (uint32_t l = 0; l < lanes_; ++l) m.v(r, int(l)) = value(random);
      for (int r = 0; r < kScalars; ++r) m.wave.s[r] = value(random);
      m.set_exec(round % 3 == 0 ? ~uint64_t(0) : random());
      auto before = m.snapshot();
      auto want = before;
      Before view{before, m.wave, lanes_, m.wave.exec()};
      for (uint32_t l = 0; l < lanes_; ++l) {
        if (!(view.exec >> l & 1)) continue;
        line.expect(view, l, [&](int reg, uint32_t x) { want[size_t(reg) * lanes_ + l] = x; });
        ++compared;
      }
      m.run(d);
      auto after = m.snapshot();
      for (size_t at = 0; at < after.size(); ++at)
        ASSERT_TRUE(is_same(after[at], want[at], line.same))
            << line.text << " on " << target_info(arch_).name << " wave" << lanes_ << ": v" << at / lanes_ << " lane "
            << at % lanes_ << std::hex << ", " << after[at] << " for " << want[at];
    }
  }

  Arch arch_;
  uint32_t lanes_;
  std::vector<Line> lines_;
};

/// Random words that look like pairs of f16 values about half of the time, with special values among them.
inline uint32_t random_word(std::mt19937_64& random) {
  static const uint32_t kSpecial[] = {0,          0x80008000, 0x3c003c00, 0x7c00fc00, 0x7e007e00, 0x3f800000,
                                      0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00010001, 0x00000001,
                                      0x7fffffff, 0x80000000, 0xffffffff, 0x7bff7bff};
  uint64_t x = random();
  switch (x >> 60) {
    case 0:
      return kSpecial[x & 15];
    case 1:
    case 2:
    case 3:
    case 4: {  // f32 of moderate size
      return uint32_t(x & 0x807fffff) | uint32_t(110 + (x >> 32) % 35) << 23;
    }
    case 5:
    case 6:
    case 7:
    case 8: {  // two f16 of moderate size
      auto half = [](uint64_t y) { return uint32_t(y & 0x83ff) | uint32_t(10 + (y >> 16) % 12) << 10; };
      return half(x) | half(x >> 32) << 16;
    }
    default:
      return uint32_t(x);
  }
}

struct MachineKind {
  Arch arch;
  uint32_t lanes;
};
inline const MachineKind kMachines[] = {
    {Arch::kGfx942, 64}, {Arch::kGfx950, 64}, {Arch::kGfx1100, 32}, {Arch::kGfx1100, 64}, {Arch::kGfx1151, 32}};
inline std::string machine_name(const ::testing::TestParamInfo<MachineKind>& info) {
  return std::string(target_info(info.param.arch).name) + "_w" + std::to_string(info.param.lanes);
}

}  // namespace crest_sim::test
