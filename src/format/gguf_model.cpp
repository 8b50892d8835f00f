#include "format/gguf_model.h"

#include "format/vocab_metadata.h"
#include "tensor/quant.h"

namespace crest::format {

Result<std::shared_ptr<const ModelFile>> GgufModel::open(const std::filesystem::path& path) {
  CREST_TRY(auto files, open_gguf_set(path));
  return std::shared_ptr<const ModelFile>(new GgufModel(path, std::move(files)));
}

GgufModel::GgufModel(std::filesystem::path path, std::vector<std::shared_ptr<const GgufFile>> files)
    : ModelFile(Kind::kGguf, std::move(path), files.front()->metadata()), files_(std::move(files)) {
  for (const auto& file : files_) {
    for (const GgufTensor& tensor : file->tensors()) {
      places_.push_back({file.get(), &tensor});
      add_tensor({tensor.name, tensor.dtype, tensor.shape, tensor.bytes, 0});
    }
  }
}

std::vector<std::filesystem::path> GgufModel::files() const {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : files_) paths.emplace_back(file->map()->path());
  return paths;
}

Result<TensorData> GgufModel::data(const TensorEntry& entry) const {
  const Place& place = places_[entry.index];
  CREST_RETURN_IF_ERROR(place.file->map()->verify_size());
  return TensorData{place.file->data(*place.tensor), place.file->map(), true};
}

Status GgufModel::read_rows(const TensorEntry& entry, int64_t first_row, int64_t rows, float* out) const {
  CREST_TRY(const TensorData data, this->data(entry));
  const int64_t columns = entry.shape[0];
  const auto row_bytes = static_cast<size_t>(tensor::row_bytes(entry.dtype, columns));
  for (int64_t r = 0; r < rows; ++r)
    tensor::dequantize_row(entry.dtype, data.bytes.data() + static_cast<size_t>(first_row + r) * row_bytes,
                           out + r * columns, columns);
  return {};
}

void GgufModel::will_need(const TensorEntry& entry) const {
  const Place& place = places_[entry.index];
  place.file->map()->advise_will_need(place.tensor->offset, place.tensor->bytes);
}

void GgufModel::dont_need(const TensorEntry& entry) const {
  const Place& place = places_[entry.index];
  place.file->map()->advise_dont_need(place.tensor->offset, place.tensor->bytes);
}

Result<text::VocabData> GgufModel::vocab() const {
  CREST_TRY(text::VocabData vocab, vocab_from_metadata(metadata()));
  const TensorEntry* embedding = find("token_embd.weight");
  // A file of the vocabulary alone has no embedding.
  if (embedding != nullptr) CREST_RETURN_IF_ERROR(pad_vocab(vocab, embedding->shape[1], path().string()));
  return vocab;
}

}  // namespace crest::format
