#include "format/quantize.h"

#include <algorithm>
#include <mutex>
#include <optional>

#include "format/convert.h"
#include "format/gguf_writer.h"
#include "format/model_file.h"
#include "tensor/quant.h"

namespace crest::format {
namespace {

using tensor::DType;

constexpr int64_t kChunkElements = int64_t{1} << 20;
constexpr int64_t kQuantizationVersion = 2;

bool is_plain(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

// Types whose values were rounded to blocks once already.
bool is_lossy(DType dtype) { return tensor::is_quantised(dtype); }

Status check_inputs(const ModelFile& model, const std::vector<QuantChoice>& choices, const QuantizeOptions& options) {
  for (size_t i = 0; i < choices.size(); ++i) {
    const TensorEntry& tensor = model.tensors()[i];
    const QuantChoice& choice = choices[i];
    if (!choice.quantise || choice.dtype == tensor.dtype) continue;
    if (is_lossy(tensor.dtype) && !is_plain(choice.dtype) && !options.allow_requantize) {
      return make_error(ErrorCode::kInvalidArgument,
                        "tensor {} is {} already; quantising it again to {} loses twice: start from an unquantised "
                        "model, or allow it (--allow-requantize)",
                        tensor.name, tensor::name(tensor.dtype), tensor::name(choice.dtype));
    }
    const Imatrix::Entry* entry = options.imatrix != nullptr ? options.imatrix->find(tensor.name) : nullptr;
    if (entry == nullptr) continue;
    const int64_t matrices = tensor.shape[2] * tensor.shape[3];
    const bool one_block = entry->experts == 1 && entry->columns == tensor.shape[0] * matrices;
    if (!one_block && (entry->columns != tensor.shape[0] || entry->experts != matrices)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "importance matrix: tensor {} has {} columns and {} experts, the model's is {}", tensor.name,
                        entry->columns, entry->experts, tensor.shape.to_text());
    }
  }
  return {};
}

Result<Metadata> output_metadata(const ModelFile& model, const QuantMix& mix, const QuantizeOptions& options) {
  Metadata metadata = model.metadata();
  if (model.kind() == ModelFile::Kind::kHuggingFace) {
    CREST_TRY(metadata, converted_metadata(model));
  }
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) metadata.erase(key);
  metadata.set("general.file_type", Value::u32(mix.file_type));
  metadata.set("general.quantization_version", Value::u32(kQuantizationVersion));
  if (options.imatrix != nullptr) {
    metadata.set("quantize.imatrix.file", Value::string(options.imatrix_name));
    metadata.set("quantize.imatrix.dataset", Value::string(options.imatrix->dataset()));
    metadata.set("quantize.imatrix.entries_count", Value::i32(static_cast<int32_t>(options.imatrix->entries().size())));
    metadata.set("quantize.imatrix.chunks_count", Value::i32(static_cast<int32_t>(options.imatrix->chunks())));
  }
  return metadata;
}

/// Turns the rows of one tensor into another type, a piece at a time.
class TensorQuantizer {
 public:
  TensorQuantizer(const ModelFile& model, const TensorEntry& tensor, DType target, const Imatrix::Entry* importance,
                  core::ThreadPool& pool)
      : model_(model), tensor_(tensor), target_(target), importance_(importance), pool_(pool) {}

  /// Calls write(bytes) for each piece and then step(elements); either may fail.
  template <typename Write, typename Step>
  Status run(Write write, Step step) {
    TensorData data;
    if (tensor_.dtype != DType::kParoW4) {
      CREST_TRY(data, model_.data(tensor_));
      source_ = data.bytes;
    }
    const int64_t columns = tensor_.shape[0];
    const int64_t piece = std::max<int64_t>(1, kChunkElements / columns);
    const auto target_bytes = static_cast<size_t>(tensor::row_bytes(target_, columns));
    std::vector<std::byte> out;
    for (int64_t first = 0; first < tensor_.shape.rows(); first += piece) {
      const int64_t rows = std::min(piece, tensor_.shape.rows() - first);
      out.resize(static_cast<size_t>(rows) * target_bytes);
      pool_.parallel_dynamic(rows, std::max<int64_t>(1, rows / (8 * pool_.size())), [&](int64_t begin, int64_t end) {
        convert(first + begin, end - begin, out.data() + static_cast<size_t>(begin) * target_bytes);
      });
      if (error_) return *std::move(error_);
      CREST_RETURN_IF_ERROR(write(std::span<const std::byte>(out)));
      CREST_RETURN_IF_ERROR(step(static_cast<uint64_t>(rows * columns)));
    }
    return {};
  }

 private:
  void convert(int64_t first, int64_t rows, std::byte* out) {
    const int64_t columns = tensor_.shape[0];
    const auto target_bytes = static_cast<size_t>(tensor::row_bytes(target_, columns));
    std::vector<float> values(static_cast<size_t>(columns));
    std::vector<float> weights;
    int64_t weights_of = -1;
    for (int64_t r = first; r < first + rows; ++r) {
      const int64_t matrix = r / tensor_.shape[1];
      if (importance_ != nullptr && matrix != weights_of) {
        weights = importance(matrix);
        weights_of = matrix;
      }
      auto status = read(r, values.data());
      if (status.ok()) {
        status = tensor::quantize_row(target_, values.data(), out + static_cast<size_t>(r - first) * target_bytes,
                                      columns, weights.empty() ? nullptr : weights.data());
      }
      if (!status.ok()) return fail(r, std::move(status).error());
    }
  }

  Status read(int64_t row, float* values) const {
    if (tensor_.dtype == DType::kParoW4) return model_.read_rows(tensor_, row, 1, values);
    const auto bytes = static_cast<size_t>(tensor::row_bytes(tensor_.dtype, tensor_.shape[0]));
    tensor::dequantize_row(tensor_.dtype, source_.data() + static_cast<size_t>(row) * bytes, values, tensor_.shape[0]);
    return {};
  }

  // Old files hold the columns of all experts in one run.
  std::vector<float> importance(int64_t matrix) const {
    if (importance_->columns == tensor_.shape[0]) return mean_importance(*importance_, matrix);
    std::vector<float> all = mean_importance(*importance_, 0);
    if (all.empty()) return all;
    const auto begin = all.begin() + matrix * tensor_.shape[0];
    return {begin, begin + tensor_.shape[0]};
  }

  // The error of the first row wins, whichever thread saw it.
  void fail(int64_t row, Error error) {
    const std::lock_guard lock(mutex_);
    if (error_ && error_row_ <= row) return;
    const int64_t experts = tensor_.shape[2] * tensor_.shape[3];
    const std::string expert = experts > 1 ? fmt::format(" of matrix {}", row / tensor_.shape[1]) : "";
    error_ = std::move(error).with_context(
        fmt::format("{}: tensor {}, row {}{}", model_.path().string(), tensor_.name, row % tensor_.shape[1], expert));
    error_row_ = row;
  }

  const ModelFile& model_;
  const TensorEntry& tensor_;
  DType target_;
  const Imatrix::Entry* importance_;
  core::ThreadPool& pool_;
  std::span<const std::byte> source_;
  std::mutex mutex_;
  std::optional<Error> error_;
  int64_t error_row_ = 0;
};

QuantizeReport make_report(const ModelFile& model, const std::vector<QuantChoice>& choices,
                           const QuantizeOptions& options) {
  QuantizeReport report;
  for (size_t i = 0; i < choices.size(); ++i) {
    const TensorEntry& tensor = model.tensors()[i];
    report.tensors.push_back({tensor.name, tensor.shape, tensor.dtype, choices[i]});
    report.input_bytes += tensor.bytes;
    if (!choices[i].quantise) continue;
    ++report.quantised;
    if (choices[i].fell_back_from) ++report.fallbacks;
    if (options.imatrix != nullptr && options.imatrix->find(tensor.name) == nullptr) ++report.no_importance;
  }
  return report;
}

class FileQuantizer {
 public:
  FileQuantizer(const ModelFile& model, const std::vector<QuantChoice>& choices, const QuantizeOptions& options,
                core::ThreadPool& pool)
      : model_(model), choices_(choices), options_(options), pool_(pool) {
    progress_.tensors = choices.size();
    for (const TensorEntry& tensor : model.tensors()) {
      progress_.elements += static_cast<uint64_t>(tensor.shape.elements());
    }
  }

  Status run(GgufWriter& writer) {
    for (size_t i = 0; i < choices_.size(); ++i) {
      const TensorEntry& tensor = model_.tensors()[i];
      progress_.tensor = tensor.name;
      progress_.index = i;
      CREST_RETURN_IF_ERROR(step(0));
      CREST_RETURN_IF_ERROR(one(writer, tensor, choices_[i]));
      model_.dont_need(tensor);
    }
    return {};
  }

 private:
  Status one(GgufWriter& writer, const TensorEntry& tensor, const QuantChoice& choice) {
    const auto write = [&](std::span<const std::byte> bytes) { return writer.write(bytes); };
    if (choice.dtype == tensor.dtype) {
      CREST_TRY(const TensorData data, model_.data(tensor));
      CREST_RETURN_IF_ERROR(write(data.bytes));
      return step(static_cast<uint64_t>(tensor.shape.elements()));
    }
    const Imatrix::Entry* importance = options_.imatrix != nullptr ? options_.imatrix->find(tensor.name) : nullptr;
    TensorQuantizer quantizer(model_, tensor, choice.dtype, importance, pool_);
    return quantizer.run(write, [&](uint64_t elements) { return step(elements); });
  }

  Status step(uint64_t elements) {
    progress_.elements_done += elements;
    if (options_.progress && !options_.progress(progress_)) {
      return make_error(ErrorCode::kCancelled, "stopped in tensor {}", progress_.tensor);
    }
    return {};
  }

  const ModelFile& model_;
  const std::vector<QuantChoice>& choices_;
  const QuantizeOptions& options_;
  core::ThreadPool& pool_;
  QuantizeProgress progress_;
};

}  // namespace

Result<QuantizeReport> quantize_file(const std::filesystem::path& input, const std::filesystem::path& output,
                                     std::string_view type, const QuantizeOptions& options, core::ThreadPool& pool) {
  CREST_TRY(const QuantMix* mix, find_quant_mix(type));
  CREST_TRY(const auto model, ModelFile::open(input, {.as_converted = true}));
  auto inputs = input_files(*model);
  if (options.imatrix != nullptr && !options.imatrix_name.empty()) inputs.emplace_back(options.imatrix_name);
  CREST_RETURN_IF_ERROR(refuse_same_file(output, inputs));
  CREST_TRY(const auto choices,
            choose_quant_types(model->metadata(), model->tensors(), *mix, options.imatrix != nullptr));
  if (auto status = check_inputs(*model, choices, options); !status.ok()) {
    return std::move(status).error().with_context(input.string());
  }
  std::vector<TensorSpec> specs;
  QuantizeReport report = make_report(*model, choices, options);
  for (size_t i = 0; i < choices.size(); ++i) {
    const TensorEntry& tensor = model->tensors()[i];
    specs.push_back({tensor.name, choices[i].dtype, tensor.shape});
    CREST_TRY(const uint64_t bytes, tensor_bytes(choices[i].dtype, tensor.shape));
    report.output_bytes += bytes;
  }
  CREST_TRY(const Metadata metadata, output_metadata(*model, *mix, options));
  CREST_TRY(GgufWriter writer, GgufWriter::create(output, metadata, std::move(specs)));
  CREST_RETURN_IF_ERROR(FileQuantizer(*model, choices, options, pool).run(writer));
  CREST_RETURN_IF_ERROR(writer.finish());
  return report;
}

}  // namespace crest::format
