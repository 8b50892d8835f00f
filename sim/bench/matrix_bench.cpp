// Throughput of the matrix instructions on one core: GFLOP/s (2·m·n·k·blocks per execution).
#include <benchmark/benchmark.h>

#include <random>

#include "../tests/matrix_names.h"

namespace crest_sim_test {
namespace {

void run(benchmark::State& state, const Instruction& in, const Level& level, bool strict) {
  std::mt19937 random(1);
  Operands o(in);
  // Values of moderate size; accumulators start at zero and stay finite.
  const auto fill = [&](Rows& rows, const std::string& type) {
    std::normal_distribution<float> normal;
    for (auto& word : rows) {
      word = 0;
      const int bits = Instruction::bits_of(type);
      if (bits == 16) {
        const Format f = format_of(type, false);
        for (int half = 0; half < 2; ++half) {
          const uint32_t field = uint32_t(f.bias - 4) + random() % 6;
          word |= ((random() & 1) << 15 | field << f.mantissa_bits | (random() & ((1u << f.mantissa_bits) - 1)))
                  << 16 * half;
        }
      } else if (bits == 32) {
        word = __builtin_bit_cast(uint32_t, normal(random));
      } else {
        word = random() & 0x37373737u;
      }
    }
  };
  fill(o.a, in.a);
  fill(o.b, in.b);
  if (in.kind == MatrixKind::kSparse) o.index.assign(64, 0x4e4e4e4eu);
  std::fill(o.c.begin(), o.c.end(), 0);
  o.d = o.c;
  const crest_sim::MatrixOp* op = find(in, level);
  const auto fn = strict ? op->strict : op->fast;
  const crest_sim::MatrixCall call = o.call(in);
  for (auto _ : state) {
    fn(call);
    benchmark::DoNotOptimize(o.d.data());
  }
  const double flops = 2.0 * in.m * in.m * in.k * in.blocks;
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * double(state.iterations()) * 1e-9, benchmark::Counter::kIsRate);
}

}  // namespace
}  // namespace crest_sim_test

int main(int argc, char** argv) {
  using namespace crest_sim_test;
  using crest_sim::Arch;
  struct Row {
    const char* name;
    Arch arch;
    int lanes;
  };
  const std::vector<Row> rows = {
      {"v_mfma_f32_32x32x8_bf16", Arch::kGfx942, 64},     {"v_mfma_f32_16x16x16_bf16", Arch::kGfx942, 64},
      {"v_mfma_f32_32x32x8_f16", Arch::kGfx942, 64},      {"v_mfma_f32_16x16x32_bf16", Arch::kGfx950, 64},
      {"v_mfma_f32_16x16x32_fp8_fp8", Arch::kGfx942, 64}, {"v_mfma_f32_32x32x16_fp8_fp8", Arch::kGfx950, 64},
      {"v_mfma_i32_16x16x32_i8", Arch::kGfx942, 64},      {"v_mfma_i32_32x32x16_i8", Arch::kGfx942, 64},
      {"v_mfma_f32_32x32x2_f32", Arch::kGfx942, 64},      {"v_mfma_f32_16x16x8_xf32", Arch::kGfx942, 64},
      {"v_mfma_f32_4x4x4_16b_bf16", Arch::kGfx942, 64},   {"v_mfma_f64_16x16x4_f64", Arch::kGfx942, 64},
      {"v_smfmac_f32_16x16x32_bf16", Arch::kGfx942, 64},  {"v_wmma_f32_16x16x16_bf16", Arch::kGfx1100, 32},
      {"v_wmma_f32_16x16x16_f16", Arch::kGfx1100, 32},    {"v_wmma_f32_16x16x16_f16", Arch::kGfx1100, 64},
      {"v_wmma_i32_16x16x16_iu8", Arch::kGfx1100, 32},    {"v_wmma_f16_16x16x16_f16", Arch::kGfx1100, 32}};
  for (const Level& level : levels()) {
    for (const Row& row : rows) {
      for (const bool strict : {false, true}) {
        const std::string name = std::string(row.name) + "/" + (strict ? "strict" : "fast") + "/wave" +
                                 std::to_string(row.lanes) + "/" + level.name;
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
          run(state, parse(row.name, row.arch, row.lanes), level, strict);
        });
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
