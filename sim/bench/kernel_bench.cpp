// crest_sim_kernel_bench DIR ARCH [SECONDS] [KERNEL] [strict]: wave instructions and GFLOP per second of processor
// time, one host thread, for the compiled kernels basic.ARCH.co and matrix.ARCH.co in DIR (the build folder
// tests/kernels).
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "crest_sim/device.h"

namespace {

using namespace crest_sim;

double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

template <class T>
T checked(Result<T> r) {
  if (r.ok()) return std::move(*r);
  fmt::print(stderr, "{}\n", r.error());
  std::exit(1);
}

class KernelBench {
 public:
  KernelBench(const std::string& directory, const std::string& arch, double seconds, const std::string& only,
              bool strict)
      : seconds_(seconds),
        only_(only),
        strict_(strict),
        memory_(checked(Memory::create())),
        device_(checked(Device::create(*parse_arch(arch), memory_))) {
    for (const char* family : {"basic", "matrix"}) {
      std::ifstream in(directory + "/" + family + "." + arch + ".co", std::ios::binary);
      std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
      modules_.push_back(checked(device_->load(bytes)));
    }
  }

  template <class T, class Make>
  T* fill(size_t count, Make make) {
    T* at = reinterpret_cast<T*>(checked(memory_->allocate(count * sizeof(T))));
    for (size_t i = 0; i < count; ++i) at[i] = static_cast<T>(make());
    return at;
  }
  float uniform() { return std::uniform_real_distribution<float>(-1, 1)(random); }
  auto floats(float scale = 1) {
    return [this, scale] { return uniform() * scale; };
  }
  auto bf16(float scale = 1) {
    return [this, scale] { return std::bit_cast<uint32_t>(uniform() * scale) >> 16; };
  }
  auto below(uint32_t limit) {
    return [this, limit] { return random() % limit; };
  }

  void run(int module, const char* kernel, Dim3 grid, uint32_t block, const Arguments& arguments, double flops = 0) {
    if (!only_.empty() && only_ != kernel) return;
    LaunchConfig config;
    config.grid = grid;
    config.block = {block};
    config.threads = 1;
    config.strict_matrix = strict_;
    uint64_t launches = 0, instructions = 0;
    double begin = 0, spent = 0;
    do {
      LaunchResult r = device_->launch(*modules_[module], kernel, config, arguments.bytes());
      if (!r.ok) {
        fmt::print(stderr, "{}\n", r.fault.to_string());
        std::exit(1);
      }
      if (++launches == 1) {  // the first one makes pages and code
        begin = processor_seconds();
        continue;
      }
      instructions += r.wave_instructions;
      spent = processor_seconds() - begin;
    } while (spent < seconds_);
    fmt::print("{:<20} {:>8.2f} M wave-inst/s", kernel, double(instructions) / spent * 1e-6);
    if (flops > 0) fmt::print(" {:>8.2f} GFLOP/s", flops * double(launches - 1) / spent * 1e-9);
    fmt::print("\n");
    std::fflush(stdout);
  }

  std::mt19937 random{1};

 private:
  double seconds_;
  std::string only_;
  bool strict_;
  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Device> device_;
  std::vector<std::shared_ptr<Module>> modules_;
};

void run_basic(KernelBench& b, uint32_t wave) {
  int n = 1000003;
  b.run(0, "vadd", {(n + 255u) / 256}, 256,
        Arguments()
            .add(b.fill<float>(n, b.floats()))
            .add(b.fill<float>(n, b.floats()))
            .add(b.fill<float>(n, b.floats()))
            .add(n));
  n = 4096;
  b.run(0, "rmsnorm", {64}, 256,
        Arguments()
            .add(b.fill<uint16_t>(64 * n, b.bf16(3)))
            .add(b.fill<uint16_t>(n, b.bf16()))
            .add(b.fill<uint16_t>(64 * n, b.bf16()))
            .add(n)
            .add(1e-6f));
  n = 1000;
  b.run(0, "softmax", {32}, 256,
        Arguments().add(b.fill<float>(32 * n, b.floats(8))).add(b.fill<float>(32 * n, b.floats())).add(n));
  n = 8192;
  b.run(0, "silu_mul", {n / 512u}, 256,
        Arguments()
            .add(b.fill<uint16_t>(n, b.bf16(4)))
            .add(b.fill<uint16_t>(n, b.bf16()))
            .add(b.fill<uint16_t>(n, b.bf16()))
            .add(n));
  int position = 0;
  b.run(0, "rope", {16, 8}, 64,
        Arguments()
            .add(b.fill<uint16_t>(16 * 8 * 128, b.bf16()))
            .add(b.fill<int>(16, [&] { return 37 * position++; }))
            .add(8)
            .add(128)
            .add(13.28771f));
  n = 1024;
  b.run(0, "gemv_q8", {64}, wave,
        Arguments()
            .add(b.fill<int8_t>(64 * n, b.below(256)))
            .add(b.fill<float>(2 * n, b.floats()))
            .add(b.fill<int8_t>(n, b.below(256)))
            .add(b.fill<float>(n / 32, b.floats()))
            .add(b.fill<float>(64, b.floats()))
            .add(n));
  b.run(0, "quant_q8", {64}, 32,
        Arguments()
            .add(b.fill<float>(2048, b.floats(5)))
            .add(b.fill<int8_t>(2048, b.below(1)))
            .add(b.fill<float>(64, b.floats())));
  n = 50000;
  b.run(0, "argmax", {64}, 256,
        Arguments().add(b.fill<float>(n, b.floats(9))).add(b.fill<uint64_t>(1, b.below(1))).add(n));
  n = 20000;
  b.run(0, "moe_count", {8}, 256, Arguments().add(b.fill<int>(n, b.below(64))).add(b.fill<int>(64, b.below(1))).add(n));
}

template <class T, class Make>
void run_gemm(KernelBench& b, const char* kernel, int m, int n, int k, uint32_t tile, uint32_t block, Make make) {
  b.run(1, kernel, {n / tile, m / tile}, block,
        Arguments()
            .add(b.fill<T>(size_t(m) * k, make))
            .add(b.fill<T>(size_t(n) * k, make))
            .add(b.fill<float>(size_t(m) * n, b.floats()))
            .add(m)
            .add(n)
            .add(k),
        2.0 * m * n * k);
}

void run_matrix(KernelBench& b, bool cdna) {
  if (cdna) {
    run_gemm<uint16_t>(b, "gemm_bf16_32x32x8", 512, 512, 1024, 128, 256, b.bf16());
    run_gemm<uint16_t>(b, "gemm_bf16_16x16x16", 64, 64, 128, 16, 64, b.bf16());
    run_gemm<uint8_t>(b, "gemm_i8_16x16x32", 64, 64, 128, 16, 64, b.below(256));
    run_gemm<uint8_t>(b, "gemm_fp8_16x16x32", 64, 64, 128, 16, 64, b.below(0x50));
  } else {
    run_gemm<uint16_t>(b, "gemm_bf16_wmma", 64, 64, 128, 16, 32, b.bf16());
    run_gemm<uint16_t>(b, "gemm_bf16_wmma_lds", 512, 512, 1024, 64, 128, b.bf16());
    run_gemm<uint8_t>(b, "gemm_iu8_wmma", 64, 64, 128, 16, 32, b.below(256));
  }
  uint32_t length = 256, heads = 2, dim = 128, rows = cdna ? 128 : 64;
  auto tensor = [&] { return b.fill<uint16_t>(size_t(heads) * length * dim, b.bf16()); };
  for (int causal : {0, 1})
    b.run(1, "fa_fwd", {length / rows, heads}, cdna ? 256 : 128,
          Arguments()
              .add(tensor())
              .add(tensor())
              .add(tensor())
              .add(tensor())
              .add(int(length))
              .add(0.0883883f)
              .add(causal),
          4.0 * length * length * dim * heads);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || !parse_arch(argv[2])) {
    fmt::print(stderr, "usage: {} DIR ARCH [SECONDS] [KERNEL, or all] [strict]\n", argv[0]);
    return 2;
  }
  std::string only = argc > 4 && std::string(argv[4]) != "all" ? argv[4] : "";
  KernelBench bench(argv[1], argv[2], argc > 3 ? std::atof(argv[3]) : 1.0, only, argc > 5);
  bool cdna = std::string(argv[2]).starts_with("gfx9");
  run_basic(bench, cdna ? 64 : 32);
  run_matrix(bench, cdna);
}
