#include "format/convert.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "format/gguf_writer.h"
#include "format/quantize_mix.h"
#include "format/vocab_metadata.h"
#include "tensor/quant.h"
#include "text/tokenizer.h"

namespace crest::format {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

constexpr int64_t kChunkValues = int64_t{1} << 23;
constexpr uint64_t kMaxTokenizerBytes = 256 << 20;

// The type of each tensor, as quantise would choose it; without a mix each keeps its own.
Result<std::vector<TensorSpec>> choose_specs(const ModelFile& model, const QuantMix* mix, ConvertReport& report) {
  std::vector<TensorSpec> specs;
  for (const TensorEntry& entry : model.tensors()) specs.push_back({entry.name, entry.dtype, entry.shape});
  if (mix == nullptr) return specs;
  CREST_TRY(const auto choices, choose_quant_types(model.metadata(), model.tensors(), *mix, false));
  for (size_t i = 0; i < specs.size(); ++i) {
    if (choices[i].quantise) specs[i].dtype = choices[i].dtype;
    if (choices[i].fell_back_from) report.fallbacks.push_back(specs[i].name);
  }
  return specs;
}

DType most_common(std::span<const TensorSpec> specs) {
  std::map<DType, uint64_t> bytes;
  for (const TensorSpec& spec : specs) {
    if (spec.shape.rank > 1) bytes[spec.dtype] += static_cast<uint64_t>(spec.shape.elements());
  }
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& pair) { return pair.second; });
  return most == bytes.end() ? DType::kF32 : most->first;
}

Status write_mapped(const TensorData& data, const std::function<Status(std::span<const std::byte>)>& sink) {
  constexpr size_t kPiece = 64 << 20;
  for (size_t at = 0; at < data.bytes.size(); at += kPiece)
    CREST_RETURN_IF_ERROR(sink(data.bytes.subspan(at, std::min(kPiece, data.bytes.size() - at))));
  return {};
}

// Rows [first, first + count) into `bytes`; the error of the lowest row wins, whatever thread meets it.
Status make_rows(const ModelFile& model, const TensorEntry& entry, DType dtype, int64_t first, int64_t count,
                 core::ThreadPool& pool, std::vector<float>& values, std::vector<std::byte>& bytes) {
  const int64_t columns = entry.shape[0];
  const auto row_bytes = static_cast<size_t>(tensor::row_bytes(dtype, columns));
  std::mutex mutex;
  int64_t failed = count;
  std::optional<Error> error;
  pool.parallel_for(count, 8, [&](int64_t begin, int64_t end) {
    const auto fail = [&](int64_t row, Error reason) {
      const std::lock_guard lock(mutex);
      if (row < failed) error = std::move(reason);
      failed = std::min(failed, row);
    };
    float* target = values.data() + begin * columns;
    if (auto status = model.read_rows(entry, first + begin, end - begin, target); !status.ok())
      return fail(begin, std::move(status).error());
    for (int64_t r = begin; r < end; ++r) {
      auto status = tensor::quantize_row(dtype, values.data() + r * columns,
                                         bytes.data() + static_cast<size_t>(r) * row_bytes, columns, nullptr);
      if (!status.ok())
        return fail(r, std::move(status).error().with_context(fmt::format("tensor {}, row {}", entry.name, first + r)));
    }
  });
  if (error) return *std::move(error);
  return {};
}

}  // namespace

Status write_tensor_as(const ModelFile& model, const TensorEntry& entry, DType dtype, core::ThreadPool& pool,
                       const std::function<Status(std::span<const std::byte>)>& sink) {
  if (dtype == entry.dtype) {
    CREST_TRY(const TensorData data, model.data(entry));
    return write_mapped(data, sink);
  }
  const int64_t columns = entry.shape[0], rows = entry.shape.rows();
  const int64_t chunk = std::min(rows, std::max<int64_t>(1, kChunkValues / columns));
  std::vector<float> values(static_cast<size_t>(chunk * columns));
  std::vector<std::byte> bytes(static_cast<size_t>(chunk * tensor::row_bytes(dtype, columns)));
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    CREST_RETURN_IF_ERROR(make_rows(model, entry, dtype, first, count, pool, values, bytes));
    CREST_RETURN_IF_ERROR(sink(std::span(bytes).first(static_cast<size_t>(count * tensor::row_bytes(dtype, columns)))));
  }
  return {};
}

std::vector<fs::path> input_files(const ModelFile& model) {
  std::vector<fs::path> files = model.files();
  if (model.kind() == ModelFile::Kind::kGguf) return files;
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "chat_template.jinja", "chat_template.json", "model.safetensors.index.json"})
    files.push_back(model.path() / name);
  return files;
}

Result<Metadata> converted_metadata(const ModelFile& folder) {
  Metadata metadata = folder.metadata();
  CREST_TRY(const text::VocabData vocab, folder.vocab());
  // What no tokenizer can be made of is found now, not when the written file is used.
  if (auto usable = text::Tokenizer::create(vocab); !usable.ok())
    return std::move(usable).error().with_context(folder.path().string());
  CREST_TRY(const std::string tokenizer, core::read_file(folder.path() / "tokenizer.json", kMaxTokenizerBytes));
  if (auto status = vocab_to_metadata(vocab, tokenizer, metadata); !status.ok())
    return std::move(status).error().with_context(folder.path().string());
  return metadata;
}

Result<ConvertReport> convert(const fs::path& folder, const fs::path& output, const ConvertOptions& options,
                              core::ThreadPool& pool) {
  const QuantMix* mix = nullptr;
  if (options.type != "auto") {
    CREST_TRY(mix, find_quant_mix(options.type));
  }
  std::error_code code;
  if (!fs::is_directory(folder, code))
    return make_error(ErrorCode::kInvalidArgument, "{}: is not a folder; convert reads Hugging Face folders",
                      folder.string());
  CREST_TRY(const auto model, ModelFile::open(folder, {.as_converted = true}));
  CREST_RETURN_IF_ERROR(refuse_same_file(output, input_files(*model)));
  CREST_TRY(Metadata metadata, converted_metadata(*model));
  ConvertReport report;
  CREST_TRY(const auto specs, choose_specs(*model, mix, report));
  uint64_t total = 0;
  for (const TensorSpec& spec : specs) total += *tensor_bytes(spec.dtype, spec.shape);
  if (mix == nullptr) {
    CREST_TRY(mix, find_quant_mix(tensor::name(most_common(specs))));
  }
  metadata.set("general.file_type", Value::u32(mix->file_type));
  metadata.set("general.quantization_version", Value::u32(2));
  CREST_TRY(GgufWriter writer, GgufWriter::create(output, metadata, specs));
  uint64_t done = 0;
  const auto sink = [&](std::span<const std::byte> bytes) -> Status {
    CREST_RETURN_IF_ERROR(writer.write(bytes));
    done += bytes.size();
    if (options.progress && !options.progress(done, total))
      return make_error(ErrorCode::kCancelled, "the conversion was stopped");
    return {};
  };
  for (const TensorEntry& entry : model->tensors()) {
    model->will_need(entry);
    CREST_RETURN_IF_ERROR(write_tensor_as(*model, entry, specs[entry.index].dtype, pool, sink));
    model->dont_need(entry);
  }
  CREST_RETURN_IF_ERROR(writer.finish());
  report.tensors = specs.size();
  report.bytes = fs::file_size(output, code);
  return report;
}

}  // namespace crest::format
