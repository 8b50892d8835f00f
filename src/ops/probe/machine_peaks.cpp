#include "ops/probe/machine_peaks.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "core/cpu_features.h"

namespace crest::ops {
namespace {

constexpr int64_t kBufferBytes = int64_t{256} << 20;  // several times the caches of a server's core complex
constexpr int64_t kRounds = 500000;                   // milliseconds: waking the threads must not count
constexpr int kRepetitions = 4;

// Loops of one instruction on twelve registers, so that its latency does not matter. NOTE: assembly, because a compiler
// would see that the results are not used, and because the file needs no instruction set beyond the baseline.
#define CREST_12(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)
#define CREST_CLOBBERS                                                                                                \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
      "xmm14", "xmm15"

struct Loop {
  void (*run)();
  double operations;  // of one round
};

void clear_registers() { __asm__ volatile("vzeroall" ::: CREST_CLOBBERS); }

#define CREST_LOOP(name, clear, step)                     \
  void name() {                                           \
    clear;                                                \
    for (int64_t i = 0; i < kRounds; ++i) {               \
      __asm__ volatile(CREST_12(step)::: CREST_CLOBBERS); \
    }                                                     \
  }
#define CREST_FMA_SSE(n) "mulps %%xmm15, %%xmm" #n "\n addps %%xmm14, %%xmm" #n "\n"
#define CREST_FMA_AVX2(n) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #n "\n"
#define CREST_FMA_AVX512(n) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #n "\n"
#define CREST_INT8_AVX2(n) "vpmaddubsw %%ymm14, %%ymm15, %%ymm13\n vpaddw %%ymm13, %%ymm" #n ", %%ymm" #n "\n"
#define CREST_INT8_AVX_VNNI(n) "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm" #n "\n"
#define CREST_INT8_AVX512(n) "vpmaddubsw %%zmm14, %%zmm15, %%zmm13\n vpaddw %%zmm13, %%zmm" #n ", %%zmm" #n "\n"
#define CREST_INT8_AVX512_VNNI(n) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #n "\n"
CREST_LOOP(fma_sse, (void)0, CREST_FMA_SSE)
CREST_LOOP(fma_avx2, clear_registers(), CREST_FMA_AVX2)
CREST_LOOP(fma_avx512, clear_registers(), CREST_FMA_AVX512)
CREST_LOOP(int8_avx2, clear_registers(), CREST_INT8_AVX2)
CREST_LOOP(int8_avx_vnni, clear_registers(), CREST_INT8_AVX_VNNI)
CREST_LOOP(int8_avx512, clear_registers(), CREST_INT8_AVX512)
CREST_LOOP(int8_avx512_vnni, clear_registers(), CREST_INT8_AVX512_VNNI)

void int8_amx() {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } config;
  __asm__ volatile("ldtilecfg %0\n tilezero %%tmm4\n tilezero %%tmm5\n" ::"m"(config));
  for (int64_t i = 0; i < kRounds / 16; ++i) {
    __asm__ volatile(
        "tdpbssd %tmm5, %tmm4, %tmm0\n tdpbssd %tmm5, %tmm4, %tmm1\n"
        "tdpbssd %tmm5, %tmm4, %tmm2\n tdpbssd %tmm5, %tmm4, %tmm3\n");
  }
  __asm__ volatile("tilerelease");
}

Loop fp32_loop(const core::CpuFeatures& f) {
  if (f.avx512) return {fma_avx512, kRounds * 12.0 * 32};
  if (f.avx2) return {fma_avx2, kRounds * 12.0 * 16};
  return {fma_sse, kRounds * 12.0 * 8};
}
Loop int8_loop(const core::CpuFeatures& f) {
  if (f.amx_int8) return {int8_amx, kRounds / 16 * 4 * 16.0 * 16 * 64 * 2};
  if (f.avx512_vnni) return {int8_avx512_vnni, kRounds * 12.0 * 128};
  if (f.avx512) return {int8_avx512, kRounds * 12.0 * 128};
  if (f.avx_vnni) return {int8_avx_vnni, kRounds * 12.0 * 64};
  if (f.avx2) return {int8_avx2, kRounds * 12.0 * 64};
  return {nullptr, 0};
}

/// Seconds of f on all threads, the best of some repetitions.
template <typename F>
double best_seconds(core::ThreadPool& pool, F f) {
  double best = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(f);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

double operations_per_second(core::ThreadPool& pool, const Loop& loop) {
  if (loop.run == nullptr) return 0;
  return loop.operations * pool.size() / best_seconds(pool, [&](int, int) { loop.run(); });
}

/// Sum of 64-bit words. NOTE: four streams, asked for ahead: one alone does not keep a core's misses in flight.
uint64_t read_all(const uint64_t* words, int64_t count) {
  constexpr int64_t kLine = 8, kStreams = 4, kAhead = 256;
  const int64_t part = count / kStreams / kLine * kLine;
  uint64_t sums[kStreams] = {};
  for (int64_t i = 0; i < part; i += kLine) {
    for (int64_t s = 0; s < kStreams; ++s) {
      const uint64_t* line = words + s * part + i;
      __builtin_prefetch(line + kAhead);
      sums[s] += line[0] + line[1] + line[2] + line[3] + line[4] + line[5] + line[6] + line[7];
    }
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

Result<double> read_rate(core::ThreadPool& pool) {
  void* memory = ::mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return make_error(ErrorCode::kOutOfMemory, "no memory for the {} bytes that measure the read bandwidth",
                      kBufferBytes);
  }
  ::madvise(memory, kBufferBytes, MADV_HUGEPAGE);
  auto* words = static_cast<uint64_t*>(memory);
  constexpr int64_t kWords = kBufferBytes / 8;
  pool.parallel_for(kWords, 4096,
                    [&](int64_t begin, int64_t end) { std::fill(words + begin, words + end, uint64_t{1}); });
  std::atomic<uint64_t> total{0};
  const double seconds = best_seconds(pool, [&](int thread, int threads) {
    const int64_t begin = kWords * thread / threads, end = kWords * (thread + 1) / threads;
    total += read_all(words + begin, end - begin);
  });
  ::munmap(memory, kBufferBytes);
  return total == 0 ? 0.0 : static_cast<double>(kBufferBytes) / seconds;
}

}  // namespace

Result<MachinePeaks> measure_machine_peaks(core::ThreadPool& pool) {
  const core::CpuFeatures& features = core::cpu_features();
  CREST_TRY(const double bytes, read_rate(pool));
  return MachinePeaks{.read_gb_s = bytes * 1e-9,
                      .fp32_gflops = operations_per_second(pool, fp32_loop(features)) * 1e-9,
                      .int8_gops = operations_per_second(pool, int8_loop(features)) * 1e-9};
}

}  // namespace crest::ops
