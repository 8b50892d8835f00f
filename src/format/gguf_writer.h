#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/atomic_file.h"
#include "core/result.h"
#include "format/gguf.h"
#include "format/metadata.h"

namespace crest::format {

struct TensorSpec {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  Shape shape;
};

/// Everything of a GGUF v3 file before the tensor data, padded to the alignment (key general.alignment, 32 if absent).
/// Refuses what GgufFile would refuse: names and keys that are empty, too long or there twice, bad shapes.
Result<std::string> gguf_header(const Metadata& metadata, std::span<const TensorSpec> tensors);

/// Writes a GGUF v3 file front to back. The file appears under its name only after finish(); dropped before that,
/// nothing is left behind. The bytes depend only on what is passed in.
class GgufWriter {
 public:
  static Result<GgufWriter> create(const std::filesystem::path& path, const Metadata& metadata,
                                   std::vector<TensorSpec> tensors);

  /// The next bytes of the tensors' data, in the order of the specifications; a call may end anywhere inside a tensor,
  /// but not reach into the next one.
  Status write(std::span<const std::byte> bytes);
  /// The tensor that the next byte belongs to; tensors().size() when all are written.
  size_t current_tensor() const { return current_; }
  std::span<const TensorSpec> tensors() const { return tensors_; }
  /// Makes the file appear; all tensors must be complete.
  Status finish();

 private:
  GgufWriter(core::AtomicFile file, std::vector<TensorSpec> tensors, uint64_t alignment);
  core::AtomicFile file_;
  std::vector<TensorSpec> tensors_;
  uint64_t alignment_;
  size_t current_ = 0;
  uint64_t left_ = 0;  // bytes of the current tensor still to come
};

/// Refuses to write over one of the inputs, whatever path, hard link or symbolic link leads to it (by device and
/// inode).
Status refuse_same_file(const std::filesystem::path& output, std::span<const std::filesystem::path> inputs);

}  // namespace crest::format
