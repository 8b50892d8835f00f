#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/file_map.h"
#include "core/result.h"
#include "tensor/dtype.h"

namespace crest::format {

struct SafetensorsTensor {
  std::string name;
  std::string dtype_name;              // as in the file: "BF16", "F8_E4M3", "U8", …
  std::optional<tensor::DType> dtype;  // nothing for types that Crest does not compute with
  std::vector<int64_t> shape;          // as PyTorch: the last one is contiguous; empty for a scalar
  uint64_t offset = 0;                 // from the start of the file
  uint64_t bytes = 0;
  size_t file = 0;  // number of the file in a SafetensorsSet

  int64_t elements() const;
  /// "[512, 2048]"
  std::string shape_text() const;
};

/// One safetensors file. Accepts and refuses what the format's reference (Rust crate, 0.6) does: header at most 100 MB,
/// JSON object, ranges contiguous from 0 to exactly the end of the file, byte count = shape x type; zero-size tensors,
/// scalars, unaligned tensors and an empty file of tensors are fine. Stricter in one point: duplicate names are
/// refused.
class SafetensorsFile {
 public:
  static Result<std::shared_ptr<const SafetensorsFile>> open(const std::filesystem::path& path);
  /// As open(), on bytes in memory that must outlive the object; `source` names them in messages.
  static Result<std::shared_ptr<const SafetensorsFile>> parse(std::span<const std::byte> bytes, std::string source);

  const std::string& source() const { return source_; }
  uint64_t file_bytes() const { return bytes_.size(); }
  /// The "__metadata__" entries in file order.
  std::span<const std::pair<std::string, std::string>> metadata() const { return metadata_; }
  /// By offset.
  std::span<const SafetensorsTensor> tensors() const { return tensors_; }
  std::span<const std::byte> data(const SafetensorsTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.bytes);
  }
  /// The mapping; null when the object was made by parse().
  const std::shared_ptr<const core::FileMap>& map() const { return map_; }

 private:
  friend class SafetensorsParser;
  std::shared_ptr<const core::FileMap> map_;
  std::span<const std::byte> bytes_;
  std::string source_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::vector<SafetensorsTensor> tensors_;
};

/// The weights of a Hugging Face folder: model.safetensors, or the files that model.safetensors.index.json names, or
/// the one *.safetensors file there is.
class SafetensorsSet {
 public:
  static Result<SafetensorsSet> open(const std::filesystem::path& folder);
  /// Names and shapes of a checkpoint that has no files: for planning only.
  static Result<SafetensorsSet> names_only(std::vector<SafetensorsTensor> tensors);

  std::span<const std::shared_ptr<const SafetensorsFile>> files() const { return files_; }
  /// Null when there is no such tensor.
  const SafetensorsTensor* find(std::string_view name) const;
  /// All tensors, by name.
  std::span<const SafetensorsTensor* const> tensors() const { return tensors_; }
  const SafetensorsFile& file(const SafetensorsTensor& tensor) const { return *files_[tensor.file]; }

 private:
  Status add(std::shared_ptr<const SafetensorsFile> file);
  Status add_tensors(std::vector<SafetensorsTensor> tensors, const std::string& source);
  Status open_index(const std::filesystem::path& folder, const std::filesystem::path& index);
  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  std::vector<std::vector<SafetensorsTensor>> owned_;  // with SafetensorsTensor::file set
  std::vector<const SafetensorsTensor*> tensors_;
  std::unordered_map<std::string_view, const SafetensorsTensor*> by_name_;
};

}  // namespace crest::format
