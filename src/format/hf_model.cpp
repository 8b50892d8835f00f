#include "format/hf_model.h"

#include <cmath>
#include <cstring>

#include "format/paroquant.h"
#include "tensor/quant.h"

namespace crest::format {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMaxConfigBytes = 16 << 20;

size_t element_bytes(const SafetensorsTensor& source) {
  return static_cast<size_t>(tensor::info(*source.dtype).block_bytes);
}

bool is_view(const PlannedTensor& planned) {
  return planned.sources.size() == 1 && planned.rows.identity() && planned.column_order.identity() &&
         planned.elementwise == Elementwise::kNone && planned.first_row == 0 &&
         planned.rows_per_matrix == planned.source_rows && planned.entry.dtype == *planned.sources[0]->dtype;
}

void apply(Elementwise elementwise, float* values, int64_t count) {
  if (elementwise == Elementwise::kNone) return;
  for (int64_t i = 0; i < count; ++i)
    values[i] = elementwise == Elementwise::kAddOne ? values[i] + 1
                                                    : -static_cast<float>(std::exp(static_cast<double>(values[i])));
}

std::string name_of(const fs::path& folder) {
  std::error_code code;
  const fs::path absolute = fs::weakly_canonical(folder, code);
  return (code ? folder : absolute).filename().string();
}

}  // namespace

Result<std::shared_ptr<const ModelFile>> HfModel::open(const fs::path& folder, OpenOptions options) {
  const fs::path config_path = folder / "config.json";
  auto text = core::read_file(config_path, kMaxConfigBytes);
  if (!text.ok()) return std::move(text).error().with_context("not a Hugging Face folder");
  CREST_TRY(const HfConfig config, parse_hf_config(*text, config_path.string()));
  CREST_TRY(SafetensorsSet weights, SafetensorsSet::open(folder));
  // The plan points at tensors of the set, which do not move when the set does.
  auto plan = make_hf_plan(config, weights, options.as_converted);
  if (!plan.ok()) return std::move(plan).error().with_context(folder.string());
  plan->metadata.set("general.name", Value::string(name_of(folder)));
  std::shared_ptr<HfModel> model(new HfModel(folder, std::move(plan->metadata), std::move(weights)));
  model->read_sampling();
  for (PlannedTensor& planned : plan->tensors) {
    planned.entry.index = model->tensors().size();
    model->add_tensor(planned.entry);
  }
  model->planned_ = std::move(plan->tensors);
  return std::shared_ptr<const ModelFile>(std::move(model));
}

HfModel::HfModel(fs::path folder, Metadata metadata, SafetensorsSet weights)
    : ModelFile(Kind::kHuggingFace, std::move(folder), std::move(metadata)), weights_(std::move(weights)) {}

std::vector<fs::path> HfModel::files() const {
  std::vector<fs::path> paths;
  for (const auto& file : weights_.files()) paths.push_back(file->map()->path());
  return paths;
}

Status HfModel::verify(const PlannedTensor& planned) const {
  for (const SafetensorsTensor* source : planned.sources)
    CREST_RETURN_IF_ERROR(weights_.file(*source).map()->verify_size());
  return {};
}

const std::byte* HfModel::source_row(const PlannedTensor& planned, int64_t row) const {
  const int64_t matrix = row / planned.rows_per_matrix;
  const bool single = planned.sources.size() == 1;
  const SafetensorsTensor& source = *planned.sources[single ? 0 : static_cast<size_t>(matrix)];
  const int64_t at = (single ? matrix * planned.source_rows : 0) + planned.first_row +
                     planned.rows.source(row % planned.rows_per_matrix);
  const auto offset = static_cast<size_t>(at * planned.columns) * element_bytes(source);
  return weights_.file(source).data(source).data() + offset;
}

Status HfModel::read_rows(const TensorEntry& entry, int64_t first_row, int64_t rows, float* out) const {
  const PlannedTensor& planned = planned_[entry.index];
  const int64_t columns = entry.shape[0];
  if (!planned.constant.empty()) {
    std::memcpy(out, planned.constant.data(), planned.constant.size() * sizeof(float));
    return {};
  }
  CREST_RETURN_IF_ERROR(verify(planned));
  std::optional<ParoParts> parts;
  std::optional<ParoRows> paro;
  if (planned.paro) {
    PlannedTensor in_file_order = planned;
    in_file_order.rows = {};
    CREST_TRY(parts, load_paro(in_file_order, weights_));
    paro.emplace(*parts);
  }
  std::vector<float> buffer(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    float* target = out + r * columns;
    float* values = planned.column_order.identity() ? target : buffer.data();
    const int64_t row = first_row + r;
    if (paro) {
      paro->read(static_cast<size_t>(row / planned.rows_per_matrix), planned.rows.source(row % planned.rows_per_matrix),
                 values);
    } else {
      const bool single = planned.sources.size() == 1;
      const SafetensorsTensor& source =
          *planned.sources[single ? 0 : static_cast<size_t>(row / planned.rows_per_matrix)];
      tensor::dequantize_row(*source.dtype, source_row(planned, row), values, columns);
    }
    if (values != target) {
      for (int64_t i = 0; i < columns; ++i) target[i] = values[planned.column_order.source(i)];
    }
    apply(planned.elementwise, target, columns);
  }
  return {};
}

Result<TensorData> HfModel::make(const PlannedTensor& planned) const {
  auto owner = std::make_shared<std::vector<std::byte>>(planned.entry.bytes);
  const int64_t columns = planned.entry.shape[0], rows = planned.entry.shape.rows();
  const auto row_bytes = static_cast<size_t>(tensor::row_bytes(planned.entry.dtype, columns));
  bool raw = planned.elementwise == Elementwise::kNone && !planned.paro && planned.constant.empty();
  for (const SafetensorsTensor* source : planned.sources) raw = raw && *source->dtype == planned.entry.dtype;
  if (raw) {
    const size_t element = row_bytes / static_cast<size_t>(columns);
    for (int64_t r = 0; r < rows; ++r) {
      const std::byte* from = source_row(planned, r);
      std::byte* to = owner->data() + static_cast<size_t>(r) * row_bytes;
      if (planned.column_order.identity()) {
        std::memcpy(to, from, row_bytes);
      } else {
        for (int64_t i = 0; i < columns; ++i)
          std::memcpy(to + static_cast<size_t>(i) * element,
                      from + static_cast<size_t>(planned.column_order.source(i)) * element, element);
      }
    }
    return TensorData{*owner, owner, false};
  }
  constexpr int64_t kChunkValues = 1 << 22;
  const int64_t chunk = std::max<int64_t>(1, kChunkValues / columns);
  std::vector<float> values(static_cast<size_t>(std::min(chunk, rows) * columns));
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    CREST_RETURN_IF_ERROR(read_rows(planned.entry, first, count, values.data()));
    for (int64_t r = 0; r < count; ++r) {
      auto status = tensor::quantize_row(planned.entry.dtype, values.data() + r * columns,
                                         owner->data() + static_cast<size_t>(first + r) * row_bytes, columns, nullptr);
      if (!status.ok())
        return std::move(status).error().with_context(fmt::format("tensor {}, row {}", planned.entry.name, first + r));
    }
  }
  return TensorData{*owner, owner, false};
}

Result<TensorData> HfModel::data(const TensorEntry& entry) const {
  const PlannedTensor& planned = planned_[entry.index];
  CREST_CHECK(entry.dtype != tensor::DType::kParoW4, "data() of the ParoQuant tensor {}", entry.name);
  CREST_RETURN_IF_ERROR(verify(planned));
  if (!planned.paro && is_view(planned))
    return tensor_view(weights_, *planned.sources[0], element_bytes(*planned.sources[0]));
  return make(planned);
}

Result<ParoParts> HfModel::paro(const TensorEntry& entry) const {
  if (entry.dtype != tensor::DType::kParoW4) return ModelFile::paro(entry);
  return load_paro(planned_[entry.index], weights_);
}

void HfModel::will_need(const TensorEntry& entry) const {
  for (const SafetensorsTensor* source : planned_[entry.index].sources)
    weights_.file(*source).map()->advise_will_need(source->offset, source->bytes);
}

void HfModel::dont_need(const TensorEntry& entry) const {
  for (const SafetensorsTensor* source : planned_[entry.index].sources)
    weights_.file(*source).map()->advise_dont_need(source->offset, source->bytes);
}

}  // namespace crest::format
