// What the checks cost: the same launches with all checks off and on, one thread, best of several runs.
//   crest_sim_check_bench KERNEL_FOLDER [gfx942 …]
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "crest_sim/check.h"
#include "crest_sim/device.h"

namespace crest_sim {
namespace {

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Case {
  std::string family, kernel;
  Dim3 grid, block;
  std::function<Arguments(Memory&)> arguments;
};

uint64_t buffer(Memory& memory, size_t bytes) {
  auto at = memory.allocate(bytes);
  if (!at) return 0;
  std::mt19937 random(1);
  auto* p = reinterpret_cast<uint32_t*>(*at);
  for (size_t i = 0; i < bytes / 4; ++i) p[i] = (random() & 0x3fffffff) | 0x20000000;  // finite as f32, bf16 and f16
  return *at;
}

std::vector<Case> cases(bool cdna) {
  auto add = [](Memory& m, std::initializer_list<size_t> bytes) {
    Arguments a;
    for (size_t n : bytes) a.add(buffer(m, n));
    return a;
  };
  uint32_t wave = cdna ? 64 : 32;
  std::vector<Case> out{
      {"basic", "vadd", {2000}, {256}, [=](Memory& m) { return add(m, {2048000, 2048000, 2048000}).add(512000); }},
      {"basic",
       "rmsnorm",
       {64},
       {256},
       [=](Memory& m) { return add(m, {64 * 8192, 8192, 64 * 8192}).add(4096).add(1e-5f); }},
      {"basic", "softmax", {64}, {256}, [=](Memory& m) { return add(m, {64 * 4000, 64 * 4000}).add(1000); }},
      {"basic", "silu_mul", {500}, {256}, [=](Memory& m) { return add(m, {512000, 512000, 512000}).add(256000); }},
      {"basic",
       "gemv_q8",
       {512},
       {wave},
       [=](Memory& m) { return add(m, {512 * 2048, 512 * 64 * 4, 2048, 64 * 4, 2048}).add(2048); }},
      {"basic", "quant_q8", {4000}, {32}, [=](Memory& m) { return add(m, {4000 * 128, 4000 * 32, 16000}); }},
      {"basic",
       "moe_count",
       {8},
       {256},
       [=](Memory& m) {
         Arguments a;
         auto ids = m.allocate(400000);
         auto* p = reinterpret_cast<int*>(*ids);
         for (int i = 0; i < 100000; ++i) p[i] = i * 7 % 64;
         return a.add(*ids).add(buffer(m, 256)).add(100000);
       }},
      {"launch", "divide", {500}, {64}, [=](Memory& m) { return add(m, {128000, 128000, 128000, 128000}); }},
  };
  auto gemm = [&](const char* kernel, uint32_t tile, uint32_t threads, int size) {
    out.push_back({"matrix", kernel, {size / tile, size / tile}, {threads}, [=](Memory& m) {
                     size_t n = static_cast<size_t>(size);
                     return add(m, {n * n * 2, n * n * 2, n * n * 4}).add(size).add(size).add(size);
                   }});
  };
  if (cdna) {
    gemm("gemm_bf16_32x32x8", 128, 256, 512);
    gemm("gemm_bf16_16x16x16", 16, 64, 256);
  } else {
    gemm("gemm_bf16_wmma", 16, 32, 256);
    gemm("gemm_bf16_wmma_lds", 64, 128, 256);
  }
  out.push_back({"matrix", "fa_fwd", {cdna ? 4u : 8u, 2}, {cdna ? 256u : 128u}, [=](Memory& m) {
                   size_t n = 2 * 512 * 128 * 2;
                   return add(m, {n, n, n, n}).add(512).add(0.088f).add(0);
                 }});
  return out;
}

void measure(const std::string& folder, const std::string& name) {
  auto arch = parse_arch(name);
  auto memory = Memory::create();
  if (!arch || !memory) return;
  auto device = Device::create(*arch, *memory);
  if (!device) return;
  fmt::print("{:8} {:20} {:>10} {:>10} {:>8} {:>12}\n", name, "kernel", "off ms", "on ms", "ratio", "Minst/s off");
  double total_off = 0, total_on = 0;
  for (const Case& c : cases(name.starts_with("gfx9"))) {
    auto module = (*device)->load(read_file(folder + "/" + c.family + "." + name + ".co"));
    if (!module) {
      fmt::print("{}: {}\n", c.kernel, module.error());
      continue;
    }
    LaunchConfig config;
    config.grid = c.grid;
    config.block = c.block;
    config.threads = 1;
    Arguments arguments = c.arguments(**memory);
    double best[2] = {1e9, 1e9};
    LaunchResult r;
    Checker checker;
    for (int run = 0; run < 5; ++run)
      for (int on = 0; on < 2; ++on) {
        config.observers.clear();
        if (on) config.observers.push_back(&checker);
        r = (*device)->launch(**module, c.kernel, config, arguments.bytes());
        if (!r.ok) break;
        best[on] = std::min(best[on], r.seconds);
        for (const CheckReport& report : checker.take_reports()) fmt::print("  {}\n", report.to_string());
      }
    if (!r.ok) {
      fmt::print("{}: {}\n", c.kernel, r.fault.to_string());
      continue;
    }
    fmt::print("{:8} {:20} {:10.3f} {:10.3f} {:8.2f} {:12.1f}\n", name, c.kernel, best[0] * 1e3, best[1] * 1e3,
               best[1] / best[0], double(r.wave_instructions) / best[0] / 1e6);
    total_off += best[0];
    total_on += best[1];
  }
  fmt::print("{:8} {:20} {:10.3f} {:10.3f} {:8.2f}\n", name, "all", total_off * 1e3, total_on * 1e3,
             total_on / total_off);
}

}  // namespace
}  // namespace crest_sim

int main(int count, char** words) {
  std::vector<std::string> names(words + std::min(count, 2), words + count);
  if (names.empty()) names = {"gfx942", "gfx1100"};
  for (const std::string& name : names) crest_sim::measure(count > 1 ? words[1] : ".", name);
}
