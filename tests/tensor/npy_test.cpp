#include "tensor/npy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/file_map.h"
#include "testing/temporary_folder.h"

namespace crest::tensor {
namespace {

// Bytes as NumPy 2 writes them: np.save of np.arange(6, dtype=np.int32).reshape(2, 3).
std::string numpy_file(const std::string& dictionary, const std::string& data, int major = 1) {
  std::string header = dictionary;
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(major);
  file += '\0';
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  if (major > 1) file += std::string(2, '\0');
  return file + header + data;
}
Result<NpyArray> parse(const std::string& file) { return parse_npy(std::as_bytes(std::span(file))); }

TEST(Npy, ReadsWhatNumpyWrites) {
  const int32_t values[6] = {0, 1, 2, 3, -4, 5};
  const std::string data(reinterpret_cast<const char*>(values), sizeof(values));
  for (int major = 1; major <= 3; ++major) {
    const auto array = parse(numpy_file("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", data, major));
    ASSERT_TRUE(array.ok()) << array.error().message;
    EXPECT_EQ(array->dtype, DType::kI32);
    EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(array->to_i64().value(), (std::vector<int64_t>{0, 1, 2, 3, -4, 5}));
    EXPECT_EQ(array->to_f32()[4], -4.0f);
  }
  EXPECT_TRUE(parse(numpy_file("{'descr': '|i1', 'fortran_order': False, 'shape': (), }", "x")).ok());
  EXPECT_TRUE(parse(numpy_file("{'descr': '|i1', 'fortran_order': True, 'shape': (1,), }", "x")).ok());
  EXPECT_TRUE(parse(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 7), }", "")).ok());
  EXPECT_FALSE(parse(numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "abcd"))->to_i64().ok());
}

// The whole kind: a header that promises what the file does not hold, or that is no header.
TEST(Npy, RefusesBrokenFiles) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  const std::string bad[] = {
      "",
      "\x93NUMPY",
      "not numpy at all",
      numpy_file(good, "abc"),
      numpy_file(good, "abcde"),
      numpy_file(good, "abcd").substr(0, 40),
      numpy_file(good, "abcd", 4),
      numpy_file("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd"),
      numpy_file("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "abcd"),
      numpy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"),
      numpy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", "abcd"),
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "abcd"),
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", ""),
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", ""),
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1", "abcd"),
      numpy_file("{'descr': '<f4', 'fortran_order': False}", "abcd"),
      numpy_file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "abcd"),
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", "abcd"),
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "abcd"),
      numpy_file("{'descr': '<f4", "abcd"),
      numpy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::string(200, '1') + "), }", "abcd"),
  };
  for (const std::string& file : bad) EXPECT_FALSE(parse(file).ok()) << file;
  std::string many = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (int i = 0; i < 33; ++i) many += "1, ";
  EXPECT_FALSE(parse(numpy_file(many + "), }", "abcd")).ok());
}

TEST(Npy, WritesWhatItReads) {
  const testing::TemporaryFolder folder;
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {1}, {7}, {3, 5}, {0, 4}, {2, 3, 4}}) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * 0.5f - 1;
    const auto path = folder.path() / "a.npy";
    ASSERT_TRUE(write_npy(path, DType::kF32, shape, std::as_bytes(std::span(values))).ok());
    const auto array = read_npy(path);
    ASSERT_TRUE(array.ok()) << array.error().message;
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(array->to_f32(), values);
    // NumPy maps files: the data must start at a multiple of 64.
    const auto size = core::file_identity(path).ok() ? std::filesystem::file_size(path) : 0;
    EXPECT_EQ((size - values.size() * 4) % 64, 0u);
  }
}

TEST(Npy, AShortOrLongArrayLeavesNoFile) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  const int64_t shape[] = {4};
  const std::vector<float> values(5);
  {
    auto writer = NpyWriter::create(path, DType::kF32, shape).value();
    EXPECT_FALSE(writer.write(std::span<const float>(values)).ok());
    EXPECT_FALSE(writer.commit().ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_FALSE(NpyWriter::create(path, DType::kBF16, shape).ok());
  EXPECT_FALSE(read_npy(path).ok());
}

}  // namespace
}  // namespace crest::tensor
