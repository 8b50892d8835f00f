// Attention forward, head_dim 128, bf16, in three roundings of P (to nearest even, half away, truncation).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench.h"

namespace crest_sim::published {
namespace {

constexpr int kDim = 128, kTile = 256;

struct Shape {
  int batch, heads, kv_heads, q, kv;
};

/// One row: o = softmax(q·kᵀ/√d) v over the first `visible` keys. `spread` gets √Σ(p·v)², the size of the rounding
/// errors of P in o. Returns log Σ exp (natural).
double attend(const float* q, const float* k, const float* v, size_t stride, int visible, double* o, double* spread) {
  std::vector<double> p(visible);
  double top = -INFINITY, sum = 0;
  for (int j = 0; j < visible; ++j) {
    float dot = 0;
    double exact = 0;
    for (int base = 0; base < kDim; base += 32) {
      dot = 0;
      for (int d = base; d < base + 32; ++d) dot += q[d] * k[j * stride + d];
      exact += dot;
    }
    p[j] = exact / std::sqrt(double(kDim));
    top = std::max(top, p[j]);
  }
  for (double& x : p) sum += x = std::exp(x - top);
  std::fill(o, o + kDim, 0.0);
  std::fill(spread, spread + kDim, 0.0);
  for (int j = 0; j < visible; ++j)
    for (int d = 0; d < kDim; ++d) {
      double part = p[j] / sum * v[j * stride + d];
      o[d] += part;
      spread[d] += part * part;
    }
  for (int d = 0; d < kDim; ++d) spread[d] = std::sqrt(spread[d]);
  return top + std::log(sum);
}

std::vector<float> widen(const std::vector<uint16_t>& x) {
  std::vector<float> y(x.size());
  std::transform(x.begin(), x.end(), y.begin(), bf16_to_float);
  return y;
}

void check(Bench& bench, const Shape& s, bool causal, const std::string& rounding) {
  size_t q_row = size_t(s.heads) * kDim, kv_row = size_t(s.kv_heads) * kDim;
  auto q = bench.normal_bf16(s.batch * s.q * q_row), k = bench.normal_bf16(s.batch * s.kv * kv_row),
       v = bench.normal_bf16(s.batch * s.kv * kv_row);
  uint16_t* out = bench.output<uint16_t>(q.size());
  float* lse = bench.output<float>(size_t(s.batch) * s.heads * s.q);
  auto strides = [](size_t row, int length) {
    return std::array<uint32_t, 3>{uint32_t(row * 2), kDim * 2, uint32_t(row * 2 * length)};
  };
  auto qs = strides(q_row, s.q), ks = strides(kv_row, s.kv);
  Slots a(656);
  a.put(0x00, out).put(0x10, bench.upload(q)).put(0x20, bench.upload(k)).put(0x30, bench.upload(v)).put(0x40, lse);
  a.put(0x50, 1 / std::sqrt(float(kDim))).put(0x60, s.q).put(0x70, qs[0]).put(0x80, kTile * qs[0]);
  a.put(0x90, qs[1]).put(0xa0, qs[2]).put(0xb0, s.heads / s.kv_heads);
  a.put(0xc0, ks[0]).put(0xd0, ks[1]).put(0xe0, ks[2]);
  a.put(0xf0, causal && (s.heads % 8 != 0 || s.q > 16384) ? 3 : 5).put(0x100, 1);
  a.put(0x110, s.kv).put(0x120, kDim).put(0x130, kDim).put(0x140, s.heads);
  a.put(0x150, ks[0]).put(0x160, ks[1]).put(0x170, ks[2]);
  a.put(0x180, qs[0]).put(0x190, qs[1]).put(0x1a0, qs[2]).put(0x1d0, uint32_t(s.q * 4));
  uint32_t tiles = uint32_t(s.q + kTile - 1) / kTile;
  Dim3 grid{causal ? (tiles + 1) / 2 : tiles, uint32_t(s.heads), uint32_t(s.batch)};
  auto judge = [&] {
    Comparison c;
    auto qf = widen(q), kf = widen(k), vf = widen(v);
    double unit = rounding == "rtz" ? 0x1p-7 : 0x1p-8, o[kDim], spread[kDim];
    for (int b = 0; b < s.batch; ++b)
      for (int i = 0; i < s.q; ++i)
        for (int h = 0; h < s.heads; ++h) {
          size_t at = (size_t(b) * s.q + i) * q_row + size_t(h) * kDim;
          size_t kv = size_t(b) * s.kv * kv_row + size_t(h / (s.heads / s.kv_heads)) * kDim;
          int visible = causal ? std::clamp(s.kv - s.q + i + 1, 0, s.kv) : s.kv;
          double log_sum = attend(&qf[at], &kf[kv], &vf[kv], kv_row, visible, o, spread);
          if (visible == 0) continue;
          for (int d = 0; d < kDim; ++d)
            c.add(at + d, bf16_to_float(out[at + d]), o[d], unit * (std::fabs(o[d]) + 2 * spread[d]) + 2e-5);
          c.add(at, lse[(size_t(b) * s.heads + h) * s.q + i], log_sum, 1e-4);
        }
    return c;
  };
  bench.run("fmha_v3_fwd/MI300/fwd_hd128_bf16_" + std::string(causal ? "causal_" : "") + rounding + ".co",
            fmt::format("b {} h {}/{} q {} kv {}", s.batch, s.heads, s.kv_heads, s.q, s.kv), grid, {512}, a, judge);
}

}  // namespace

void check_attention(Bench& bench) {
  for (const char* rounding : {"rtne", "rtna", "rtz"}) {
    for (const Shape& s : {Shape{1, 1, 1, 256, 256}, Shape{1, 2, 1, 256, 203}, Shape{2, 1, 1, 300, 517},
                           Shape{1, 1, 1, 500, 500}, Shape{1, 8, 1, 129, 65}, Shape{1, 1, 1, 1024, 1024}})
      check(bench, s, false, rounding);
    for (const Shape& s : {Shape{1, 1, 1, 256, 256}, Shape{1, 8, 2, 300, 300}, Shape{1, 1, 1, 500, 500},
                           Shape{2, 1, 1, 200, 333}, Shape{1, 1, 1, 1024, 1024}})
      check(bench, s, true, rounding);
  }
}

}  // namespace crest_sim::published
