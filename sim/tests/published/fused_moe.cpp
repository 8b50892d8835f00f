// Fused mixture of experts: gate (and up) projection, activation, down projection, weighted sum by bf16 atomics.
#include <fmt/format.h>

#include <algorithm>

#include "bench.h"

namespace crest_sim::published {
namespace {

constexpr int kRows = 32;  // rows of one block of sorted tokens

struct Routing {
  std::vector<int> ids, experts;  ///< (slot << 24) | token, padded per expert; expert of each block
  std::vector<float> weights;     ///< of each entry of ids
  std::vector<int> expert_of;     ///< [token][slot]
  std::vector<float> weight_of;
  int valid = 0;
};

Routing route(Bench& bench, int tokens, int experts, int top) {
  Routing r;
  r.expert_of.resize(size_t(tokens) * top);
  r.weight_of.resize(r.expert_of.size());
  for (int t = 0; t < tokens; ++t) {
    std::vector<int> all(experts);
    for (int e = 0; e < experts; ++e) all[e] = e;
    std::shuffle(all.begin(), all.end(), bench.random);
    for (int s = 0; s < top; ++s) {
      r.expert_of[t * top + s] = all[s];
      r.weight_of[t * top + s] = 0.1f + std::fabs(bench.normal());
    }
  }
  for (int e = 0; e < experts; ++e) {
    size_t begin = r.ids.size();
    for (int t = 0; t < tokens; ++t)
      for (int s = 0; s < top; ++s)
        if (r.expert_of[t * top + s] == e) {
          r.ids.push_back(s << 24 | t);
          r.weights.push_back(r.weight_of[t * top + s]);
        }
    while ((r.ids.size() - begin) % kRows) r.ids.push_back(top << 24 | tokens), r.weights.push_back(0);
    for (size_t n = begin; n < r.ids.size(); n += kRows) r.experts.push_back(e);
  }
  r.valid = int(r.ids.size());
  return r;
}

struct Problem {
  int tokens, dim, inter, experts, top;
};

double silu(double x) { return x / (1 + std::exp(-x)); }

/// Reference of one token in double precision and its allowance. `x`, `up` (gate rows, then up rows) and `down` give
/// dequantised values. Every slice of hidden values adds to the output with a bf16 atomic, after rounding its own sum;
/// the hidden values themselves are rounded with `unit`.
struct Output {
  std::vector<double> value, allowed;
};
template <class X, class Up, class Down>
Output reference(const Problem& p, const Routing& r, int token, bool gated, int slice, double unit, const X& x,
                 const Up& up, const Down& down) {
  Output o{std::vector<double>(p.dim), std::vector<double>(p.dim)};
  int additions = p.top * ((p.inter + slice - 1) / slice);
  for (int s = 0; s < p.top; ++s) {
    int e = r.expert_of[token * p.top + s];
    double weight = r.weight_of[token * p.top + s];
    std::vector<double> hidden(p.inter);
    for (int i = 0; i < p.inter; ++i) {
      double g = 0, u = 0;
      for (int d = 0; d < p.dim; ++d) {
        g += x(d) * up(e, i, d);
        if (gated) u += x(d) * up(e, p.inter + i, d);
      }
      hidden[i] = silu(g) * (gated ? u : 1);
    }
    for (int d = 0; d < p.dim; ++d) {
      for (int begin = 0; begin < p.inter; begin += slice) {
        double sum = 0, square = 0;
        for (int i = begin; i < std::min(p.inter, begin + slice); ++i) {
          double v = hidden[i] * down(e, d, i);
          sum += v, square += v * v;
        }
        o.value[d] += weight * sum;
        o.allowed[d] += weight * (0x1p-9 * (additions + 1) * std::fabs(sum) + 2 * unit * std::sqrt(square));
      }
    }
  }
  return o;
}

void launch(Bench& bench, const std::string& object, const std::string& kind, const Problem& p, const Routing& r,
            int slice, bool gated, Slots& a, uint16_t* out, const std::function<Output(int)>& expected) {
  a.put(0x00, out).put(0x30, bench.upload(std::vector<int>{r.valid, p.tokens})).put(0x90, bench.upload(r.ids));
  a.put(0xa0, bench.upload(r.weights)).put(0xb0, bench.upload(r.experts));
  a.put(0xc0, p.dim).put(0xd0, p.inter).put(0xe0, p.tokens).put(0xf0, p.experts).put(0x130, p.dim * 2);
  a.put(0x190, p.top).put(0x1b0, (p.inter + slice - 1) / slice);
  auto judge = [&] {
    Comparison c;
    for (int t = 0; t < p.tokens; ++t) {
      Output o = expected(t);
      for (int d = 0; d < p.dim; ++d)
        c.add(size_t(t) * p.dim + d, bf16_to_float(out[size_t(t) * p.dim + d]), o.value[d], o.allowed[d] + 1e-5);
    }
    return c;
  };
  bench.run(object,
            fmt::format("{} tokens {} dim {} inter {} experts {} top {}{}", kind, p.tokens, p.dim, p.inter, p.experts,
                        p.top, gated ? " gated" : ""),
            {uint32_t((p.inter + slice - 1) / slice), uint32_t(r.experts.size())}, {256}, a, judge);
}

void check_bf16(Bench& bench, const Problem& p) {
  Routing r = route(bench, p.tokens, p.experts, p.top);
  auto x = bench.normal_bf16(size_t(p.tokens) * p.dim);
  auto w1 = bench.normal_bf16(size_t(p.experts) * p.inter * p.dim, 1 / std::sqrt(float(p.dim)));
  auto w2 = bench.normal_bf16(size_t(p.experts) * p.dim * p.inter, 1 / std::sqrt(float(p.inter)));
  uint16_t* out = bench.output<uint16_t>(x.size(), true);
  Slots a(448);
  a.put(0x10, bench.upload(x)).put(0x20, bench.upload(shuffle_weight(w1, p.inter, p.dim)));
  a.put(0x40, bench.upload(shuffle_weight(w2, p.dim, p.inter)));
  a.put(0x100, p.dim * 2).put(0x110, p.dim * 2).put(0x120, p.inter * 2);
  a.put(0x140, p.dim * 2 * p.inter).put(0x150, p.inter * 2 * p.dim).put(0x180, p.inter * 4);
  auto expected = [&](int t) {
    return reference(
        p, r, t, false, 512, 0x1p-8, [&](int d) { return double(bf16_to_float(x[size_t(t) * p.dim + d])); },
        [&](int e, int i, int d) { return double(bf16_to_float(w1[(size_t(e) * p.inter + i) * p.dim + d])); },
        [&](int e, int d, int i) { return double(bf16_to_float(w2[(size_t(e) * p.dim + d) * p.inter + i])); });
  };
  launch(bench, "fmoe/silu/fmoe_bf16_noquantBf16_g1u0_vs_atm_inlv_silu_1tg_32x512.co", "bf16", p, r, 512, false, a, out,
         expected);
}

/// FP8 with one scale per token and per output row of the weights.
void check_fp8(Bench& bench, const Problem& p) {
  Routing r = route(bench, p.tokens, p.experts, p.top);
  auto x = bench.normal_fp8(size_t(p.tokens) * p.dim, 40);
  auto w1 = bench.normal_fp8(size_t(p.experts) * 2 * p.inter * p.dim, 40);
  auto w2 = bench.normal_fp8(size_t(p.experts) * p.dim * p.inter, 40);
  auto scales = [&](size_t count, float typical) {
    std::vector<float> s(count);
    for (float& f : s) f = typical * (0.5f + 0.2f * std::fabs(bench.normal()));
    return s;
  };
  auto xs = scales(p.tokens, 1.0f / 40),
       s1 = scales(size_t(p.experts) * 2 * p.inter, 1 / (40 * std::sqrt(float(p.dim)))),
       s2 = scales(size_t(p.experts) * p.dim, 1 / (40 * std::sqrt(float(p.inter))));
  uint16_t* out = bench.output<uint16_t>(size_t(p.tokens) * p.dim, true);
  Slots a(448);
  a.put(0x10, bench.upload(x)).put(0x20, bench.upload(shuffle_weight(w1, 2 * p.inter, p.dim)));
  a.put(0x40, bench.upload(shuffle_weight(w2, p.dim, p.inter)));
  a.put(0x50, bench.upload(xs)).put(0x60, bench.upload(s1)).put(0x70, bench.upload(s2));
  a.put(0x100, p.dim).put(0x110, p.dim).put(0x120, p.inter).put(0x140, p.dim * p.inter * 2).put(0x150, p.inter * p.dim);
  a.put(0x160, p.inter * 2 * 4).put(0x170, p.dim * 4).put(0x180, p.inter * 4);
  std::vector<double> value(256);
  for (int i = 0; i < 256; ++i) value[i] = fp8_to_float(uint8_t(i));
  // Hidden values become fp8, which has three bits of fraction.
  auto expected = [&](int t) {
    return reference(
        p, r, t, true, 256, 0x1p-4, [&](int d) { return value[x[size_t(t) * p.dim + d]] * xs[t]; },
        [&](int e, int i, int d) {
          size_t at = size_t(e) * 2 * p.inter + i;
          return value[w1[at * p.dim + d]] * s1[at];
        },
        [&](int e, int d, int i) {
          size_t at = size_t(e) * p.dim + d;
          return value[w2[at * p.inter + i]] * s2[at];
        });
  };
  launch(bench, "fmoe/silu/fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x256.co", "fp8", p, r, 256, true, a, out, expected);
}

}  // namespace

void check_fused_moe(Bench& bench) {
  for (const Problem& p : {Problem{32, 512, 512, 2, 1}, Problem{5, 512, 512, 4, 2}, Problem{70, 512, 1024, 3, 2}})
    check_bf16(bench, p);
  for (const Problem& p : {Problem{32, 512, 256, 2, 1}, Problem{5, 512, 256, 4, 2}, Problem{70, 512, 512, 3, 2}})
    check_fp8(bench, p);
}

}  // namespace crest_sim::published
