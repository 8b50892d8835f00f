#include "format/model_file.h"

#include "format/file_kind.h"
#include "format/gguf_model.h"
#include "format/hf_model.h"

namespace crest::format {
namespace {

constexpr std::string_view kWanted = "a GGUF file or a Hugging Face folder";

Result<std::shared_ptr<const ModelFile>> open_file(const std::filesystem::path& path) {
  CREST_TRY(const auto map, core::FileMap::open(path));
  switch (file_kind(map->bytes())) {
    case FileKind::kGguf:
      return GgufModel::open(path);
    case FileKind::kSafetensors:
      return make_error(ErrorCode::kInvalidArgument,
                        "{}: is a single safetensors file; give the folder that holds it and its config.json",
                        path.string());
    case FileKind::kOther:
      break;
  }
  return not_a(kWanted, path.string(), map->bytes());
}

}  // namespace

Result<std::shared_ptr<const ModelFile>> ModelFile::open(const std::filesystem::path& path, OpenOptions options) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return HfModel::open(path, options);
  return open_file(path);
}

std::string ModelFile::architecture() const {
  const Value* value = metadata_.find("general.architecture");
  return value == nullptr ? std::string() : std::string(value->as_string().value_or(""));
}

void ModelFile::add_tensor(TensorEntry entry) {
  entry.index = tensors_.size();
  by_name_.emplace(entry.name, entry.index);
  tensors_.push_back(std::move(entry));
}

const TensorEntry* ModelFile::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

Result<const TensorEntry*> ModelFile::require(std::string_view name) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) return make_error(ErrorCode::kNotFound, "{}: tensor {} is missing", path_.string(), name);
  return entry;
}

Result<ParoParts> ModelFile::paro(const TensorEntry& entry) const {
  return make_error(ErrorCode::kInvalidArgument, "tensor {} is {}, not ParoQuant", entry.name,
                    tensor::name(entry.dtype));
}

}  // namespace crest::format
