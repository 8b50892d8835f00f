// D = A·Bᵀ: bf16 with split K, and FP8 with one scale per 128 (A) and 128 × 128 (B) values.
#include <fmt/format.h>

#include "bench.h"

namespace crest_sim::published {
namespace {

struct Size {
  int m, n, k;
};

/// A·Bᵀ of row i, column j, and Σ|a·b|.
template <class A, class B>
std::pair<double, double> dot(const A& a, const B& b, int k) {
  double sum = 0, magnitude = 0;
  for (int x = 0; x < k; ++x) {
    double p = a(x) * b(x);
    sum += p, magnitude += std::fabs(p);
  }
  return {sum, magnitude};
}

void check_bf16(Bench& bench, const std::string& name, int tile_m, const Size& s, int splits, bool half_output,
                bool shuffled, bool with_bias) {
  auto a = bench.normal_bf16(size_t(s.m) * s.k), b = bench.normal_bf16(size_t(s.n) * s.k, 1 / std::sqrt(float(s.k)));
  auto bias = bench.normal_bf16(s.n, with_bias ? 1 : 0);
  size_t bytes = half_output ? 2 : 4;
  uint8_t* d = bench.output<uint8_t>(size_t(s.m) * s.n * bytes, splits > 1 || name.find("clean") == std::string::npos);
  Slots x(352);
  x.put(0x00, d).put(0x20, bench.upload(a)).put(0x30, bench.upload(shuffled ? shuffle_weight(b, s.n, s.k) : b));
  x.put(0x40, 1.0f).put(0x50, 0.0f).put(0x60, uint32_t(s.n * bytes)).put(0x80, uint32_t(s.n * bytes));
  x.put(0xa0, s.k * 2).put(0xc0, s.k * 2).put(0xe0, s.m).put(0xf0, s.n).put(0x100, s.k).put(0x110, splits);
  x.put(0x120, int(half_output)).put(0x130, bench.upload(bias)).put(0x140, int(with_bias));
  x.put(0x150, bench.output<uint32_t>(4096, true));
  auto judge = [&] {
    Comparison c;
    for (int i = 0; i < s.m; ++i)
      for (int j = 0; j < s.n; ++j) {
        auto [want, magnitude] = dot([&](int t) { return double(bf16_to_float(a[size_t(i) * s.k + t])); },
                                     [&](int t) { return double(bf16_to_float(b[size_t(j) * s.k + t])); }, s.k);
        want += bf16_to_float(bias[j]);
        magnitude += std::fabs(bf16_to_float(bias[j]));
        size_t at = size_t(i) * s.n + j;
        float got;
        uint16_t half;
        if (half_output)
          std::memcpy(&half, d + at * 2, 2), got = bf16_to_float(half);
        else
          std::memcpy(&got, d + at * 4, 4);
        // Partial sums in fp32; in bf16 every split is rounded and then added with another rounding.
        double rounding = half_output ? 0x1p-8 * (splits == 1 ? std::fabs(want) : magnitude) : 0;
        c.add(at, got, want, s.k * 0x1p-24 * magnitude + rounding + 1e-6);
      }
    return c;
  };
  bench.run("bf16gemm/" + name + ".co",
            fmt::format("m {} n {} k {} splits {} {}{}", s.m, s.n, s.k, splits, half_output ? "bf16" : "fp32",
                        with_bias ? " bias" : ""),
            {uint32_t(s.n / 64), uint32_t((s.m + tile_m - 1) / tile_m), uint32_t(splits)}, {256}, x, judge);
}

void check_fp8(Bench& bench, int tile_m, const Size& s) {
  auto a = bench.normal_fp8(size_t(s.m) * s.k), b = bench.normal_fp8(size_t(s.n) * s.k);
  int blocks_k = s.k / 128, blocks_n = s.n / 128;
  std::vector<float> a_scale(size_t(s.m) * blocks_k), b_scale(size_t(blocks_n) * blocks_k), bias(s.n);
  auto positive = [&] { return 0.02f + 0.1f * std::fabs(bench.normal()); };
  for (float& x : a_scale) x = positive();  // [k / 128][m]
  for (float& x : b_scale) x = positive();
  uint16_t* d = bench.output<uint16_t>(size_t(s.m) * s.n);
  Slots x(272);
  x.put(0x00, d).put(0x10, bench.upload(a)).put(0x20, bench.upload(shuffle_weight(b, s.n, s.k)));
  x.put(0x30, bench.upload(a_scale)).put(0x40, bench.upload(b_scale)).put(0x50, bench.upload(bias));
  x.put(0x60, s.m).put(0x70, s.n).put(0x80, s.k).put(0x90, s.k).put(0xa0, s.k).put(0xb0, s.n * 2).put(0xc0, 1);
  x.put(0xd0, s.m).put(0xe0, blocks_n).put(0xf0, blocks_k);
  auto judge = [&] {
    Comparison c;
    float value[256];
    for (int i = 0; i < 256; ++i) value[i] = fp8_to_float(uint8_t(i));
    for (int i = 0; i < s.m; ++i)
      for (int j = 0; j < s.n; ++j) {
        double want = 0, magnitude = 0;
        for (int block = 0; block < blocks_k; ++block) {
          size_t k = size_t(block) * 128;
          auto [sum, sum_magnitude] = dot([&](int t) { return double(value[a[i * size_t(s.k) + k + t]]); },
                                          [&](int t) { return double(value[b[j * size_t(s.k) + k + t]]); }, 128);
          double scale = double(a_scale[size_t(block) * s.m + i]) * b_scale[size_t(j / 128) * blocks_k + block];
          want += sum * scale, magnitude += sum_magnitude * scale;
        }
        // The kernels truncate to bf16 (v_perm_b32).
        c.add(size_t(i) * s.n + j, bf16_to_float(d[size_t(i) * s.n + j]), want,
              0x1p-7 * std::fabs(want) + 0x1p-18 * magnitude);
      }
    return c;
  };
  bench.run(fmt::format("fp8gemm_blockscale/fp8gemm_bf16_blockscale_BpreShuffle_{}x128.co", tile_m),
            fmt::format("m {} n {} k {}", s.m, s.n, s.k), {uint32_t(s.n / 128), uint32_t((s.m + tile_m - 1) / tile_m)},
            {256}, x, judge);
}

}  // namespace

void check_gemm(Bench& bench) {
  const std::string prefix = "bf16gemm_fp32bf16_tn_";
  for (const Size& s : {Size{64, 64, 192}, Size{1, 64, 192}, Size{65, 128, 256}, Size{130, 192, 1024}}) {
    check_bf16(bench, prefix + "64x64_pf3_splitk", 64, s, 1, false, false, false);
    check_bf16(bench, prefix + "64x64_pf3_splitk", 64, s, 1, true, false, true);
    check_bf16(bench, prefix + "64x64_bshuffle_splitk", 64, s, 1, false, true, false);
    check_bf16(bench, prefix + "64x64_splitk_clean", 64, s, 1, true, false, false);
  }
  check_bf16(bench, prefix + "64x64_pf3_splitk", 64, {65, 128, 1024}, 4, false, false, false);
  check_bf16(bench, prefix + "64x64_pf3_splitk", 64, {65, 128, 1024}, 2, true, false, true);
  check_bf16(bench, prefix + "64x64_splitk_clean", 64, {65, 128, 1024}, 4, true, false, true);
  check_bf16(bench, prefix + "32x64_pf3_splitk", 32, {33, 64, 512}, 1, false, false, false);
  check_bf16(bench, prefix + "96x64_pf3_splitk", 96, {100, 64, 512}, 1, false, false, false);
}

void check_block_scale_gemm(Bench& bench) {
  for (int tile : {32, 48, 64, 80, 96, 128})
    for (const Size& s : {Size{tile, 128, 256}, Size{1, 256, 512}, Size{tile + 1, 128, 896}}) check_fp8(bench, tile, s);
}

}  // namespace crest_sim::published
