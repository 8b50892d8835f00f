#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/result.h"
#include "tensor/dtype.h"

namespace crest::tensor {

/// NumPy's .npy format (numpy.lib.format, versions 1 to 3): little-endian F16, F32, F64, I8, I16, I32 and I64 arrays in
/// C order. BF16 has no NumPy type.
struct NpyArray {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // outermost first; empty for a scalar
  std::vector<std::byte> data;

  int64_t elements() const;
  /// The values as float (64-bit types rounded) or as integers; to_i64 refuses floating-point arrays.
  std::vector<float> to_f32() const;
  Result<std::vector<int64_t>> to_i64() const;
};

/// Files are hostile: every count is checked against the bytes that are there before anything is allocated. Errors say
/// what is wrong ("dtype '>f4' ..."), without the file's name in parse_npy.
Result<NpyArray> parse_npy(std::span<const std::byte> file);
Result<NpyArray> read_npy(const std::filesystem::path& path);

/// Streams an array of known shape; the file appears under its name at commit(), which fails when the bytes written are
/// not exactly the shape's.
class NpyWriter {
 public:
  static Result<NpyWriter> create(const std::filesystem::path& path, DType dtype, std::span<const int64_t> shape);
  Status write(std::span<const std::byte> bytes);
  Status write(std::span<const float> values) { return write(std::as_bytes(values)); }
  Status commit();

 private:
  NpyWriter(core::AtomicFile file, uint64_t bytes) : file_(std::move(file)), bytes_left_(bytes) {}
  core::AtomicFile file_;
  uint64_t bytes_left_ = 0;
};

Status write_npy(const std::filesystem::path& path, DType dtype, std::span<const int64_t> shape,
                 std::span<const std::byte> data);

}  // namespace crest::tensor
