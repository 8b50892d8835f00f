// The checks: deliberately broken kernels are each found and named at the right place, and their repaired twins are
// not. (The correct kernels of basic_kernels_test, launch_test and matrix_kernels_test run with the checks on as well.)
#include <algorithm>

#include "kernel_support.h"

namespace crest_sim::test {
namespace {

enum Where { kEverywhere, kCdna, kRdna, kOnlyGfx1100 };

struct Broken {
  const char* name;
  CheckKind kind;
  Where where = kEverywhere;
  uint32_t waves = 1;
  bool has_other = false;  ///< the report also names the instruction at from_NAME
};

const Broken kBroken[] = {
    {"wait_load", CheckKind::kMissingWait},
    {"wait_weak", CheckKind::kMissingWait},
    {"wait_store", CheckKind::kMissingWait},
    {"wait_lds", CheckKind::kMissingWait},
    {"wait_scalar", CheckKind::kMissingWait},
    {"wait_overwrite", CheckKind::kMissingWait},
    {"lds_race", CheckKind::kLdsRace, kEverywhere, 2, true},
    {"lds_write_race", CheckKind::kLdsRace, kEverywhere, 2},
    {"lds_late", CheckKind::kMissingWait, kEverywhere, 2, true},
    {"lds_dma", CheckKind::kMissingWait, kCdna, 1, true},
    {"uninitialised_vgpr", CheckKind::kUninitialised},
    {"uninitialised_sgpr", CheckKind::kUninitialised},
    {"uninitialised_mask", CheckKind::kUninitialised},
    {"uninitialised_lds", CheckKind::kUninitialised},
    {"barrier_two", CheckKind::kBarrierPairs, kEverywhere, 2, true},
    {"barrier_ended", CheckKind::kDivergentBarrier, kEverywhere, 2},
    {"misaligned", CheckKind::kMisalignedLds},
    {"buffer_bounds", CheckKind::kBufferBounds, kEverywhere, 2},
    {"hazard_matrix_result", CheckKind::kHazard, kCdna, 1, true},
    {"hazard_matrix_chain", CheckKind::kHazard, kCdna, 1},
    {"hazard_matrix_operand", CheckKind::kHazard, kCdna, 1, true},
    {"hazard_scalar_address", CheckKind::kHazard, kCdna, 1, true},
    {"hazard_scalar_operand", CheckKind::kHazard, kCdna, 1, true},
    {"hazard_dpp", CheckKind::kHazard, kCdna, 1, true},
    {"hazard_lane", CheckKind::kHazard, kCdna, 1, true},
    {"hazard_transcendental", CheckKind::kHazard, kCdna, 1, true},
    {"hazard_transcendental", CheckKind::kHazard, kOnlyGfx1100, 1, true},
    {"hazard_wmma", CheckKind::kHazard, kRdna, 1, true},
};

std::string all_of(const std::vector<CheckReport>& reports) {
  std::string out;
  for (const CheckReport& r : reports) out += r.to_string() + "\n";
  return out;
}

class BrokenAssembly : public KernelTest {
 protected:
  std::vector<CheckReport> reports_;
  void SetUp() override {
    KernelTest::SetUp();
    check(CheckOptions::standard());
    load("broken_asm");
  }
  uint64_t label(const std::string& name) {
    uint64_t address = module_->symbol_address(name);
    EXPECT_NE(address, 0u) << name;
    return address - module_->image_base() - module_->object().code(wave()).section_address;
  }
  uint32_t wave() const { return GetParam().wave64() ? 64 : 32; }
  bool applies(Where where) const {
    bool cdna = GetParam().name.starts_with("gfx9");
    return where == kEverywhere || (where == kCdna && cdna) || (where == kRdna && !cdna) ||
           (where == kOnlyGfx1100 && GetParam().name == "gfx1100");
  }
  void run(const std::string& kernel, uint32_t waves) {
    config.grid = {1};
    // 64 work-items for the buffer test, whose range ends there.
    config.block = {waves == 2 && kernel.starts_with("buffer") ? 64 : waves * wave()};
    uint32_t* out = upload(std::vector<uint32_t>(256));
    const uint32_t* in = upload(std::vector<uint32_t>(256, 5));
    result = device_->launch(*module_, kernel, config, Arguments().add(out).add(in).bytes());
    reports_ = checker_->take_reports();
    ASSERT_TRUE(result.ok) << result.fault.to_string();
  }
};

TEST_P(BrokenAssembly, EachFaultIsNamed) {
  check(CheckOptions::all());
  for (const Broken& b : kBroken) {
    if (!applies(b.where)) continue;
    SCOPED_TRACE(b.name);
    run(b.name, b.waves);
    ASSERT_FALSE(reports_.empty());
    bool found = false;
    uint64_t at = label(std::string("at_") + b.name);
    for (const CheckReport& r : reports_) {
      EXPECT_EQ(r.kind, b.kind) << r.to_string();
      EXPECT_EQ(r.kernel, b.name);
      EXPECT_FALSE(r.place.disassembly.empty());
      bool here = r.place.pc == at;
      if (b.has_other) {  // a race may be met by either side
        uint64_t from = label(std::string("from_") + b.name);
        EXPECT_TRUE(r.has_other) << r.to_string();
        here = (r.place.pc == at && r.other.pc == from) || (r.place.pc == from && r.other.pc == at);
      }
      found = found || here;
    }
    EXPECT_TRUE(found) << "expected pc " << at << "\n" << all_of(reports_);
  }
}

TEST_P(BrokenAssembly, RepairedKernelsAreNotReported) {
  check(CheckOptions::all());
  for (const Broken& b : kBroken) {
    if (!applies(b.where)) continue;
    run(std::string(b.name) + "_ok", b.waves);
    EXPECT_TRUE(reports_.empty()) << all_of(reports_);
  }
}

TEST_P(BrokenAssembly, EachCheckCanBeSwitchedOff) {
  for (const Broken& b : kBroken) {
    if (!applies(b.where)) continue;
    check(CheckOptions::all().with(b.kind, false));
    run(b.name, b.waves);
    for (const CheckReport& r : reports_) EXPECT_NE(r.kind, b.kind) << r.to_string();
    check(CheckOptions::none().with(b.kind));
    run(b.name, b.waves);
    EXPECT_FALSE(reports_.empty()) << b.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, BrokenAssembly, ::testing::ValuesIn(kAllTargets), target_name);

class BrokenKernels : public KernelTest {
 protected:
  std::vector<CheckReport> reports_;
  void SetUp() override {
    KernelTest::SetUp();
    check(CheckOptions::standard());
    load("broken");
  }
  void run(const char* kernel, uint32_t grid, uint32_t block, const Arguments& arguments) {
    config.grid = {grid};
    config.block = {block};
    result = device_->launch(*module_, kernel, config, arguments.bytes());
    reports_ = checker_->take_reports();
  }
  /// The source line of the kernel that holds `text`.
  int line_of(const std::string& text) {
    std::ifstream in(CREST_SIM_KERNEL_SOURCES "/broken.hip");
    int n = 0;
    for (std::string line; std::getline(in, line);) {
      ++n;
      if (line.find(text) != std::string::npos) return n;
    }
    return -1;
  }
  void expect(CheckKind kind, const std::string& source) {
    ASSERT_TRUE(result.ok) << result.fault.to_string();
    ASSERT_FALSE(reports_.empty());
    std::string line = "broken.hip:" + std::to_string(line_of(source));
    bool found = false;
    for (const CheckReport& r : reports_) {
      EXPECT_EQ(r.kind, kind) << r.to_string();
      found = found || r.place.source.ends_with(line) || r.other.source.ends_with(line);
    }
    EXPECT_TRUE(found) << line << "\n" << all_of(reports_);
  }
};

TEST_P(BrokenKernels, MissingBarrier) {
  const float* in = upload(std::vector<float>(512, 1));
  run("sum_without_barrier", 2, 256, Arguments().add(in).add(upload(std::vector<float>(2))));
  // A wave that comes first also reads what is not there yet; that is the same fault.
  std::erase_if(reports_, [](const CheckReport& r) { return r.kind == CheckKind::kUninitialised; });
  expect(CheckKind::kLdsRace, "part[tid()] += part[tid() + 128]");
  const CheckReport& r = reports_[0];
  EXPECT_TRUE(r.has_other);
  EXPECT_NE(r.place.wave, r.other.wave);
}

TEST_P(BrokenKernels, UnwrittenLds) {
  const float* in = upload(std::vector<float>(128, 1));
  run("reads_unwritten_lds", 1, 128, Arguments().add(in).add(upload(std::vector<float>(128))));
  expect(CheckKind::kUninitialised, "out[tid()] = part[tid() + 1]");
  EXPECT_EQ(reports_[0].place.lane, static_cast<int>(127 % (GetParam().wave64() ? 64 : 32)));
}

TEST_P(BrokenKernels, WorkgroupsWriteOneElement) {
  run("same_element", 3, 64, Arguments().add(upload(std::vector<uint32_t>(1))));
  expect(CheckKind::kGlobalRace, "out[0] = bidx()");
  const CheckReport& r = reports_[0];
  EXPECT_TRUE(r.has_other);
  EXPECT_EQ(r.place.workgroup.x, 1u);
  EXPECT_EQ(r.other.workgroup.x, 0u);
  EXPECT_EQ(r.count, 2u);
}

TEST_P(BrokenKernels, WorkgroupReadsWhatItsNeighbourWrites) {
  run("shift_in_place", 4, 64, Arguments().add(upload(std::vector<uint32_t>(256))).add(256u));
  expect(CheckKind::kGlobalRace, "data[i] = data[i + 1]");
}

TEST_P(BrokenKernels, CounterWithoutAtomics) {
  run("plain_counter", 4, 64, Arguments().add(upload(std::vector<uint32_t>(1))));
  expect(CheckKind::kGlobalRace, "counter[0] = counter[0] + 1");
}

TEST_P(BrokenKernels, FlagBeforeData) {
  run("flag_before_data", 2, 64,
      Arguments().add(upload(std::vector<uint32_t>(1))).add(upload(std::vector<uint32_t>(2))));
  expect(CheckKind::kGlobalRace, "data[0] = 7");
}

TEST_P(BrokenKernels, OneElementTooFar) {
  const uint32_t* in = upload(std::vector<uint32_t>(64));
  run("one_too_far", 2, 64, Arguments().add(in).add(upload(std::vector<uint32_t>(65))).add(64u));
  EXPECT_EQ(result.fault.kind, FaultKind::kGlobalAddress);
  EXPECT_EQ(result.fault.address, reinterpret_cast<uint64_t>(in) + 256);
  EXPECT_EQ(result.fault.workgroup.x, 1u);
  EXPECT_EQ(result.fault.lane, 0);
}

TEST_P(BrokenKernels, UseAfterFree) {
  const uint32_t* in = upload(std::vector<uint32_t>(64));
  ASSERT_TRUE(memory_->free(reinterpret_cast<uint64_t>(in)).ok());
  run("copy", 1, 64, Arguments().add(in).add(upload(std::vector<uint32_t>(64))));
  EXPECT_EQ(result.fault.kind, FaultKind::kGlobalAddress);
  EXPECT_NE(result.fault.message.find("freed"), std::string::npos) << result.fault.message;
}

TEST_P(BrokenKernels, UninitialisedMemory) {
  uint32_t* in = upload(std::vector<uint32_t>(64));
  uint32_t* out = upload(std::vector<uint32_t>(64));
  checker_->mark_uninitialised(reinterpret_cast<uint64_t>(in), 256);
  checker_->mark_uninitialised(reinterpret_cast<uint64_t>(out), 256);
  checker_->mark_initialised(reinterpret_cast<uint64_t>(in), 252);
  run("copy", 1, 64, Arguments().add(in).add(out));
  expect(CheckKind::kUninitialised, "out[tid()] = in[tid()]");
  EXPECT_EQ(reports_[0].place.lane, static_cast<int>(63 % (GetParam().wave64() ? 64 : 32)));
  // What a kernel wrote is initialised.
  checker_->mark_initialised(reinterpret_cast<uint64_t>(in), 256);
  run("copy", 1, 64, Arguments().add(in).add(out));
  run("copy", 1, 64, Arguments().add(out).add(in));
  EXPECT_TRUE(result.ok && reports_.empty()) << all_of(reports_);
}

TEST_P(BrokenKernels, SomeWavesLeaveBeforeTheBarrier) {
  const float* in = upload(std::vector<float>(256, 1));
  run("some_leave", 1, 256, Arguments().add(in).add(upload(std::vector<float>(256))).add(128u));
  ASSERT_EQ(reports_.size(), 1u) << all_of(reports_);
  const CheckReport& r = reports_[0];
  EXPECT_EQ(r.kind, CheckKind::kDivergentBarrier);
  EXPECT_EQ(r.place.disassembly, "s_barrier");
  EXPECT_NE(r.place.source.find("gpu.h:"), std::string::npos) << r.place.source;  // sync() is there
  EXPECT_EQ(r.other.wave, GetParam().wave64() ? 2 : 4);
}

INSTANTIATE_TEST_SUITE_P(Targets, BrokenKernels, ::testing::ValuesIn(kAllTargets), target_name);

TEST(CheckOptionsText, Parse) {
  EXPECT_EQ(CheckOptions::parse("")->enabled, CheckOptions::standard().enabled);
  EXPECT_EQ(CheckOptions::parse("all")->enabled, CheckOptions::all().enabled);
  EXPECT_FALSE(CheckOptions::parse("none")->any());
  auto some = CheckOptions::parse("all,-hazard,no-wait");
  ASSERT_TRUE(some.ok());
  EXPECT_FALSE((*some)[CheckKind::kHazard]);
  EXPECT_FALSE((*some)[CheckKind::kMissingWait]);
  EXPECT_TRUE((*some)[CheckKind::kBufferBounds]);
  auto one = CheckOptions::parse("lds-race");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->enabled, CheckOptions::none().with(CheckKind::kLdsRace).enabled);
  auto bad = CheckOptions::parse("all,lds-rice");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().find("lds-rice"), std::string::npos);
}

}  // namespace
}  // namespace crest_sim::test
