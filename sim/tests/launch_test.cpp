// Loading and launching: order of workgroups, threads, hidden arguments, faults, limits.
#include <thread>

#include "decode/decoder.h"
#include "kernel_support.h"

namespace crest_sim::test {
namespace {

class Launch : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    check(CheckOptions::standard());
    load("launch");
  }
  LaunchResult try_launch(const char* kernel, Dim3 grid, Dim3 block, const Arguments& arguments) {
    config.grid = grid;
    config.block = block;
    return device_->launch(*module_, kernel, config, arguments.bytes());
  }
};

// Floating-point sums depend on their order: bits must not depend on the number of host threads.
TEST_P(Launch, FloatAtomicsDoNotDependOnThreads) {
  int n = 64 * 37;
  std::vector<float> x(n);
  for (auto& v : x) v = uniform() * std::pow(10.0f, uniform() * 6);
  const float* input = upload(x);
  double sum = 0, magnitude = 0;
  for (float v : x) sum += v, magnitude += std::fabs(v);
  float first = 0;
  for (int threads : {1, 2, 3, 5}) {
    float* out = upload(std::vector<float>{0});
    config.threads = threads;
    launch("sum_float", {37}, {64}, Arguments().add(input).add(out).add(n));
    if (threads == 1) first = *out;
    EXPECT_EQ(std::bit_cast<uint32_t>(*out), std::bit_cast<uint32_t>(first)) << threads;
    EXPECT_NEAR(*out, sum, magnitude * n * 0x1p-24);
  }
}

TEST_P(Launch, TicketsAreDealtInDispatchOrder) {
  for (int threads : {1, 2, 4}) {
    config.threads = threads;
    uint32_t* counter = upload(std::vector<uint32_t>{0});
    uint32_t* order = upload(std::vector<uint32_t>(50, 99));
    launch("tickets", {50}, {64}, Arguments().add(counter).add(order));
    for (uint32_t i = 0; i < 50; ++i) EXPECT_EQ(order[i], i);
  }
}

TEST_P(Launch, WorkgroupsWaitForAllOthers) {
  uint32_t groups = 20, rounds = 3;
  for (int threads : {1, 3}) {
    config.threads = threads;
    uint32_t* counter = upload(std::vector<uint32_t>{0});
    uint32_t* values = upload(std::vector<uint32_t>(groups * rounds, 0));
    launch("grid_barrier", {groups}, {64}, Arguments().add(counter).add(values).add(groups).add(rounds));
    for (uint32_t g = 0; g < groups; ++g) EXPECT_EQ(values[2 * groups + g], (g + 2) % groups + 2);
  }
}

TEST_P(Launch, WorkgroupsWaitForLaterOnes) {
  for (int threads : {1, 2}) {
    config.threads = threads;
    uint32_t* flags = upload(std::vector<uint32_t>(12, 0));
    launch("backward_chain", {12}, {64}, Arguments().add(flags).add(12u));
    for (uint32_t g = 0; g < 12; ++g) EXPECT_EQ(flags[g], 12 - g);
  }
}

TEST_P(Launch, HiddenArguments) {
  uint32_t* out = upload(std::vector<uint32_t>(5, 0));
  launch("hidden_arguments", {7, 3, 2}, {32, 2, 1}, Arguments().add(out));
  EXPECT_EQ(download(out, 5), (std::vector<uint32_t>{7, 3, 2, 32, 2}));
}

TEST_P(Launch, FunctionCalls) {
  std::vector<uint32_t> in(64);
  for (uint32_t i = 0; i < 64; ++i) in[i] = i * 37 + 1;
  uint32_t* out = upload(std::vector<uint32_t>(64));
  launch("calls", {1}, {64}, Arguments().add(upload(in)).add(out));
  for (uint32_t i = 0; i < 64; ++i) {
    uint32_t steps = 0;
    for (uint32_t n = in[i]; n != 1; n = n % 2 ? 3 * n + 1 : n / 2) ++steps;
    EXPECT_EQ(out[i], steps);
  }
}

TEST_P(Launch, PrivateArray) {
  std::vector<uint32_t> index(64 * 8);
  for (auto& i : index) i = static_cast<uint32_t>(random() % 40);
  uint32_t* out = upload(std::vector<uint32_t>(64));
  launch("private_array", {1}, {64}, Arguments().add(upload(index)).add(out));
  for (uint32_t t = 0; t < 64; ++t) {
    uint32_t a[40], s = 0;
    for (uint32_t k = 0; k < 40; ++k) a[k] = k * k + t;
    for (uint32_t k = 0; k < 8; ++k) {
      a[index[t * 8 + k]] += 7;
      s = s * 3 + a[index[t * 8 + (k ^ 1)]];
    }
    EXPECT_EQ(out[t], s);
  }
}

TEST_P(Launch, DynamicLds) {
  std::vector<uint32_t> in(128);
  for (uint32_t i = 0; i < 128; ++i) in[i] = i * i;
  uint32_t* out = upload(std::vector<uint32_t>(128));
  config.dynamic_lds_bytes = 512;
  launch("reverse_through_lds", {1}, {128}, Arguments().add(upload(in)).add(out));
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], in[127 - i]);
  config.dynamic_lds_bytes = 508;  // one dword short
  LaunchResult r = try_launch("reverse_through_lds", {1}, {128}, Arguments().add(upload(in)).add(out));
  EXPECT_EQ(r.fault.kind, FaultKind::kLdsAddress) << r.fault.to_string();
  EXPECT_EQ(r.fault.lane, static_cast<int>(127 % (GetParam().wave64() ? 64 : 32)));
}

TEST_P(Launch, Globals) {
  uint32_t* out = upload(std::vector<uint32_t>(5));
  launch("globals", {1}, {64}, Arguments().add(out));
  EXPECT_EQ(download(out, 5), (std::vector<uint32_t>{11, 22, 33, 44, 22}));
  uint64_t bytes = 0;
  EXPECT_NE(module_->symbol_address("table", &bytes), 0u);
  EXPECT_EQ(bytes, 16u);
}

TEST_P(Launch, DivisionAndSquareRootAreCorrectlyRounded) {
  int n = 64 * 64;
  std::vector<float> a(n), b(n);
  for (auto* v : {&a, &b})
    for (auto& x : *v) x = std::bit_cast<float>(static_cast<uint32_t>(random()));
  for (int i = 0; i < 64; ++i)
    a[i] = std::bit_cast<float>(static_cast<uint32_t>(random() & 0x807fffff)), b[i] = std::ldexp(uniform(), 120);
  for (int i = 64; i < 128; ++i) b[i] = std::bit_cast<float>(static_cast<uint32_t>(random() & 0x807fffff));
  float *q = upload(std::vector<float>(n)), *r = upload(std::vector<float>(n));
  launch("divide", {64}, {64}, Arguments().add(upload(a)).add(upload(b)).add(q).add(r));
  auto same = [](auto x, auto y) {
    return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
  };
  for (int i = 0; i < n; ++i) {
    ASSERT_TRUE(same(q[i], a[i] / b[i])) << a[i] << " / " << b[i] << " = " << q[i];
    ASSERT_TRUE(same(r[i], std::sqrt(a[i]))) << a[i] << " " << r[i];
  }
  std::vector<double> c(n), d(n);
  for (auto* v : {&c, &d})
    for (auto& x : *v) x = std::bit_cast<double>(uint64_t(random()) << 32 | random());
  double *p = upload(std::vector<double>(n)), *s = upload(std::vector<double>(n));
  launch("divide_double", {64}, {64}, Arguments().add(upload(c)).add(upload(d)).add(p).add(s));
  for (int i = 0; i < n; ++i) {
    ASSERT_TRUE(same(p[i], c[i] / d[i])) << c[i] << " / " << d[i] << " = " << p[i];
    ASSERT_TRUE(same(s[i], std::sqrt(c[i]))) << c[i] << " " << s[i];
  }
}

// One element behind the end: named with kernel, pc, instruction, workgroup, wave, lane and the allocation.
TEST_P(Launch, OutOfBoundsIsNamed) {
  uint32_t *in = upload(std::vector<uint32_t>(64)), *out = upload(std::vector<uint32_t>(64));
  LaunchResult r = try_launch("copy_offset", {1}, {64}, Arguments().add(in).add(out).add(1));
  ASSERT_FALSE(r.ok);
  EXPECT_EQ(r.fault.kind, FaultKind::kGlobalAddress);
  EXPECT_EQ(r.fault.kernel, "copy_offset");
  EXPECT_EQ(r.fault.address, reinterpret_cast<uint64_t>(in + 64));
  EXPECT_EQ(r.fault.lane, GetParam().wave64() ? 63 : 31);
  EXPECT_EQ(r.fault.wave, GetParam().wave64() ? 0 : 1);
  EXPECT_NE(r.fault.disassembly.find("load"), std::string::npos) << r.fault.to_string();
  EXPECT_NE(r.fault.to_string().find("0 bytes behind the end"), std::string::npos) << r.fault.to_string();
  launch("copy_offset", {1}, {64}, Arguments().add(in).add(out).add(0));
}

TEST_P(Launch, UseAfterFreeIsNamed) {
  uint32_t *in = upload(std::vector<uint32_t>(64)), *out = upload(std::vector<uint32_t>(64));
  ASSERT_TRUE(memory_->free(reinterpret_cast<uint64_t>(in)).ok());
  LaunchResult r = try_launch("copy_offset", {1}, {64}, Arguments().add(in).add(out).add(0));
  EXPECT_EQ(r.fault.kind, FaultKind::kGlobalAddress);
  EXPECT_NE(r.fault.to_string().find("freed"), std::string::npos) << r.fault.to_string();
  EXPECT_FALSE(memory_->free(reinterpret_cast<uint64_t>(in)).ok());
}

TEST_P(Launch, LdsOutOfBoundsIsNamed) {
  uint32_t* out = upload(std::vector<uint32_t>(64));
  LaunchResult r = try_launch("lds_offset", {1}, {64}, Arguments().add(out).add(1));
  EXPECT_EQ(r.fault.kind, FaultKind::kLdsAddress) << r.fault.to_string();
}

// The report names the first workgroup that fails, whatever the threads do.
TEST_P(Launch, FirstFaultWins) {
  int n = 64 * 4;
  const float* x = upload(std::vector<float>(n, 1));
  float* out = upload(std::vector<float>{0});
  for (int threads : {1, 4}) {
    config.threads = threads;
    LaunchResult r = try_launch("sum_float", {40}, {64}, Arguments().add(x).add(out).add(1 << 20));
    EXPECT_EQ(r.fault.kind, FaultKind::kGlobalAddress);
    EXPECT_EQ(r.fault.workgroup.x, 4u) << r.fault.to_string();
  }
}

TEST_P(Launch, EndlessLoopIsStopped) {
  config.max_wave_instructions = 5'000'000;
  uint32_t* out = upload(std::vector<uint32_t>{0});
  LaunchResult r = try_launch("endless", {1}, {64}, Arguments().add(out));
  EXPECT_EQ(r.fault.kind, FaultKind::kDeadlock) << r.fault.to_string();
}

TEST_P(Launch, BadLaunchesAreRefused) {
  uint32_t* p = upload(std::vector<uint32_t>(64));
  auto message = [&](const char* kernel, Dim3 grid, Dim3 block, const Arguments& a) {
    return try_launch(kernel, grid, block, a).fault.message;
  };
  EXPECT_NE(message("nothing", {1}, {64}, Arguments()).find("no such kernel"), std::string::npos);
  EXPECT_NE(message("copy_offset", {0}, {64}, Arguments().add(p).add(p).add(0)).find("zero"), std::string::npos);
  EXPECT_NE(message("copy_offset", {1}, {65}, Arguments().add(p).add(p).add(0)).find("allows 64"), std::string::npos);
  EXPECT_NE(message("copy_offset", {1}, {64}, Arguments().add(p)).find("takes 20"), std::string::npos);
  config.dynamic_lds_bytes = 1 << 20;
  EXPECT_NE(message("reverse_through_lds", {1}, {128}, Arguments().add(p).add(p)).find("LDS"), std::string::npos);
}

// A descriptor that claims fewer registers than the code uses: an error, not a silent success.
TEST_P(Launch, RegisterBeyondAllocationIsNamed) {
  auto file = read_file(std::string(CREST_SIM_KERNEL_DIR) + "/launch." + GetParam().name + ".co");
  auto original = CodeObject::parse(file);
  const Kernel* kernel = (*original)->find_kernel("private_array");
  // The descriptor lies in .rodata at the same place in the file's bytes; find it by its contents.
  auto image = (*original)->image();
  auto at = std::search(file.begin(), file.end(), image.begin() + int64_t(kernel->descriptor_address),
                        image.begin() + int64_t(kernel->descriptor_address) + 64);
  ASSERT_NE(at, file.end());
  at[48] &= uint8_t(~63);  // granulated VGPR count: the smallest
  auto module = device_->load(file);
  ASSERT_TRUE(module.ok()) << module.error();
  module_ = *module;
  std::vector<uint32_t> index(64 * 8, 3);
  uint32_t* out = upload(std::vector<uint32_t>(64));
  LaunchResult r = try_launch("private_array", {1}, {64}, Arguments().add(upload(index)).add(out));
  EXPECT_EQ(r.fault.kind, FaultKind::kRegisterRange) << r.fault.to_string();
}

// 16 GiB of which little is touched.
TEST_P(Launch, SparseAllocation) {
  auto big = memory_->allocate(uint64_t(16) << 30);
  ASSERT_TRUE(big.ok()) << big.error();
  auto* in = reinterpret_cast<uint32_t*>(*big + (uint64_t(15) << 30));
  for (uint32_t i = 0; i < 64; ++i) in[i] = i;
  uint32_t* out = upload(std::vector<uint32_t>(64));
  launch("copy_offset", {1}, {64}, Arguments().add(in).add(out).add(0));
  EXPECT_EQ(out[63], 63u);
}

// Whatever is broken in a file, loading it ends with a message or an object, never with a crash.
TEST_P(Launch, CutFilesAreRefused) {
  auto file = read_file(std::string(CREST_SIM_KERNEL_DIR) + "/launch." + GetParam().name + ".co");
  for (size_t cut : {size_t(0), size_t(4), size_t(63), size_t(64), file.size() / 2, file.size() - 1}) {
    auto r = CodeObject::parse(std::span(file).first(cut));
    if (cut < file.size() / 2) EXPECT_FALSE(r.ok());
  }
}

// Bytes changed anywhere, and in the metadata note and the headers in particular (a note whose map keys are arrays or
// whose counts are wrong). Every twentieth object that still loads is decoded as well.
TEST_P(Launch, DamagedFilesLoadOrAreRefused) {
  auto original = read_file(std::string(CREST_SIM_KERNEL_DIR) + "/launch." + GetParam().name + ".co");
  std::string_view text(reinterpret_cast<const char*>(original.data()), original.size());
  size_t note = text.find("amdhsa.kernels"), loaded = 0, refused = 0;
  ASSERT_NE(note, std::string_view::npos);
  for (int round = 0; round < 750; ++round) {
    auto file = original;
    size_t begin = round % 3 == 0 ? 0 : round % 3 == 1 ? note - 32 : file.size() - 4096;
    size_t length = round % 3 == 1 ? std::min<size_t>(6144, file.size() - begin) : file.size() - begin;
    for (int n = 1 + static_cast<int>(random() % 6); n > 0; --n)
      file[begin + random() % length] = static_cast<uint8_t>(random() % 2 ? random() : 0x80 + random() % 96);
    auto object = CodeObject::parse(file);
    if (!object.ok()) {
      EXPECT_FALSE(object.error().empty());
      ++refused;
      continue;
    }
    std::vector<uint8_t> image((*object)->image().begin(), (*object)->image().end());
    (*object)->relocate(image, 0x100000);
    if (++loaded % 20 == 0) (*object)->code(GetParam().wave64() ? 64 : 32);
  }
  EXPECT_GT(loaded, 100u);
  EXPECT_GT(refused, 100u);
}

// Decoder agreement between text and MCInst over everything that was built.
TEST_P(Launch, TextAndMcInstAgree) {
  for (const char* family : {"launch", "basic", "matrix"}) {
    auto file = read_file(std::string(CREST_SIM_KERNEL_DIR) + "/" + family + "." + GetParam().name + ".co");
    if (file.empty()) continue;  // no matrix kernels for wave64 on RDNA3
    auto object = CodeObject::parse(file);
    ASSERT_TRUE(object.ok());
    uint32_t wave = (*object)->kernels()[0].wave_size;
    const Code& code = (*object)->code(wave);
    EXPECT_TRUE(code.unknown.empty()) << code.unknown[0];
    Disassembler d((*object)->target(), wave);
    size_t checked = 0;
    for (const Instruction& i : code.instructions) {
      if (i.pc >= code.bytes.size()) continue;
      RawInstruction raw;
      ASSERT_TRUE(d.decode(std::span(code.bytes).subspan(i.pc), i.pc, raw));
      EXPECT_EQ(cross_check(raw, parse_text(raw.text)), "");
      ++checked;
    }
    EXPECT_GT(checked, 100u);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Launch, ::testing::ValuesIn(kAllTargetsAndWave64), target_name);

}  // namespace
}  // namespace crest_sim::test
