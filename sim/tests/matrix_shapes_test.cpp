// Compiled kernels with every family of matrix instruction at awkward sizes, grouped-query attention, dot-product GEMV
// and fp8 quantisation, against double precision.
#include <gtest/gtest.h>

#include <bit>

#include "kernel_support.h"
#include "narrow_oracle.h"

namespace crest_sim::test {
namespace {

using crest_sim_test::decode;
using crest_sim_test::Format;
namespace formats = crest_sim_test;

/// One value of K of a matrix that a kernel reads: how it is stored and what it is worth.
struct Elements {
  std::vector<uint8_t> bytes;
  std::vector<double> values;
};

class MatrixShapes : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    load("matrix_shapes");
  }
  bool cdna() const { return device_->target().cdna; }
  bool gfx942() const { return device_->target().arch == Arch::kGfx942; }
  uint32_t wave() const { return GetParam().wave64() ? 64 : 32; }

  /// Random codes of moderate size, some zeros and subnormals.
  Elements random_elements(size_t count, const Format& f) {
    Elements e;
    const size_t width = size_t(f.width()) / 8;
    for (size_t i = 0; i < count; ++i) {
      uint32_t code;
      double x;
      do {
        code = uint32_t(random()) & f.mask();
        x = std::fabs(decode(f, code).value());
      } while (decode(f, code).kind != formats::Kind::kFinite || x > 4 || (x < 0x1p-24 && x != 0));
      for (size_t byte = 0; byte < width; ++byte) e.bytes.push_back(uint8_t(code >> 8 * byte));
      e.values.push_back(decode(f, code).value());
    }
    return e;
  }
  template <class T>
  Elements numbers(size_t count, T (*make)(std::mt19937&)) {
    Elements e;
    for (size_t i = 0; i < count; ++i) {
      const T x = make(random);
      const auto raw = std::bit_cast<std::array<uint8_t, sizeof(T)>>(x);
      e.bytes.insert(e.bytes.end(), raw.begin(), raw.end());
      e.values.push_back(double(x));
    }
    return e;
  }

  struct Sums {
    double value, magnitude;
  };
  static Sums dot(const Elements& a, const Elements& b, int i, int j, int k) {
    Sums s{0, 0};
    for (int t = 0; t < k; ++t) {
      const double p = a.values[size_t(i) * k + t] * b.values[size_t(j) * k + t];
      s.value += p;
      s.magnitude += std::fabs(p);
    }
    return s;
  }

  /// C = A·Bᵀ for an awkward size; `error` per product, in units of the sum of magnitudes. 0: exact.
  template <class C>
  void gemm(const char* kernel, int tile_m, int tile_n, const Elements& a, const Elements& b, int m, int n, int k,
            double error) {
    C* c = upload(std::vector<C>(size_t(m) * n + 64, C(-77)));
    launch(kernel, {uint32_t((n + tile_n - 1) / tile_n), uint32_t((m + tile_m - 1) / tile_m)}, {wave()},
           Arguments().add(upload(a.bytes)).add(upload(b.bytes)).add(c).add(m).add(n).add(k));
    const auto got = download(c, size_t(m) * n + 64);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        const Sums want = dot(a, b, i, j, k);
        ASSERT_NEAR(double(got[size_t(i) * n + j]), want.value, error * (k + 1) * want.magnitude)
            << kernel << " " << i << " " << j;
      }
    }
    for (int i = 0; i < 64; ++i) ASSERT_EQ(got[size_t(m) * n + i], C(-77)) << kernel << " wrote behind C";
  }

  struct Size {
    int m, n, k;
  };
  static constexpr Size kSizes[] = {{1, 1, 1}, {7, 33, 65}, {64, 48, 31}, {37, 19, 130}};

  template <class C>
  void float_gemms(const char* kernel, int tile, const Format& fa, const Format& fb) {
    for (const Size& s : kSizes) {
      for (const bool strict : {false, true}) {
        config.strict_matrix = strict;
        const Elements a = random_elements(size_t(s.m) * s.k, fa), b = random_elements(size_t(s.n) * s.k, fb);
        // A strict step may cut each product by 2^-22 of the largest one.
        gemm<C>(kernel, tile, tile, a, b, s.m, s.n, s.k, strict ? 0x1p-21 : 0x1p-24);
      }
    }
  }
  template <class T, class C>
  void number_gemms(const char* kernel, int tile, T (*make)(std::mt19937&), double error) {
    for (const Size& s : kSizes) {
      gemm<C>(kernel, tile, tile, numbers<T>(size_t(s.m) * s.k, make), numbers<T>(size_t(s.n) * s.k, make), s.m, s.n,
              s.k, error);
    }
  }
};

int8_t any_i8(std::mt19937& r) { return int8_t(r()); }
uint8_t any_u8(std::mt19937& r) { return uint8_t(r()); }
float any_f32(std::mt19937& r) { return std::uniform_real_distribution<float>(-1, 1)(r); }
double any_f64(std::mt19937& r) { return std::uniform_real_distribution<double>(-1, 1)(r); }
/// Values that TF32 holds: the truncation of xf32 inputs changes nothing.
float any_tf32(std::mt19937& r) { return std::bit_cast<float>(std::bit_cast<uint32_t>(any_f32(r)) & 0xffffe000u); }

TEST_P(MatrixShapes, HalfPrecision) {
  float_gemms<float>("gemm_f16_16", 16, formats::kF16, formats::kF16);
  float_gemms<float>("gemm_bf16_16", 16, formats::kBf16, formats::kBf16);
  if (!cdna()) return;
  float_gemms<float>("gemm_f16_32", 32, formats::kF16, formats::kF16);
  if (gfx942()) return;
  float_gemms<float>("gemm_f16_16x16x32", 16, formats::kF16, formats::kF16);
  float_gemms<float>("gemm_f16_32x32x16", 32, formats::kF16, formats::kF16);
  float_gemms<float>("gemm_bf16_16x16x32", 16, formats::kBf16, formats::kBf16);
}

TEST_P(MatrixShapes, Integers) {
  if (cdna()) {
    number_gemms<int8_t, int32_t>("gemm_i8_32", 32, any_i8, 0);
    if (!gfx942()) number_gemms<int8_t, int32_t>("gemm_i8_16x16x64", 16, any_i8, 0);
    return;
  }
  number_gemms<int8_t, int32_t>("gemm_i8_16", 16, any_i8, 0);
  number_gemms<uint8_t, int32_t>("gemm_u8_16", 16, any_u8, 0);
}

TEST_P(MatrixShapes, FourBitIntegers) {
  if (cdna()) GTEST_SKIP() << "CDNA has no 4-bit integer matrix instructions";
  const int m = 37, n = 19, k = 144;
  const auto nibbles = [&](size_t count, bool is_signed) {
    Elements e;
    for (size_t i = 0; i < count; i += 2) {
      const uint8_t byte = uint8_t(random());
      e.bytes.push_back(byte);
      for (int x : {byte & 15, byte >> 4}) e.values.push_back(is_signed && x > 7 ? x - 16 : x);
    }
    return e;
  };
  gemm<int32_t>("gemm_i4_16", 16, 16, nibbles(size_t(m) * k, true), nibbles(size_t(n) * k, false), m, n, k, 0);
}

TEST_P(MatrixShapes, SingleAndDoublePrecision) {
  if (!cdna()) GTEST_SKIP() << "RDNA3 has no fp32 and fp64 matrix instructions";
  number_gemms<float, float>("gemm_f32_16", 16, any_f32, 0x1p-24);
  number_gemms<float, float>("gemm_f32_32", 32, any_f32, 0x1p-24);
  number_gemms<double, double>("gemm_f64_16", 16, any_f64, 0x1p-52);
  if (gfx942()) number_gemms<float, float>("gemm_xf32_16", 16, any_tf32, 0x1p-24);
}

TEST_P(MatrixShapes, EightBitFloats) {
  if (!cdna()) GTEST_SKIP() << "RDNA3 has no fp8 matrix instructions";
  const Format fp8 = gfx942() ? formats::kE4M3Fnuz : formats::kE4M3,
               bf8 = gfx942() ? formats::kE5M2Fnuz : formats::kE5M2;
  float_gemms<float>("gemm_fp8_32", 32, fp8, fp8);
  float_gemms<float>("gemm_bf8_16", 16, bf8, bf8);
  float_gemms<float>("gemm_fp8_bf8_16", 16, fp8, bf8);
}

TEST_P(MatrixShapes, Microscaling) {
  if (!cdna() || gfx942()) GTEST_SKIP() << "only gfx950 has scaled matrix instructions";
  const int m = 37, n = 19, k = 384;
  for (const bool four_bit : {false, true}) {
    Elements a, b;
    std::vector<uint8_t> scale_a, scale_b;
    const auto make = [&](Elements& e, std::vector<uint8_t>& scales, int rows) {
      for (int i = 0; i < rows; ++i) {
        for (int block = 0; block < k / 32; ++block) {
          scales.push_back(uint8_t(122 + random() % 10));
          const double scale = std::ldexp(1.0, scales.back() - 127);
          const Elements codes = four_bit ? Elements{} : random_elements(32, formats::kE4M3);
          e.bytes.insert(e.bytes.end(), codes.bytes.begin(), codes.bytes.end());
          for (double x : codes.values) e.values.push_back(x * scale);
          for (int pair = 0; four_bit && pair < 16; ++pair) {
            e.bytes.push_back(uint8_t(random()));
            for (int code : {e.bytes.back() & 15, e.bytes.back() >> 4})
              e.values.push_back(decode(formats::kE2M1, uint32_t(code)).value() * scale);
          }
        }
      }
    };
    make(a, scale_a, m);
    make(b, scale_b, n);
    float* c = upload(std::vector<float>(size_t(m) * n, -1));
    launch(four_bit ? "gemm_mxfp4" : "gemm_mxfp8", {uint32_t(n + 15) / 16, uint32_t(m + 15) / 16}, {64},
           Arguments()
               .add(upload(a.bytes))
               .add(upload(b.bytes))
               .add(upload(scale_a))
               .add(upload(scale_b))
               .add(c)
               .add(m)
               .add(n)
               .add(k));
    const auto got = download(c, size_t(m) * n);
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        const Sums want = dot(a, b, i, j, k);
        ASSERT_NEAR(got[size_t(i) * n + j], want.value, 0x1p-24 * k * want.magnitude) << i << " " << j;
      }
    }
  }
}

TEST_P(MatrixShapes, SmallBatchesAndSparseOperands) {
  if (!cdna()) GTEST_SKIP() << "RDNA3 has neither";
  const int k = 36;
  const Elements a = random_elements(16 * 4 * k, formats::kBf16), b = random_elements(16 * 4 * k, formats::kBf16);
  float* c = upload(std::vector<float>(256, -1));
  launch("batched_4x4", {1}, {64}, Arguments().add(upload(a.bytes)).add(upload(b.bytes)).add(c).add(k));
  for (int block = 0; block < 16; ++block) {
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const Sums want = dot(a, b, block * 4 + i, block * 4 + j, k);
        ASSERT_NEAR(c[block * 16 + i * 4 + j], want.value, 0x1p-24 * k * want.magnitude);
      }
    }
  }

  const int m = 21, n = 35, wide = 96;
  const Elements stored = random_elements(size_t(m) * wide / 2, formats::kF16),
                 dense_b = random_elements(size_t(n) * wide, formats::kF16);
  std::vector<uint8_t> places;
  Elements dense_a;
  dense_a.values.assign(size_t(m) * wide, 0);
  for (int i = 0; i < m; ++i) {
    for (int quad = 0; quad < wide / 4; ++quad) {
      const int first = int(random() % 3), second = first + 1 + int(random() % uint32_t(3 - first));
      places.push_back(uint8_t(first | second << 2));
      dense_a.values[size_t(i) * wide + quad * 4 + first] = stored.values[size_t(i) * wide / 2 + quad * 2];
      dense_a.values[size_t(i) * wide + quad * 4 + second] = stored.values[size_t(i) * wide / 2 + quad * 2 + 1];
    }
  }
  float* out = upload(std::vector<float>(size_t(m) * n, -1));
  launch("gemm_sparse", {uint32_t(n + 15) / 16, uint32_t(m + 15) / 16}, {64},
         Arguments()
             .add(upload(stored.bytes))
             .add(upload(places))
             .add(upload(dense_b.bytes))
             .add(out)
             .add(m)
             .add(n)
             .add(wide));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const Sums want = dot(dense_a, dense_b, i, j, wide);
      ASSERT_NEAR(out[size_t(i) * n + j], want.value, 0x1p-24 * wide * want.magnitude) << i << " " << j;
    }
  }
}

TEST_P(MatrixShapes, HalfPrecisionAccumulators) {
  if (cdna()) GTEST_SKIP() << "CDNA accumulates in fp32";
  const int m = 45, n = 21, k = 70;
  const Elements a = random_elements(size_t(m) * k, formats::kF16), b = random_elements(size_t(n) * k, formats::kF16);
  uint16_t* c = upload(std::vector<uint16_t>(size_t(m) * n, 0xffff));
  launch("gemm_f16_f16", {uint32_t(n + 15) / 16, uint32_t(m + 31) / 32}, {wave()},
         Arguments().add(upload(a.bytes)).add(upload(b.bytes)).add(c).add(m).add(n).add(k));
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const Sums want = dot(a, b, i, j, k);
      // Every pair of products rounds the sum to fp16.
      ASSERT_NEAR(decode(formats::kF16, c[size_t(i) * n + j]).value(), want.value,
                  0x1p-11 * (k / 2 + 8) * want.magnitude)
          << i << " " << j;
    }
  }
}

TEST_P(MatrixShapes, DotProductGemv) {
  for (const int columns : {1, 2, 63, 130, 1001}) {
    const Elements w = random_elements(size_t(5) * columns, formats::kF16),
                   x = random_elements(size_t(columns), formats::kF16);
    float* y = upload(std::vector<float>(5, -1));
    launch("gemv_f16", {5}, {wave()}, Arguments().add(upload(w.bytes)).add(upload(x.bytes)).add(y).add(columns));
    for (int i = 0; i < 5; ++i) {
      const Sums want = dot(w, x, i, 0, columns);
      ASSERT_NEAR(y[i], want.value, 0x1p-22 * (columns + 16) * want.magnitude + 0x1p-126 * columns) << columns;
    }
    const Elements wi = numbers<int8_t>(size_t(5) * columns * 4, any_i8),
                   xi = numbers<int8_t>(size_t(columns) * 4, any_i8);
    int* yi = upload(std::vector<int>(5, -1));
    launch("gemv_i8", {5}, {wave()}, Arguments().add(upload(wi.bytes)).add(upload(xi.bytes)).add(yi).add(columns));
    for (int i = 0; i < 5; ++i) ASSERT_EQ(yi[i], dot(wi, xi, i, 0, columns * 4).value);
  }
}

TEST_P(MatrixShapes, GroupedQueryAttention) {
  struct Case {
    int queries, keys, heads, group, causal;
  };
  for (const Case& c : {Case{1, 1, 1, 1, 0}, Case{1, 77, 4, 4, 1}, Case{33, 33, 2, 1, 1}, Case{50, 65, 4, 2, 1},
                        Case{17, 100, 2, 2, 0}}) {
    for (const bool strict : {false, true}) {
      config.strict_matrix = strict;
      const int d = 64;
      const Elements q = random_elements(size_t(c.heads) * c.queries * d, formats::kF16),
                     k = random_elements(size_t(c.heads / c.group) * c.keys * d, formats::kF16),
                     v = random_elements(k.values.size(), formats::kF16);
      uint16_t* o = upload(std::vector<uint16_t>(q.values.size(), 0xffff));
      const float scale = 0.125f;
      launch("attention_f16", {uint32_t(c.queries + 15) / 16, uint32_t(c.heads)}, {wave()},
             Arguments()
                 .add(upload(q.bytes))
                 .add(upload(k.bytes))
                 .add(upload(v.bytes))
                 .add(o)
                 .add(c.queries)
                 .add(c.keys)
                 .add(c.group)
                 .add(scale)
                 .add(c.causal));
      for (int h = 0; h < c.heads; ++h) {
        for (int i = 0; i < c.queries; ++i) {
          const int seen = c.causal ? c.keys - c.queries + i + 1 : c.keys;
          std::vector<double> p(size_t(seen), 0);
          double top = -1e30, sum = 0;
          const auto value = [&](const Elements& e, int head, int row, int x) {
            return e.values[(size_t(head) * c.keys + row) * d + x];
          };
          for (int j = 0; j < seen; ++j) {
            for (int x = 0; x < d; ++x)
              p[j] += q.values[(size_t(h) * c.queries + i) * d + x] * value(k, h / c.group, j, x) * scale;
            top = std::max(top, p[j]);
          }
          for (double& x : p) sum += x = std::exp(x - top);
          for (int x = 0; x < d; ++x) {
            double want = 0, magnitude = 0;
            for (int j = 0; j < seen; ++j) {
              want += p[j] / sum * value(v, h / c.group, j, x);
              magnitude += p[j] / sum * std::fabs(value(v, h / c.group, j, x));
            }
            // P and the output are rounded to fp16 (subnormal P too); scores carry about 1e-5.
            const double got = decode(formats::kF16, o[(size_t(h) * c.queries + i) * d + x]).value();
            ASSERT_NEAR(got, want, 0x1p-10 * (magnitude + std::fabs(want)) + 0x1p-23 * seen * 4 + 1e-5)
                << "query " << i << " of head " << h;
          }
        }
      }
    }
  }
}

TEST_P(MatrixShapes, Fp8RowsAndBack) {
  if (!cdna()) GTEST_SKIP() << "RDNA3 has no fp8 conversions";
  const Format f = gfx942() ? formats::kE4M3Fnuz : formats::kE4M3;
  const float largest = float(formats::plain_magnitude(f, formats::end_codes(f).largest));
  const int rows = 5, columns = 131;
  std::vector<float> in(size_t(rows) * columns);
  for (auto& x : in) x = uniform() * std::exp2(float(random() % 12) - 6);
  for (int c = 0; c < columns; ++c) in[size_t(2) * columns + c] = 0;  // a row of zeros
  uint8_t* codes = upload(std::vector<uint8_t>(in.size(), 0xee));
  float* scales = upload(std::vector<float>(rows, -1));
  launch("quantise_fp8", {uint32_t(rows)}, {64},
         Arguments().add(upload(in)).add(codes).add(scales).add(columns).add(largest));
  float* back = upload(std::vector<float>(in.size(), -1));
  launch("dequantise_fp8", {uint32_t(in.size() + 63) / 64}, {64},
         Arguments().add(codes).add(scales).add(back).add(int(in.size())).add(columns));
  for (int r = 0; r < rows; ++r) {
    float top = 0;
    for (int c = 0; c < columns; ++c) top = std::max(top, std::fabs(in[size_t(r) * columns + c]));
    ASSERT_EQ(scales[r], top > 0 ? top / largest : 1.0f);
    for (int c = 0; c < columns; ++c) {
      const size_t at = size_t(r) * columns + c;
      const uint32_t want = formats::narrow_nearest(f, in[at] / scales[r], false);
      ASSERT_EQ(codes[at], want) << r << " " << c;
      ASSERT_EQ(back[at], float(decode(f, want).value()) * scales[r]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MatrixShapes, ::testing::ValuesIn(kAllTargetsAndWave64), target_name);

}  // namespace
}  // namespace crest_sim::test
