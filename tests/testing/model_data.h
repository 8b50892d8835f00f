#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensor/npy.h"

namespace crest::testing {

/// Arrays that tools/make_test_oracles.py made.
class OracleFolder {
 public:
  explicit OracleFolder(std::filesystem::path path) : path_(std::move(path)) {}

  bool has(const std::string& name) const { return std::filesystem::exists(file(name)); }
  std::vector<float> floats(const std::string& name) const { return read(name).to_f32(); }
  std::vector<int64_t> shape(const std::string& name) const { return read(name).shape; }
  std::vector<int32_t> ids(const std::string& name) const {
    const auto values = read(name).to_i64();
    EXPECT_TRUE(values.ok()) << name;
    return {values->begin(), values->end()};
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path file(const std::string& name) const { return path_ / (name + ".npy"); }
  tensor::NpyArray read(const std::string& name) const {
    auto array = tensor::read_npy(file(name));
    EXPECT_TRUE(array.ok()) << (array.ok() ? "" : array.error().message);
    return array.ok() ? std::move(*array) : tensor::NpyArray{};
  }
  std::filesystem::path path_;
};

inline std::filesystem::path test_data(const std::string& name) {
  return std::filesystem::path(CREST_TEST_DATA) / name;
}

/// The folder with the models that are too large for the repository, if CREST_MODELS_DIR names one.
inline std::optional<std::filesystem::path> large_model(const std::string& name) {
  const char* const folder = std::getenv("CREST_MODELS_DIR");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  return std::filesystem::path(folder) / name;
}

#define CREST_SKIP_WITHOUT_MODELS()       \
  if (!::crest::testing::large_model("")) \
  GTEST_SKIP() << "NOT RUN: set CREST_MODELS_DIR to the folder of test models (tiny-moe, tiny-dense)"

inline double standard_deviation(std::span<const float> values) {
  double sum = 0, squares = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
  }
  const double count = static_cast<double>(values.size());
  return std::sqrt(std::max(0.0, squares / count - sum / count * sum / count));
}

/// Largest difference; infinity when one of them is not finite.
inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(double{a[i]} - b[i]);
    if (!(difference <= largest)) largest = std::isfinite(difference) ? difference : INFINITY;
  }
  return largest;
}

inline std::span<const float> row(std::span<const float> matrix, int64_t index, int64_t width) {
  return matrix.subspan(static_cast<size_t>(index * width), static_cast<size_t>(width));
}

}  // namespace crest::testing
