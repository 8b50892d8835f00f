#pragma once

#include "format/model_file.h"

namespace crest::format {

/// ModelFile of a GGUF file or a split set.
class GgufModel : public ModelFile {
 public:
  static Result<std::shared_ptr<const ModelFile>> open(const std::filesystem::path& path);

  std::vector<std::filesystem::path> files() const override;
  Result<TensorData> data(const TensorEntry& entry) const override;
  Status read_rows(const TensorEntry& entry, int64_t first_row, int64_t rows, float* out) const override;
  void will_need(const TensorEntry& entry) const override;
  void dont_need(const TensorEntry& entry) const override;

  Result<text::VocabData> vocab() const override;

 private:
  struct Place {
    const GgufFile* file;
    const GgufTensor* tensor;
  };
  GgufModel(std::filesystem::path path, std::vector<std::shared_ptr<const GgufFile>> files);
  std::vector<std::shared_ptr<const GgufFile>> files_;
  std::vector<Place> places_;
};

}  // namespace crest::format
