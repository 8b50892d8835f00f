#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "format/metadata.h"

namespace crest::format {

/// What `crest inspect` shows of a file or folder.
struct InspectReport {
  enum class Kind { kGguf, kSafetensors, kHuggingFace };
  struct File {
    std::string path;
    uint64_t bytes = 0;
    size_t tensors = 0;
  };
  struct Tensor {
    std::string name;
    std::string dtype;           // "Q4_K", "BF16", "PARO_W4"
    std::vector<int64_t> shape;  // GGUF and folders: contiguous dimension first; safetensors: last
    uint64_t bytes = 0;
    uint64_t offset = 0;  // in its file; 0 for folders, whose tensors may come from several places
    size_t file = 0;      // index in `files`
  };
  struct TypeTotal {
    std::string dtype;
    size_t tensors = 0;
    uint64_t elements = 0;
    uint64_t bytes = 0;
  };

  Kind kind = Kind::kGguf;
  std::string path;
  std::string architecture;  // general.architecture; empty when unknown
  uint32_t gguf_version = 0;
  uint64_t alignment = 0;
  std::vector<File> files;
  std::vector<std::pair<std::string, Value>> metadata;
  std::vector<Tensor> tensors;
  std::vector<TypeTotal> types;  // largest first
  uint64_t parameters = 0;
  uint64_t tensor_bytes = 0;
  int64_t vocab_size = 0;  // entries of the tokenizer; 0 when there is none
  bool chat_template = false;
  size_t packed_linears = 0;       // ParoQuant
  std::vector<std::string> notes;  // what stands in the way of running it, and the like
};

std::string_view name(InspectReport::Kind kind);

/// A GGUF file or split set (with or without tensors), a safetensors file, or a Hugging Face folder. A folder of an
/// architecture that Crest does not run is shown with its files' own tensor names and a note.
Result<InspectReport> inspect(const std::filesystem::path& path);

/// One JSON object; arrays of more than 64 elements are cut to their first eight and their count.
std::string to_json(const InspectReport& report);

}  // namespace crest::format
