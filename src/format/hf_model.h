#pragma once

#include "format/hf_plan.h"
#include "format/model_file.h"
#include "format/safetensors.h"

namespace crest::format {

/// ModelFile of a Hugging Face folder: carries out an HfPlan, tensor by tensor, when it is asked for data.
class HfModel : public ModelFile {
 public:
  static Result<std::shared_ptr<const ModelFile>> open(const std::filesystem::path& folder, OpenOptions options);

  std::vector<std::filesystem::path> files() const override;
  Result<TensorData> data(const TensorEntry& entry) const override;
  Status read_rows(const TensorEntry& entry, int64_t first_row, int64_t rows, float* out) const override;
  Result<ParoParts> paro(const TensorEntry& entry) const override;
  void will_need(const TensorEntry& entry) const override;
  void dont_need(const TensorEntry& entry) const override;
  Result<text::VocabData> vocab() const override;

 private:
  HfModel(std::filesystem::path folder, Metadata metadata, SafetensorsSet weights);
  void read_sampling();
  const std::byte* source_row(const PlannedTensor& planned, int64_t row) const;
  Status verify(const PlannedTensor& planned) const;
  Result<TensorData> make(const PlannedTensor& planned) const;
  SafetensorsSet weights_;
  std::vector<PlannedTensor> planned_;
};

}  // namespace crest::format
