// MLA decode, stage 1: 16 or 128 heads share one latent row of 576 per key, of which the first 512 are the value.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "bench.h"

namespace crest_sim::published {
namespace {

constexpr int kQk = 576, kV = 512;

/// Partial results of the splits joined as stage 2 does; the reference is the whole softmax.
void check(Bench& bench, const std::vector<int>& lengths, int splits) {
  constexpr int heads = 16;
  int batch = int(lengths.size()), pages = std::accumulate(lengths.begin(), lengths.end(), 0);
  auto q = bench.normal_bf16(size_t(batch) * heads * kQk), kv = bench.normal_bf16(size_t(pages) * kQk);
  float scale = 1 / std::sqrt(float(kQk));
  std::vector<int> indptr{0}, page(pages), last(batch, 1), q_indptr(batch + 1);
  for (int n : lengths) indptr.push_back(indptr.back() + n);
  std::iota(page.begin(), page.end(), 0);
  std::shuffle(page.begin(), page.end(), bench.random);
  std::iota(q_indptr.begin(), q_indptr.end(), 0);
  float* part = reinterpret_cast<float*>(bench.output<uint32_t>(size_t(batch) * splits * heads * kV));
  float* lse = reinterpret_cast<float*>(bench.output<uint32_t>(size_t(batch) * splits * heads));
  Slots a(368);
  a.put(0x00, part).put(0x10, lse).put(0x20, bench.upload(q)).put(0x30, bench.upload(kv));
  a.put(0x40, bench.upload(indptr)).put(0x50, bench.upload(page)).put(0x60, bench.upload(last));
  a.put(0x70, scale).put(0x80, heads).put(0x90, splits);
  a.put(0xa0, heads * kQk * 2).put(0xb0, kQk * 2).put(0xc0, 0).put(0xd0, bench.upload(q_indptr));
  auto judge = [&] {
    Comparison c;
    for (int b = 0; b < batch; ++b) {
      int n = lengths[b], used = std::min(splits, (n + 63) / 64);
      for (int h = 0; h < heads; ++h) {
        std::vector<double> p(n), want(kV), spread(kV);
        double top = -INFINITY, sum = 0;
        auto key = [&](int j) { return &kv[size_t(page[indptr[b] + j]) * kQk]; };
        for (int j = 0; j < n; ++j) {
          for (int d = 0; d < kQk; ++d)
            p[j] += double(bf16_to_float(q[(size_t(b) * heads + h) * kQk + d])) * bf16_to_float(key(j)[d]);
          top = std::max(top, p[j] *= scale);
        }
        for (double& x : p) sum += x = std::exp(x - top);
        for (int j = 0; j < n; ++j)
          for (int d = 0; d < kV; ++d) {
            double x = p[j] / sum * bf16_to_float(key(j)[d]);
            want[d] += x, spread[d] += x * x;
          }
        double total = 0;
        auto at = [&](int s) { return (size_t(b) * splits + s) * heads + h; };
        for (int s = 0; s < used; ++s) total += std::exp(lse[at(s)] - top);
        for (int d = 0; d < kV; ++d) {
          double got = 0;
          for (int s = 0; s < used; ++s) got += std::exp(lse[at(s)] - top) / total * part[at(s) * kV + d];
          c.add((size_t(b) * heads + h) * kV + d, got, want[d],
                0x1p-8 * (std::fabs(want[d]) + 2 * std::sqrt(spread[d])) + 2e-5);
        }
        c.add(b, std::log(total) + top, std::log(sum) + top, 2e-3);
      }
    }
    return c;
  };
  bench.run("mla/mla_dec_stage1_bf16_a16w16_subQ16_mqa16.co",
            fmt::format("heads {} kv {} splits {}", heads, fmt::join(lengths, ","), splits),
            {1, uint32_t(batch), uint32_t(splits)}, {256}, a, judge);
}

}  // namespace

void check_latent_attention(Bench& bench) {
  for (int splits : {1, 2, 3, 4})
    for (const auto& lengths : std::vector<std::vector<int>>{{64}, {1}, {63, 65}, {200, 1, 129}, {517}})
      check(bench, lengths, splits);
}

}  // namespace crest_sim::published
