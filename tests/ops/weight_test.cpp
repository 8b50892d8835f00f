#include "ops/weight.h"

#include "ops/cases/weights.h"
#include "ops/quant/rotation.h"
#include "ops/support.h"
#include "tensor/half.h"

namespace crest::ops::testing {
namespace {

using tensor::DType;

std::span<const std::byte> bytes_of(const auto& values) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(values[0])};
}

// Packing of one matrix by the definition of AWQ's order: column c of a word in slot [0,4,1,5,2,6,3,7][c % 8].
struct ParoFile {
  int64_t rows, cols;
  std::vector<uint32_t> qweight, qzeros;
  std::vector<uint16_t> scales;
  std::vector<int> q, z;  // [cols][rows], [cols/128][rows]

  ParoFile(int64_t rows_, int64_t cols_, CaseRandom& random) : rows(rows_), cols(cols_) {
    constexpr int kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};  // bits 4p..4p+3 hold column kOrder[p]
    qweight.assign(static_cast<size_t>(cols * rows / 8), 0);
    qzeros.assign(static_cast<size_t>(cols / 128 * rows / 8), 0);
    const auto pack = [&](std::vector<uint32_t>& words, std::vector<int>& values, int64_t count) {
      values.resize(static_cast<size_t>(count * rows));
      for (auto& value : values) value = static_cast<int>(random.below(16));
      for (size_t w = 0; w < words.size(); ++w) {
        for (size_t p = 0; p < 8; ++p)
          words[w] |= static_cast<uint32_t>(values[8 * w + static_cast<size_t>(kOrder[p])]) << 4 * p;
      }
    };
    pack(qweight, q, cols);
    pack(qzeros, z, cols / 128);
    for (int64_t i = 0; i < cols / 128 * rows; ++i) scales.push_back(tensor::f32_to_f16(random.uniform(0.01f, 0.1f)));
  }
  ParoTensors tensors() const { return {bytes_of(qweight), bytes_of(qzeros), bytes_of(scales)}; }
  double value(int64_t row, int64_t col) const {
    const auto group = static_cast<size_t>(col / 128 * rows + row);
    return (q[static_cast<size_t>(col * rows + row)] - z[group]) * double{tensor::f16_to_f32(scales[group])};
  }
};

TEST(ParoWeight, UnpacksAwqOrder) {
  CaseRandom random(1);
  const ParoFile a(24, 384, random);
  const ParoFile b(24, 384, random);
  const ParoTensors experts[] = {a.tensors(), b.tensors()};
  const Weight weight = make_paro_weight(24, 384, experts, nullptr).value();
  std::vector<float> row(384);
  for (int64_t e = 0; e < 2; ++e) {
    for (int64_t r = 0; r < 24; ++r) {
      dequantize_weight_row(weight, e, r, row.data());
      for (int64_t c = 0; c < 384; ++c) {
        ASSERT_FLOAT_EQ(row[static_cast<size_t>(c)], static_cast<float>((e == 0 ? a : b).value(r, c)))
            << e << " " << r << " " << c;
      }
    }
  }
}

TEST(ParoWeight, RefusesSizesThatDoNotFit) {
  CaseRandom random(2);
  const ParoFile file(16, 128, random);
  ParoTensors tensors = file.tensors();
  expect_error(make_paro_weight(12, 128, {&tensors, 1}, nullptr).ok()
                   ? Status{}
                   : make_paro_weight(12, 128, {&tensors, 1}, nullptr).error(),
               "multiple of 8 rows");
  tensors.scales = tensors.scales.first(30);
  const auto result = make_paro_weight(16, 128, {&tensors, 1}, nullptr);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("scales has 30 bytes, allowed: 32"), std::string::npos);
}

struct RotationFile {
  std::vector<uint16_t> theta, scales;
  std::vector<int16_t> pairs;
  RotationFile(int64_t cols, int64_t rounds, CaseRandom& random) {
    for (int64_t i = 0; i < rounds * cols / 2; ++i) theta.push_back(tensor::f32_to_f16(random.uniform(-3, 3)));
    for (int64_t i = 0; i < cols; ++i) scales.push_back(tensor::f32_to_f16(random.uniform(0.5f, 2)));
    for (int64_t group = 0; group < rounds * cols / 128; ++group) {
      std::vector<int16_t> order(128);
      for (int16_t i = 0; i < 128; ++i) order[static_cast<size_t>(i)] = i;
      for (size_t i = 127; i > 0; --i)
        std::swap(order[i], order[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
      pairs.insert(pairs.end(), order.begin(), order.end());
    }
  }
};

TEST(Rotation, FollowsTheDefinition) {
  constexpr int64_t kCols = 256;
  CaseRandom random(3);
  for (const int64_t rounds : {0, 1, 8}) {
    const RotationFile file(kCols, rounds, random);
    const auto rotation = Rotation::create(kCols, rounds, file.theta, file.pairs, file.scales).value();
    for (const int64_t tokens : {1, 7, 65}) {
      const auto x = random_normal(random, tokens * 260);
      const auto run = [&](Context& context) {
        Guarded<float> out(tokens * kCols);
        EXPECT_OK(rotate({.tokens = tokens, .cols = kCols, .rounds = rounds},
                         {.x = x.data(), .x_stride = 260, .rotation = rotation.get(), .out = out.data()}, context));
        EXPECT_TRUE(out.intact());
        return out.values();
      };
      TestContext test;
      const auto out = run(test.context);
      for (int64_t t = 0; t < tokens; ++t) {
        std::vector<double> y(kCols);
        double energy = 0;
        for (size_t c = 0; c < kCols; ++c) {
          y[c] = double{x[static_cast<size_t>(t * 260) + c]} * tensor::f16_to_f32(file.scales[c]);
          energy += y[c] * y[c];
        }
        for (size_t r = 0; r < static_cast<size_t>(rounds); ++r) {
          for (size_t g = 0; g < kCols / 128; ++g) {
            for (size_t p = 0; p < 64; ++p) {
              const double th = tensor::f16_to_f32(file.theta[r * kCols / 2 + g * 64 + p]);
              double& xi = y[g * 128 + static_cast<size_t>(file.pairs[r * kCols + g * 128 + 2 * p])];
              double& xj = y[g * 128 + static_cast<size_t>(file.pairs[r * kCols + g * 128 + 2 * p + 1])];
              const double i = xi * std::cos(th) + xj * std::sin(th);
              xj = -xi * std::sin(th) + xj * std::cos(th);
              xi = i;
            }
          }
        }
        expect_close(out.data() + t * kCols, y, 0, 1e-6 * std::sqrt(energy), "rotate");
      }
      expect_same_for_any_threads(run, "rotate");
      // A token alone gives the bits that it gives in a batch.
      for (int64_t t = 0; t < tokens; ++t) {
        Guarded<float> alone(kCols);
        EXPECT_OK(rotate({.tokens = 1, .cols = kCols, .rounds = rounds},
                         {.x = x.data() + t * 260, .rotation = rotation.get(), .out = alone.data()}, test.context));
        ASSERT_EQ(std::memcmp(alone.data(), out.data() + t * kCols, kCols * sizeof(float)), 0) << t;
      }
    }
  }
}

TEST(Rotation, RefusesBrokenTables) {
  CaseRandom random(4);
  RotationFile file(128, 2, random);
  const auto message = [&] {
    const auto result = Rotation::create(128, 2, file.theta, file.pairs, file.scales);
    return result.ok() ? std::string("(no error)") : result.error().message;
  };
  EXPECT_EQ(message(), "(no error)");
  std::swap(file.pairs[5], file.pairs[130]);
  EXPECT_NE(message().find("uses twice"), std::string::npos) << message();
  std::swap(file.pairs[5], file.pairs[130]);
  file.pairs[7] = 128;
  EXPECT_NE(message().find("pairs[7] is 128, allowed: 0 to 127"), std::string::npos) << message();
  file.pairs[7] = -1;
  EXPECT_NE(message().find("pairs[7] is -1"), std::string::npos) << message();
  file = RotationFile(128, 2, random);
  file.theta[3] = 0x7e00;
  EXPECT_NE(message().find("theta[3] is not finite"), std::string::npos) << message();
  file = RotationFile(128, 2, random);
  file.scales.pop_back();
  EXPECT_NE(message().find("channel_scales has 127 values, allowed: 128"), std::string::npos) << message();
}

// The transform of the weights and that of the input cancel: x W^T = R(x s^-1) (R (W s))^T for any s.
TEST(Rotation, LinearOfRotatedInputEqualsTheDenseProduct) {
  constexpr int64_t kCols = 128, kRows = 8;
  CaseRandom random(6);
  const Weight weight = random_weight(DType::kParoW4, kRows, kCols, 1, 1.0f, random);
  // Column c of the dense matrix is the answer to a unit vector.
  std::vector<float> dense(kRows * kCols);
  TestContext test;
  for (int64_t c = 0; c < kCols; ++c) {
    std::vector<float> unit(kCols, 0.0f), rotated(kCols), row(kCols);
    unit[static_cast<size_t>(c)] = 1;
    EXPECT_OK(rotate({.tokens = 1, .cols = kCols, .rounds = weight.rotation->rounds},
                     {.x = unit.data(), .rotation = weight.rotation.get(), .out = rotated.data()}, test.context));
    for (int64_t r = 0; r < kRows; ++r) {
      dequantize_weight_row(weight, 0, r, row.data());
      double sum = 0;
      for (size_t i = 0; i < kCols; ++i) sum += double{row[i]} * rotated[i];
      dense[static_cast<size_t>(r * kCols + c)] = static_cast<float>(sum);
    }
  }
  const auto x = random_normal(random, kCols);
  float out[kRows];
  EXPECT_OK(linear({.x = x.data(), .tokens = 1, .in_features = kCols}, {.weight = &weight, .out = out}, test.context));
  for (size_t r = 0; r < kRows; ++r) {
    double expected = 0, magnitude = 0;
    for (size_t c = 0; c < kCols; ++c) {
      expected += double{dense[r * kCols + c]} * x[c];
      magnitude += std::fabs(double{dense[r * kCols + c]} * x[c]);
    }
    EXPECT_NEAR(out[r], expected, 2e-6 * magnitude);
  }
}

TEST(MakeWeight, ChecksBytesAgainstTheShape) {
  std::vector<std::byte> bytes(2 * 34);
  EXPECT_TRUE(make_weight(DType::kQ8_0, 2, 32, 1, bytes, nullptr).ok());
  const auto error = [&](DType dtype, int64_t rows, int64_t cols, int64_t experts) {
    const auto result = make_weight(dtype, rows, cols, experts, bytes, nullptr);
    return result.ok() ? std::string("(no error)") : result.error().message;
  };
  EXPECT_NE(error(DType::kQ8_0, 2, 33, 1).find("33 columns are no multiple of the 32"), std::string::npos);
  EXPECT_NE(error(DType::kQ8_0, 3, 32, 1).find("68 bytes do not fit 1 x 3 x 32"), std::string::npos);
  EXPECT_NE(error(DType::kF32, int64_t{1} << 31, int64_t{1} << 31, 1 << 30).find("do not fit"), std::string::npos);
  EXPECT_NE(error(DType::kF32, 0, 17, 1).find("rows is 0"), std::string::npos);
  EXPECT_NE(error(DType::kParoW4, 8, 128, 1).find("made of several tensors"), std::string::npos);
}

}  // namespace
}  // namespace crest::ops::testing
