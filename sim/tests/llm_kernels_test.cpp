// Compiled kernels of a language model against references on the CPU, at awkward sizes.
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "kernel_support.h"

namespace crest_sim::test {
namespace {

constexpr int kGroup = 128;
constexpr float kPoison = -12345.0f;

class LlmKernels : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    load("llm");
  }
  std::vector<float> floats(size_t count, float scale = 1) {
    std::vector<float> v(count);
    for (float& x : v) x = uniform() * scale;
    return v;
  }
  std::vector<int> below(size_t count, int limit) {
    std::vector<int> v(count);
    for (int& x : v) x = static_cast<int>(random() % static_cast<uint32_t>(limit));
    return v;
  }
  float* output(size_t count) { return upload(std::vector<float>(count, kPoison)); }
  /// One workgroup of 128 per row.
  void run(const char* kernel, uint32_t rows, const Arguments& arguments) {
    launch(kernel, {rows}, {kGroup}, arguments);
  }
  /// One thread per element.
  void run_flat(const char* kernel, int n, const Arguments& arguments) {
    run(kernel, static_cast<uint32_t>((n + kGroup - 1) / kGroup), arguments);
  }
  static void expect_close(const float* got, const std::vector<double>& want, double relative, double absolute) {
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], std::fabs(want[i]) * relative + absolute) << "element " << i;
  }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
};

const int kWidths[] = {1, 7, 63, 64, 65, 127, 129, 1027};

TEST_P(LlmKernels, AddRmsNorm) {
  for (int n : kWidths) {
    int rows = 3;
    auto x = floats(rows * n), r = floats(rows * n), w = floats(n);
    float *residual = upload(r), *y = output(rows * n);
    run("add_rmsnorm", rows, Arguments().add(upload(x)).add(residual).add(upload(w)).add(y).add(n).add(1e-5f));
    for (int row = 0; row < rows; ++row) {
      double sum = 0;
      for (int i = 0; i < n; ++i) {
        ASSERT_EQ(residual[row * n + i], r[row * n + i] + x[row * n + i]);
        sum += std::pow(double(r[row * n + i] + x[row * n + i]), 2);
      }
      for (int i = 0; i < n; ++i) {
        double want = (r[row * n + i] + x[row * n + i]) / std::sqrt(sum / n + 1e-5) * w[i];
        ASSERT_NEAR(y[row * n + i], want, std::fabs(want) * 1e-5 + 1e-7);
      }
    }
  }
}

TEST_P(LlmKernels, LayerNorm) {
  for (int n : kWidths) {
    int rows = 2;
    auto x = floats(rows * n, 3), w = floats(n), b = floats(n);
    float* y = output(rows * n);
    run("layernorm", rows, Arguments().add(upload(x)).add(upload(w)).add(upload(b)).add(y).add(n).add(1e-5f));
    for (int row = 0; row < rows; ++row) {
      double mean = 0, square = 0;
      for (int i = 0; i < n; ++i) mean += x[row * n + i] / double(n);
      for (int i = 0; i < n; ++i) square += std::pow(x[row * n + i] - mean, 2) / n;
      for (int i = 0; i < n; ++i)
        ASSERT_NEAR(y[row * n + i], (x[row * n + i] - mean) / std::sqrt(square + 1e-5) * w[i] + b[i],
                    n == 1 ? 1e-3 : 2e-5);
    }
  }
}

TEST_P(LlmKernels, Activations) {
  int n = 1027;
  auto x = floats(n, 6);
  float* y = output(n);
  run_flat("gelu_tanh", n, Arguments().add(upload(x)).add(y).add(n));
  std::vector<double> want(n);
  for (int i = 0; i < n; ++i)
    want[i] = 0.5 * x[i] * (1 + std::tanh(0.7978845608 * (x[i] + 0.044715 * std::pow(double(x[i]), 3))));
  expect_close(y, want, 1e-5, 2e-6);

  std::vector<_Float16> gate(n), up(n);
  for (int i = 0; i < n; ++i)
    gate[i] = static_cast<_Float16>(uniform() * 10), up[i] = static_cast<_Float16>(uniform() * 10);
  _Float16* out = upload(std::vector<_Float16>(n));
  run_flat("swiglu_f16", n, Arguments().add(upload(gate)).add(upload(up)).add(out).add(n).add(7.0f));
  for (int i = 0; i < n; ++i) {
    double g = std::min(double(gate[i]), 7.0), u = std::clamp(double(up[i]), -7.0, 7.0);
    double v = g * sigmoid(1.702 * g) * (u + 1);
    ASSERT_NEAR(double(out[i]), v, std::fabs(v) * 0x1p-10 + 1e-5);
  }
}

TEST_P(LlmKernels, RopePairs) {
  for (int dim : {2, 66, 128, 258}) {
    int rows = 5;
    auto q = floats(rows * dim), c = floats(rows * dim / 2), s = floats(rows * dim / 2);
    float* at = upload(q);
    run("rope_pairs", rows, Arguments().add(at).add(upload(c)).add(upload(s)).add(dim));
    std::vector<double> want(q.size());
    for (size_t i = 0; i < c.size(); ++i) {
      want[2 * i] = double(q[2 * i]) * c[i] - double(q[2 * i + 1]) * s[i];
      want[2 * i + 1] = double(q[2 * i]) * s[i] + double(q[2 * i + 1]) * c[i];
    }
    expect_close(at, want, 1e-6, 1e-6);
  }
}

TEST_P(LlmKernels, Embed) {
  int vocabulary = 50, dim = 331;
  auto table = random_bf16(size_t(vocabulary) * dim);
  auto ids = below(7, vocabulary);
  float* y = output(ids.size() * dim);
  run("embed", 7, Arguments().add(upload(ids)).add(upload(table)).add(y).add(dim).add(2.5f));
  for (size_t t = 0; t < ids.size(); ++t)
    for (int i = 0; i < dim; ++i) ASSERT_EQ(y[t * dim + i], bf16_to_float(table[ids[t] * dim + i]) * 2.5f);
}

TEST_P(LlmKernels, RowArgmaxTakesTheFirstOfEqualOnes) {
  for (int n : kWidths) {
    int rows = 4;
    std::vector<float> x(rows * n);
    for (float& v : x) v = float(random() % 50);
    int* out = upload(std::vector<int>(rows, -1));
    run("row_argmax", rows, Arguments().add(upload(x)).add(out).add(n));
    for (int r = 0; r < rows; ++r)
      ASSERT_EQ(out[r], std::max_element(x.begin() + r * n, x.begin() + (r + 1) * n) - (x.begin() + r * n));
  }
}

TEST_P(LlmKernels, TopK) {
  for (int n : {8, 65, 1000}) {
    int rows = 3, k = 8;
    auto x = floats(rows * n);
    int* out = upload(std::vector<int>(rows * k, -1));
    float* value = output(rows * k);
    run("top_k", rows, Arguments().add(upload(x)).add(out).add(value).add(n).add(k));
    for (int r = 0; r < rows; ++r) {
      std::vector<int> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int a, int b) {
        float va = x[r * n + a], vb = x[r * n + b];
        return va > vb || (va == vb && a < b);
      });
      for (int i = 0; i < k; ++i) {
        ASSERT_EQ(out[r * k + i], order[i]);
        ASSERT_EQ(value[r * k + i], x[r * n + order[i]]);
      }
    }
  }
}

TEST_P(LlmKernels, GateTopTwo) {
  for (int experts : {2, 5, 64}) {
    int tokens = 131;
    auto x = floats(tokens * experts, 4);
    int* expert = upload(std::vector<int>(2 * tokens, -1));
    float* weight = output(2 * tokens);
    run_flat("gate_top2", tokens, Arguments().add(upload(x)).add(expert).add(weight).add(tokens).add(experts));
    for (int t = 0; t < tokens; ++t) {
      std::vector<int> order(experts);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int a, int b) { return x[t * experts + a] > x[t * experts + b]; });
      ASSERT_EQ(expert[2 * t], order[0]);
      ASSERT_EQ(expert[2 * t + 1], order[1]);
      double a = std::exp(x[t * experts + order[0]]), b = std::exp(x[t * experts + order[1]]);
      ASSERT_NEAR(weight[2 * t], a / (a + b), 1e-6);
      ASSERT_NEAR(weight[2 * t + 1], b / (a + b), 1e-6);
    }
  }
}

TEST_P(LlmKernels, SortByExpert) {
  int n = 777, experts = 13;
  auto expert = below(n, experts);
  int *first = upload(std::vector<int>(experts + 1, -1)), *order = upload(std::vector<int>(n, -1));
  run("sort_experts", 1, Arguments().add(upload(expert)).add(first).add(order).add(n).add(experts));
  int at = 0;
  for (int e = 0; e < experts; ++e) {
    ASSERT_EQ(first[e], at);
    std::vector<int> got(order + first[e], order + first[e + 1]), want;
    for (int i = 0; i < n; ++i)
      if (expert[i] == e) want.push_back(i);
    std::sort(got.begin(), got.end());
    ASSERT_EQ(got, want);
    at += int(want.size());
  }
  ASSERT_EQ(first[experts], n);
}

TEST_P(LlmKernels, PrefixSum) {
  for (int n : kWidths) {
    int rows = 2;
    std::vector<uint32_t> x(rows * n);
    for (auto& v : x) v = random();
    uint32_t* y = upload(std::vector<uint32_t>(x.size()));
    run("prefix_sum", rows, Arguments().add(upload(x)).add(y).add(n));
    for (int r = 0; r < rows; ++r) {
      uint32_t sum = 0;
      for (int i = 0; i < n; ++i) ASSERT_EQ(y[r * n + i], sum += x[r * n + i]) << i;
    }
  }
}

TEST_P(LlmKernels, Transpose) {
  for (auto [rows, columns] : {std::pair{1, 1}, {33, 31}, {64, 64}, {7, 100}}) {
    auto x = floats(rows * columns);
    float* y = output(x.size());
    launch("transpose", {uint32_t(columns + 31) / 32, uint32_t(rows + 31) / 32}, {kGroup},
           Arguments().add(upload(x)).add(y).add(rows).add(columns));
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns; ++c) ASSERT_EQ(y[c * rows + r], x[r * columns + c]);
  }
}

TEST_P(LlmKernels, KvWriteSkipsPadding) {
  int dim = 200, tokens = 5, page = 16, slots = 64;
  auto x = floats(tokens * dim);
  std::vector<int> slot{3, 17, -1, 63, 16};
  uint16_t* cache = upload(std::vector<uint16_t>(slots * dim, 0xabcd));
  run("kv_write", tokens, Arguments().add(upload(x)).add(cache).add(upload(slot)).add(dim).add(page));
  std::vector<uint16_t> want(slots * dim, 0xabcd);
  for (int t = 0; t < tokens; ++t)
    for (int i = 0; i < dim && slot[t] >= 0; ++i) want[slot[t] * dim + i] = float_to_bf16(x[t * dim + i]);
  EXPECT_EQ(download(cache, want.size()), want);
}

TEST_P(LlmKernels, PagedDecode) {
  for (int dim : {64, 80, 128}) {
    int heads = 3, page = 8, pages = 5, count = 20;
    std::vector<int> lengths{1, 37, 0, 40}, order(count);
    int sequences = int(lengths.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    auto q = floats(sequences * heads * dim);
    auto k = random_bf16(size_t(count) * page * heads * dim), v = random_bf16(k.size());
    float *out = output(q.size()), scale = 1 / std::sqrt(float(dim));
    launch("paged_decode", {uint32_t(heads), uint32_t(sequences)}, {kGroup},
           Arguments()
               .add(upload(q))
               .add(upload(k))
               .add(upload(v))
               .add(upload(order))
               .add(upload(lengths))
               .add(out)
               .add(dim)
               .add(page)
               .add(pages)
               .add(scale));
    for (int s = 0; s < sequences; ++s)
      for (int h = 0; h < heads; ++h) {
        auto row = [&](int t) { return (size_t(order[s * pages + t / page] * page + t % page) * heads + h) * dim; };
        std::vector<double> p(lengths[s]), o(dim);
        double sum = 0;
        for (int t = 0; t < lengths[s]; ++t) {
          for (int d = 0; d < dim; ++d) p[t] += double(q[(s * heads + h) * dim + d]) * bf16_to_float(k[row(t) + d]);
          sum += p[t] = std::exp(p[t] * scale);
        }
        for (int t = 0; t < lengths[s]; ++t)
          for (int d = 0; d < dim; ++d) o[d] += p[t] / sum * bf16_to_float(v[row(t) + d]);
        for (int d = 0; d < dim; ++d)
          ASSERT_NEAR(out[(s * heads + h) * dim + d], o[d], 2e-6) << s << " " << h << " " << d;
      }
  }
}

TEST_P(LlmKernels, GemvOfFourBits) {
  int rows = 9, k = 32 * 37;
  std::vector<uint8_t> nibbles(rows * k / 2);
  std::vector<_Float16> scales(rows * k / 32);
  for (auto& b : nibbles) b = uint8_t(random());
  for (auto& s : scales) s = static_cast<_Float16>(uniform());
  auto x = floats(k);
  float* y = output(rows);
  run("gemv_q4", rows, Arguments().add(upload(nibbles)).add(upload(scales)).add(upload(x)).add(y).add(k));
  _Float16* w = upload(std::vector<_Float16>(rows * k));
  run_flat("dequantise_q4", rows * k / 2, Arguments().add(upload(nibbles)).add(upload(scales)).add(w).add(rows * k));
  for (int r = 0; r < rows; ++r) {
    double sum = 0, magnitude = 0;
    for (int i = 0; i < k; ++i) {
      int block = (r * k + i) / 32, j = i % 32, byte = nibbles[block * 16 + j % 16],
          value = (j < 16 ? byte & 15 : byte >> 4) - 8;
      ASSERT_EQ(double(w[r * k + i]), double(static_cast<_Float16>(float(value) * float(scales[block]))));
      sum += value * double(scales[block]) * x[i], magnitude += std::fabs(value * double(scales[block]) * x[i]);
    }
    ASSERT_NEAR(y[r], sum, magnitude * 1e-6);
  }
}

TEST_P(LlmKernels, GemvBf16) {
  for (int k : kWidths) {
    int rows = 5;
    auto w = random_bf16(rows * k);
    auto x = floats(k);
    float* y = output(rows);
    run("gemv_bf16", rows, Arguments().add(upload(w)).add(upload(x)).add(y).add(k));
    for (int r = 0; r < rows; ++r) {
      double sum = 0;
      for (int i = 0; i < k; ++i) sum += double(bf16_to_float(w[r * k + i])) * x[i];
      ASSERT_NEAR(y[r], sum, 1e-6 * k + 1e-6);
    }
  }
}

TEST_P(LlmKernels, GemmF32) {
  for (auto [m, n, k] : {std::tuple{1, 1, 1}, {17, 33, 65}, {64, 48, 100}}) {
    auto a = floats(m * k), b = floats(k * n);
    float* c = output(m * n);
    launch("gemm_f32", {uint32_t(n + 15) / 16, uint32_t(m + 7) / 8}, {kGroup},
           Arguments().add(upload(a)).add(upload(b)).add(c).add(m).add(n).add(k));
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int t = 0; t < k; ++t) sum += double(a[i * k + t]) * b[t * n + j];
        ASSERT_NEAR(c[i * n + j], sum, 1e-6 * k + 1e-6);
      }
  }
}

TEST_P(LlmKernels, QuantiseRows) {
  for (int n : kWidths) {
    int rows = 3;
    auto x = floats(rows * n, 5);
    std::fill(x.begin() + n, x.begin() + 2 * n, 0.0f);
    int8_t* q = upload(std::vector<int8_t>(x.size(), 99));
    float* scale = output(rows);
    run("quantise_rows", rows, Arguments().add(upload(x)).add(q).add(scale).add(n));
    for (int r = 0; r < rows; ++r) {
      float top = 0;
      for (int i = 0; i < n; ++i) top = std::max(top, std::fabs(x[r * n + i]));
      ASSERT_EQ(scale[r], top / 127.f);
      for (int i = 0; i < n; ++i)
        ASSERT_EQ(q[r * n + i], top > 0 ? int8_t(std::nearbyint(x[r * n + i] / scale[r])) : 0) << r << " " << i;
    }
  }
}

TEST_P(LlmKernels, Hadamard) {
  int rows = 3;
  auto x = floats(rows * kGroup);
  float* y = upload(x);
  run("hadamard", rows, Arguments().add(y));
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < kGroup; ++i) {
      double sum = 0;
      for (int j = 0; j < kGroup; ++j) sum += __builtin_popcount(i & j) % 2 ? -x[r * kGroup + j] : x[r * kGroup + j];
      ASSERT_NEAR(y[r * kGroup + i], sum / std::sqrt(double(kGroup)), 1e-5);
    }
}

TEST_P(LlmKernels, ConvolutionStep) {
  for (int channels : {1, 65, 200}) {
    int steps = 6;
    auto x = floats(steps * channels), before = floats(channels * 3), w = floats(channels * 4);
    float *state = upload(before), *y = output(x.size());
    run_flat("conv_step", channels,
             Arguments().add(upload(x)).add(state).add(upload(w)).add(y).add(channels).add(steps));
    auto input = [&](int c, int t) { return double(t < 0 ? before[c * 3 + 3 + t] : x[t * channels + c]); };
    for (int c = 0; c < channels; ++c) {
      for (int t = 0; t < steps; ++t) {
        double s = 0;
        for (int j = 0; j < 4; ++j) s += input(c, t - 3 + j) * w[c * 4 + j];
        ASSERT_NEAR(y[t * channels + c], s * sigmoid(s), 1e-5);
      }
      for (int j = 0; j < 3; ++j) ASSERT_EQ(state[c * 3 + j], float(input(c, steps - 3 + j)));
    }
  }
}

TEST_P(LlmKernels, GatedDeltaStep) {
  for (int keys : {1, 17, 64}) {
    int heads = 2;
    auto q = floats(heads * keys), k = floats(heads * keys), v = floats(heads * kGroup), gate = floats(heads),
         beta = floats(heads), s = floats(heads * keys * kGroup);
    float *state = upload(s), *out = output(heads * kGroup);
    run("delta_step", heads,
        Arguments()
            .add(upload(q))
            .add(upload(k))
            .add(upload(v))
            .add(upload(gate))
            .add(upload(beta))
            .add(state)
            .add(out)
            .add(keys));
    for (int h = 0; h < heads; ++h)
      for (int d = 0; d < kGroup; ++d) {
        double g = std::exp(double(gate[h])), memory = 0, o = 0;
        auto at = [&](int i) { return (h * keys + i) * kGroup + d; };
        for (int i = 0; i < keys; ++i) memory += double(k[h * keys + i]) * s[at(i)] * g;
        double delta = beta[h] * (v[h * kGroup + d] - memory);
        for (int i = 0; i < keys; ++i) {
          double n = s[at(i)] * g + k[h * keys + i] * delta;
          ASSERT_NEAR(state[at(i)], n, 1e-4);
          o += q[h * keys + i] * n;
        }
        ASSERT_NEAR(out[h * kGroup + d], o, 1e-3);
      }
  }
}

TEST_P(LlmKernels, Histogram) {
  int n = 10007;
  std::vector<uint8_t> x(n);
  std::vector<uint32_t> want(256);
  for (auto& v : x) ++want[v = uint8_t(random() % 200)];
  uint32_t* out = upload(std::vector<uint32_t>(256));
  run("histogram", 4, Arguments().add(upload(x)).add(out).add(n));
  EXPECT_EQ(download(out, 256), want);
}

TEST_P(LlmKernels, BitonicSort) {
  std::vector<uint32_t> x(3 * 256);
  for (auto& v : x) v = random() % 1000;
  uint32_t* y = upload(x);
  run("bitonic_sort", 3, Arguments().add(y));
  for (int r = 0; r < 3; ++r) std::sort(x.begin() + r * 256, x.begin() + (r + 1) * 256);
  EXPECT_EQ(download(y, x.size()), x);
}

TEST_P(LlmKernels, LogSumExp) {
  for (int n : kWidths) {
    auto x = floats(2 * n, 20);
    float* y = output(2);
    run("log_sum_exp", 2, Arguments().add(upload(x)).add(y).add(n));
    for (int r = 0; r < 2; ++r) {
      double sum = 0;
      for (int i = 0; i < n; ++i) sum += std::exp(double(x[r * n + i]));
      ASSERT_NEAR(y[r], std::log(sum), 1e-5 * (1 + std::fabs(std::log(sum))));
    }
  }
}

TEST_P(LlmKernels, SampleByWeight) {
  for (int n : {1, 64, 129, 1000}) {
    int rows = 4;
    std::vector<uint32_t> weight(rows * n), threshold(rows);
    for (auto& w : weight) w = 1 + random() % 100;
    std::vector<int> want(rows);
    for (int r = 0; r < rows; ++r) {
      uint32_t total = std::accumulate(weight.begin() + r * n, weight.begin() + (r + 1) * n, 0u), sum = 0;
      threshold[r] = random() % total;
      while (sum + weight[r * n + want[r]] <= threshold[r]) sum += weight[r * n + want[r]++];
    }
    int* out = upload(std::vector<int>(rows, -1));
    run("sample", rows, Arguments().add(upload(weight)).add(upload(threshold)).add(out).add(n));
    ASSERT_EQ(download(out, rows), want) << n;
  }
}

TEST_P(LlmKernels, MergeSplits) {
  for (int dim : {1, 100, 128, 200}) {
    int rows = 3, splits = 5;
    auto part = floats(rows * splits * dim), lse = floats(rows * splits, 10);
    lse[2] = -INFINITY;
    float* out = output(rows * dim);
    run("merge_splits", rows, Arguments().add(upload(part)).add(upload(lse)).add(out).add(splits).add(dim));
    for (int r = 0; r < rows; ++r)
      for (int d = 0; d < dim; ++d) {
        double sum = 0, o = 0;
        for (int k = 0; k < splits; ++k) {
          double e = std::exp(double(lse[r * splits + k]));
          sum += e, o += e * part[(r * splits + k) * dim + d];
        }
        ASSERT_NEAR(out[r * dim + d], o / sum, 1e-5);
      }
  }
}

TEST_P(LlmKernels, PackedHalfAxpy) {
  int n = 514;
  std::vector<_Float16> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = static_cast<_Float16>(uniform()), y[i] = static_cast<_Float16>(uniform());
  _Float16 *out = upload(y), a = static_cast<_Float16>(1.25f);
  run_flat("axpy_f16", n / 2, Arguments().add(upload(x)).add(out).add(a).add(n / 2));
  // The product and sum of f16 values are exact in f64, so this rounds once as the instruction does.
  for (int i = 0; i < n; ++i)
    ASSERT_EQ(double(out[i]), double(static_cast<_Float16>(double(a) * double(x[i]) + double(y[i]))));
}

TEST_P(LlmKernels, CompactOdd) {
  int n = 1003;
  std::vector<uint32_t> x(n), want;
  for (auto& v : x) {
    v = random();
    if (v & 1) want.push_back(v);
  }
  uint32_t *out = upload(std::vector<uint32_t>(n)), *count = upload(std::vector<uint32_t>(1));
  run_flat("compact_odd", n, Arguments().add(upload(x)).add(out).add(count).add(n));
  ASSERT_EQ(*count, want.size());
  auto got = download(out, want.size());
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  EXPECT_EQ(got, want);
}

TEST_P(LlmKernels, SixtyFourBitHash) {
  int n = 300;
  for (uint64_t modulus : {uint64_t(7), uint64_t(1000003), uint64_t(0xfedcba9876543211)}) {
    std::vector<uint64_t> x(n);
    for (auto& v : x) v = uint64_t(random()) << 32 | random();
    uint64_t* y = upload(std::vector<uint64_t>(n));
    run_flat("hash64", n, Arguments().add(upload(x)).add(y).add(modulus).add(n));
    for (int i = 0; i < n; ++i) {
      uint64_t h = x[i];
      h ^= h >> 33, h *= 0xff51afd7ed558ccdull, h ^= h >> 33, h *= 0xc4ceb9fe1a85ec53ull, h ^= h >> 33;
      ASSERT_EQ(y[i], h % modulus);
    }
  }
}

TEST_P(LlmKernels, MaximumByCompareAndSwap) {
  int n = 1001;
  auto x = floats(n, 100);
  float* best = upload(std::vector<float>{-1e30f});
  run_flat("cas_max", n, Arguments().add(upload(x)).add(best).add(n));
  EXPECT_EQ(*best, *std::max_element(x.begin(), x.end()));
}

TEST_P(LlmKernels, RepetitionPenalty) {
  auto logits = floats(500, 3);
  std::vector<int> seen(500);
  std::iota(seen.begin(), seen.end(), 0);
  std::shuffle(seen.begin(), seen.end(), random);
  seen.resize(203);
  float* at = upload(logits);
  run("penalise", 1, Arguments().add(at).add(upload(seen)).add(int(seen.size())).add(1.3f));
  for (int i : seen) logits[i] = logits[i] > 0 ? logits[i] / 1.3f : logits[i] * 1.3f;
  EXPECT_EQ(download(at, logits.size()), logits);
}

TEST_P(LlmKernels, DotDouble) {
  int n = 1027;
  std::vector<double> a(n), b(n), part(kGroup);
  for (int i = 0; i < n; ++i) a[i] = uniform(), b[i] = uniform();
  double* out = upload(std::vector<double>{-1});
  run("dot_double", 1, Arguments().add(upload(a)).add(upload(b)).add(out).add(n));
  for (int i = 0; i < n; ++i) part[i % kGroup] = std::fma(a[i], b[i], part[i % kGroup]);
  for (int step = kGroup / 2; step; step /= 2)
    for (int i = 0; i < step; ++i) part[i] += part[i + step];
  EXPECT_EQ(*out, part[0]);
}

TEST_P(LlmKernels, CopyBytes) {
  for (int n : {1, 3, 129, 1000}) {
    std::vector<uint8_t> from(n + 8), want(n + 8, 0xee);
    for (auto& v : from) v = uint8_t(random());
    std::copy(from.begin() + 3, from.begin() + 3 + n, want.begin() + 5 - 4);
    uint8_t* to = upload(std::vector<uint8_t>(n + 8, 0xee));
    run("copy_bytes", 3, Arguments().add(upload(from) + 3).add(to + 1).add(n));
    ASSERT_EQ(download(to, want.size()), want);
  }
}

TEST_P(LlmKernels, SwitchInterpreter) {
  int steps = 41;
  std::vector<uint8_t> code(steps);
  for (auto& c : code) c = uint8_t(random() % 9);
  auto input = below(kGroup, 1 << 20);
  int* out = upload(std::vector<int>(kGroup, -1));
  run("interpret", 1, Arguments().add(upload(code)).add(upload(input)).add(out).add(steps));
  for (int t = 0; t < kGroup; ++t) {
    uint32_t a = uint32_t(input[t]), b = uint32_t(t);
    for (int s = 0; s < steps; ++s) {
      switch (code[(s + t) % steps]) {
        case 0:
          a += b;
          break;
        case 1:
          b ^= a << 3;
          break;
        case 2:
          a = a * 31 + 7;
          break;
        case 3:
          b = b >> 5 | b << 27;
          break;
        case 4:
          a -= b;
          break;
        case 5:
          b = uint32_t(int(a) / int(1 + (b & 15)));
          break;
        case 6:
          a = int(a) < int(b) ? a : b;
          break;
        default:
          a ^= b;
          break;
      }
    }
    ASSERT_EQ(out[t], int(a ^ b)) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, LlmKernels, ::testing::ValuesIn(kAllTargetsAndWave64), target_name);

}  // namespace
}  // namespace crest_sim::test
