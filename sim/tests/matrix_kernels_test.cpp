// Compiled GEMM and attention kernels against double precision.
#include "kernel_support.h"

namespace crest_sim::test {
namespace {

enum class Element { kBf16, kI8, kFp8 };

class MatrixKernels : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    check(CheckOptions::standard());
    load("matrix");
  }

  float fp8(uint8_t x) const {
    int bias = device_->target().fnuz_fp8 ? 8 : 7, e = (x >> 3) & 15, m = x & 7;
    float v = e ? std::ldexp(float(m | 8), e - bias - 3) : std::ldexp(float(m), 1 - bias - 3);
    return x >> 7 ? -v : v;
  }

  std::vector<uint8_t> fill(size_t count, Element type, std::vector<float>& values) {
    std::vector<uint8_t> bytes(count * (type == Element::kBf16 ? 2 : 1));
    values.resize(count);
    for (size_t i = 0; i < count; ++i) {
      if (type == Element::kBf16) {
        uint16_t x = float_to_bf16(uniform());
        std::memcpy(&bytes[2 * i], &x, 2);
        values[i] = bf16_to_float(x);
      } else if (type == Element::kI8) {
        bytes[i] = uint8_t(random());
        values[i] = int8_t(bytes[i]);
      } else {
        do bytes[i] = uint8_t(random());
        while ((bytes[i] & 0x7f) > 0x50 || bytes[i] == 0x80);
        values[i] = fp8(bytes[i]);
      }
    }
    return bytes;
  }

  /// C[m, n] = A[m, k] · B[n, k]ᵀ. The bound is one rounding of f32 per product of the sum.
  void gemm(const char* kernel, int m, int n, int k, int tile_m, int tile_n, uint32_t threads, Element type) {
    std::vector<float> a, b;
    auto a_bytes = fill(size_t(m) * k, type, a), b_bytes = fill(size_t(n) * k, type, b);
    float* c = upload(std::vector<float>(size_t(m) * n, -1));
    launch(kernel, {uint32_t(n / tile_n), uint32_t(m / tile_m)}, {threads},
           Arguments().add(upload(a_bytes)).add(upload(b_bytes)).add(c).add(m).add(n).add(k));
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double want = 0, magnitude = 0;
        for (int t = 0; t < k; ++t) {
          double p = double(a[size_t(i) * k + t]) * b[size_t(j) * k + t];
          want += p;
          magnitude += std::fabs(p);
        }
        double got =
            type == Element::kI8 ? double(std::bit_cast<int32_t>(c[size_t(i) * n + j])) : double(c[size_t(i) * n + j]);
        double bound = type == Element::kI8 ? 0 : magnitude * k * 0x1p-24;
        ASSERT_NEAR(got, want, bound) << kernel << " " << i << " " << j;
      }
  }

  void attention(bool causal) {
    int s = 256, d = 128, heads = 1;
    auto q = random_bf16(size_t(heads) * s * d), k = random_bf16(q.size()), v = random_bf16(q.size());
    uint16_t* o = upload(std::vector<uint16_t>(q.size()));
    float scale = 1 / std::sqrt(float(d));
    bool wave64 = GetParam().wave64();
    launch("fa_fwd", {uint32_t(s / (wave64 ? 128 : 64)), uint32_t(heads)}, {wave64 ? 256u : 128u},
           Arguments().add(upload(q)).add(upload(k)).add(upload(v)).add(o).add(s).add(scale).add(int(causal)));
    std::vector<double> p(s);
    for (int i = 0; i < s; ++i) {
      int keys = causal ? i + 1 : s;
      double top = -1e9, sum = 0;
      for (int j = 0; j < keys; ++j) {
        double dot = 0;
        for (int x = 0; x < d; ++x) dot += double(bf16_to_float(q[i * d + x])) * bf16_to_float(k[j * d + x]);
        p[j] = dot * scale;
        top = std::max(top, p[j]);
      }
      for (int j = 0; j < keys; ++j) p[j] = std::exp(p[j] - top), sum += p[j];
      for (int x = 0; x < d; ++x) {
        double want = 0, squares = 0;
        for (int j = 0; j < keys; ++j) {
          double t = p[j] / sum * bf16_to_float(v[j * d + x]);
          want += t;
          squares += t * t;
        }
        // Rounding of P and of the output to bf16.
        ASSERT_NEAR(bf16_to_float(o[i * d + x]), want, 0x1p-8 * (std::fabs(want) + 2 * std::sqrt(squares)) + 2e-5)
            << i << " " << x;
      }
    }
  }

  bool cdna() const { return device_->target().cdna; }
};

TEST_P(MatrixKernels, Bf16GemmOneWave) {
  if (cdna())
    gemm("gemm_bf16_16x16x16", 64, 64, 128, 16, 16, 64, Element::kBf16);
  else
    gemm("gemm_bf16_wmma", 64, 64, 128, 16, 16, 32, Element::kBf16);
}

TEST_P(MatrixKernels, Bf16GemmThroughLds) {
  if (cdna())
    gemm("gemm_bf16_32x32x8", 128, 128, 256, 128, 128, 256, Element::kBf16);
  else
    gemm("gemm_bf16_wmma_lds", 128, 128, 256, 64, 64, 128, Element::kBf16);
}

TEST_P(MatrixKernels, Int8Gemm) {
  if (cdna())
    gemm("gemm_i8_16x16x32", 64, 64, 128, 16, 16, 64, Element::kI8);
  else
    gemm("gemm_iu8_wmma", 64, 64, 128, 16, 16, 32, Element::kI8);
}

TEST_P(MatrixKernels, Fp8Gemm) {
  if (!cdna()) GTEST_SKIP() << "RDNA3 has no fp8 matrix instructions";
  gemm("gemm_fp8_16x16x32", 64, 64, 128, 16, 16, 64, Element::kFp8);
}

TEST_P(MatrixKernels, StrictArithmetic) {
  config.strict_matrix = true;
  if (cdna())
    gemm("gemm_bf16_32x32x8", 128, 128, 64, 128, 128, 256, Element::kBf16);
  else
    gemm("gemm_bf16_wmma", 32, 32, 64, 16, 16, 32, Element::kBf16);
}

TEST_P(MatrixKernels, Attention) { attention(false); }
TEST_P(MatrixKernels, CausalAttention) { attention(true); }

INSTANTIATE_TEST_SUITE_P(Targets, MatrixKernels, ::testing::ValuesIn(kAllTargets), target_name);

}  // namespace
}  // namespace crest_sim::test
