// Compiled kernels without matrix instructions against references in double precision.
#include "kernel_support.h"

namespace crest_sim::test {
namespace {

class BasicKernels : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    check(CheckOptions::standard());
    load("basic");
  }
};

TEST_P(BasicKernels, VectorAdd) {
  int n = 10007;
  std::vector<float> a(n), b(n);
  for (int i = 0; i < n; ++i) a[i] = uniform(), b[i] = uniform();
  float* out = upload(std::vector<float>(n, -9));
  launch("vadd", {(n + 255u) / 256}, {256}, Arguments().add(upload(a)).add(upload(b)).add(out).add(n));
  for (int i = 0; i < n; ++i) ASSERT_EQ(out[i], a[i] + b[i]) << i;
}

TEST_P(BasicKernels, RmsNorm) {
  int rows = 5, n = 4096;
  auto x = random_bf16(size_t(rows) * n, 3), w = random_bf16(n);
  for (auto& q : w) q = float_to_bf16(1 + 0.1f * bf16_to_float(q));
  uint16_t* y = upload(std::vector<uint16_t>(x.size()));
  launch("rmsnorm", {uint32_t(rows)}, {256}, Arguments().add(upload(x)).add(upload(w)).add(y).add(n).add(1e-6f));
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += std::pow(bf16_to_float(x[r * n + i]), 2.0);
    double scale = 1 / std::sqrt(sum / n + 1e-6);
    for (int i = 0; i < n; ++i) {
      double want = bf16_to_float(x[r * n + i]) * scale * bf16_to_float(w[i]);
      ASSERT_NEAR(bf16_to_float(y[r * n + i]), want, std::fabs(want) * 0x1p-8 + 1e-6) << r << " " << i;
    }
  }
}

TEST_P(BasicKernels, Softmax) {
  int rows = 7, n = 1000;
  std::vector<float> x(rows * n);
  for (auto& q : x) q = uniform() * 8;
  float* y = upload(std::vector<float>(x.size()));
  launch("softmax", {uint32_t(rows)}, {256}, Arguments().add(upload(x)).add(y).add(n));
  for (int r = 0; r < rows; ++r) {
    double top = -1e9, sum = 0;
    for (int i = 0; i < n; ++i) top = std::max(top, double(x[r * n + i]));
    for (int i = 0; i < n; ++i) sum += std::exp(x[r * n + i] - top);
    for (int i = 0; i < n; ++i) {
      double want = std::exp(x[r * n + i] - top) / sum;
      ASSERT_NEAR(y[r * n + i], want, want * 1e-5);
    }
  }
}

TEST_P(BasicKernels, SiluMul) {
  int n = 2048;
  auto g = random_bf16(n, 4), u = random_bf16(n);
  uint16_t* o = upload(std::vector<uint16_t>(n));
  launch("silu_mul", {uint32_t(n / 512)}, {256}, Arguments().add(upload(g)).add(upload(u)).add(o).add(n));
  for (int i = 0; i < n; ++i) {
    double x = bf16_to_float(g[i]), want = x / (1 + std::exp(-x)) * bf16_to_float(u[i]);
    ASSERT_NEAR(bf16_to_float(o[i]), want, std::fabs(want) * 0x1p-8 * 1.01 + 1e-6);
  }
}

TEST_P(BasicKernels, Rope) {
  int rows = 16, heads = 3, dim = 128;
  auto before = random_bf16(size_t(rows) * heads * dim);
  std::vector<int> position(rows);
  for (int i = 0; i < rows; ++i) position[i] = i * 37;
  uint16_t* q = upload(before);
  launch("rope", {uint32_t(rows), uint32_t(heads)}, {64},
         Arguments().add(q).add(upload(position)).add(heads).add(dim).add(float(std::log2(10000.0))));
  for (int r = 0; r < rows; ++r)
    for (int h = 0; h < heads; ++h)
      for (int i = 0; i < dim / 2; ++i) {
        size_t at = (size_t(r) * heads + h) * dim + i;
        double a = position[r] * std::pow(10000.0, -2.0 * i / dim), x = bf16_to_float(before[at]),
               y = bf16_to_float(before[at + 64]);
        ASSERT_NEAR(bf16_to_float(q[at]), x * std::cos(a) - y * std::sin(a), 0.01);
        ASSERT_NEAR(bf16_to_float(q[at + 64]), x * std::sin(a) + y * std::cos(a), 0.01);
      }
}

TEST_P(BasicKernels, IntegerGemv) {
  int rows = 13, k = 1024;
  std::vector<int8_t> w(rows * k), x(k);
  std::vector<float> ws(rows * k / 32), xs(k / 32);
  for (auto& q : w) q = int8_t(random() % 255 - 127);
  for (auto& q : x) q = int8_t(random() % 255 - 127);
  for (auto& q : ws) q = uniform() * 0.01f;
  for (auto& q : xs) q = uniform() * 0.01f;
  float* y = upload(std::vector<float>(rows));
  launch("gemv_q8", {uint32_t(rows)}, {GetParam().wave64() ? 64u : 32u},
         Arguments().add(upload(w)).add(upload(ws)).add(upload(x)).add(upload(xs)).add(y).add(k));
  for (int r = 0; r < rows; ++r) {
    double want = 0;
    for (int b = 0; b < k / 32; ++b) {
      int q = 0;
      for (int j = 0; j < 32; ++j) q += w[r * k + b * 32 + j] * x[b * 32 + j];
      want += double(q) * ws[r * (k / 32) + b] * xs[b];
    }
    ASSERT_NEAR(y[r], want, 1e-4 * (std::fabs(want) + 1e-2));
  }
}

// Division and rounding must be exact for this one to agree bit for bit.
TEST_P(BasicKernels, QuantiseToInt8) {
  int blocks = 37;
  std::vector<float> x(blocks * 32);
  for (auto& z : x) z = uniform() * 5;
  int8_t* q = upload(std::vector<int8_t>(x.size()));
  float* d = upload(std::vector<float>(blocks));
  launch("quant_q8", {uint32_t(blocks)}, {32}, Arguments().add(upload(x)).add(q).add(d));
  for (int b = 0; b < blocks; ++b) {
    float top = 0;
    for (int i = 0; i < 32; ++i) top = std::max(top, std::fabs(x[b * 32 + i]));
    ASSERT_EQ(d[b], top / 127.f);
    for (int i = 0; i < 32; ++i) ASSERT_EQ(q[b * 32 + i], int8_t(std::round(x[b * 32 + i] / d[b])));
  }
}

TEST_P(BasicKernels, ArgMax) {
  int n = 50000;
  std::vector<float> x(n);
  for (auto& z : x) z = uniform() * 9;
  uint64_t* out = upload(std::vector<uint64_t>(1));
  launch("argmax", {64}, {256}, Arguments().add(upload(x)).add(out).add(n));
  auto best = std::max_element(x.begin(), x.end()) - x.begin();
  EXPECT_EQ(~uint32_t(*out), uint32_t(best));
}

TEST_P(BasicKernels, CountExperts) {
  int n = 20000;
  std::vector<int> id(n), want(64);
  for (auto& z : id) z = int(random() & 63), ++want[z];
  int* count = upload(std::vector<int>(64));
  launch("moe_count", {8}, {256}, Arguments().add(upload(id)).add(count).add(n));
  EXPECT_EQ(download(count, 64), want);
}

INSTANTIATE_TEST_SUITE_P(Targets, BasicKernels, ::testing::ValuesIn(kAllTargetsAndWave64), target_name);

}  // namespace
}  // namespace crest_sim::test
