#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_map.h"
#include "core/result.h"
#include "format/metadata.h"
#include "tensor/dtype.h"

namespace crest::format {

/// Sizes in GGUF order: ne[0] is the contiguous dimension (the input features of a weight matrix).
struct Shape {
  std::array<int64_t, 4> ne{1, 1, 1, 1};
  int rank = 0;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  int64_t operator[](int dimension) const { return ne[static_cast<size_t>(dimension)]; }
  int64_t elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
  /// elements() / ne[0]
  int64_t rows() const { return ne[1] * ne[2] * ne[3]; }
  bool operator==(const Shape&) const = default;
  /// "[2048, 512]"
  std::string to_text() const;
};

/// Bytes of a tensor, or an error when rows are no multiple of the block or the size does not fit 63 bits.
Result<uint64_t> tensor_bytes(tensor::DType dtype, const Shape& shape);

struct GgufTensor {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  Shape shape;
  uint64_t offset = 0;  // from the start of the file
  uint64_t bytes = 0;
};

/// One GGUF file (versions 2 and 3, little-endian), checked completely before anything of it is used: every count is
/// bounded by the bytes left, names and keys are unique, offsets are the running sum of the padded sizes and lie inside
/// the file. Format: ggml's docs/gguf.md.
class GgufFile {
 public:
  static Result<std::shared_ptr<const GgufFile>> open(const std::filesystem::path& path);
  /// As open(), on bytes in memory that must outlive the object; `source` names them in messages.
  static Result<std::shared_ptr<const GgufFile>> parse(std::span<const std::byte> bytes, std::string source);

  const std::string& source() const { return metadata_.source(); }
  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  uint64_t data_offset() const { return data_offset_; }
  uint64_t file_bytes() const { return bytes_.size(); }
  const Metadata& metadata() const { return metadata_; }
  std::span<const GgufTensor> tensors() const { return tensors_; }
  std::span<const std::byte> data(const GgufTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.bytes);
  }
  /// The mapping; null when the object was made by parse().
  const std::shared_ptr<const core::FileMap>& map() const { return map_; }

 private:
  friend class GgufParser;
  static Result<std::shared_ptr<const GgufFile>> make(std::span<const std::byte> bytes, std::string source,
                                                      std::shared_ptr<const core::FileMap> map);
  std::shared_ptr<const core::FileMap> map_;
  std::span<const std::byte> bytes_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  uint64_t data_offset_ = 0;
  Metadata metadata_;
  std::vector<GgufTensor> tensors_;
};

/// The files of a split model (NAME-00001-of-00005.gguf …) in order, or the one file of an unsplit one. Any of the
/// files may be named. Refuses sets whose files disagree (split.count, split.no, split.tensors.count, architecture) or
/// that are incomplete.
Result<std::vector<std::shared_ptr<const GgufFile>>> open_gguf_set(const std::filesystem::path& path);

}  // namespace crest::format
