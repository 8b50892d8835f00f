#include "format/inspect.h"

#include <algorithm>
#include <map>

#include "format/file_kind.h"
#include "format/gguf.h"
#include "format/model_file.h"
#include "format/safetensors.h"
#include "text/vocab_data.h"

namespace crest::format {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> sizes_of(const Shape& shape) { return {shape.ne.begin(), shape.ne.begin() + shape.rank}; }

uint64_t elements_of(const InspectReport::Tensor& tensor) {
  uint64_t count = 1;
  for (const int64_t size : tensor.shape) count *= static_cast<uint64_t>(size);
  return count;
}

void add_totals(InspectReport& report) {
  std::map<std::string, InspectReport::TypeTotal> totals;
  for (const auto& tensor : report.tensors) {
    auto& total = totals[tensor.dtype];
    total.dtype = tensor.dtype;
    total.tensors += 1;
    total.elements += elements_of(tensor);
    total.bytes += tensor.bytes;
    report.parameters += elements_of(tensor);
    report.tensor_bytes += tensor.bytes;
  }
  for (auto& [name, total] : totals) report.types.push_back(std::move(total));
  std::ranges::sort(report.types, [](const auto& a, const auto& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.dtype < b.dtype;
  });
}

Result<InspectReport> inspect_gguf(const fs::path& path) {
  CREST_TRY(const auto files, open_gguf_set(path));
  InspectReport report;
  report.kind = InspectReport::Kind::kGguf;
  report.path = path.string();
  report.gguf_version = files.front()->version();
  report.alignment = files.front()->alignment();
  const Metadata& metadata = files.front()->metadata();
  report.metadata.assign(metadata.entries().begin(), metadata.entries().end());
  if (const Value* value = metadata.find("general.architecture")) report.architecture = value->as_string().value_or("");
  if (const Value* tokens = metadata.find("tokenizer.ggml.tokens"))
    report.vocab_size = static_cast<int64_t>(tokens->count());
  report.chat_template = metadata.contains("tokenizer.chat_template");
  for (const auto& file : files) {
    for (const GgufTensor& tensor : file->tensors())
      report.tensors.push_back({tensor.name, std::string(tensor::name(tensor.dtype)), sizes_of(tensor.shape),
                                tensor.bytes, tensor.offset, report.files.size()});
    report.files.push_back({file->source(), file->file_bytes(), file->tensors().size()});
  }
  if (report.tensors.empty() && report.vocab_size > 0)
    report.notes.emplace_back("a vocabulary without weights: good for tokenize, not for run");
  return report;
}

void add_safetensors(InspectReport& report, const SafetensorsFile& file) {
  for (const SafetensorsTensor& tensor : file.tensors())
    report.tensors.push_back(
        {tensor.name, tensor.dtype_name, tensor.shape, tensor.bytes, tensor.offset, report.files.size()});
  report.files.push_back({file.source(), file.file_bytes(), file.tensors().size()});
}

Result<InspectReport> inspect_safetensors(const fs::path& path) {
  CREST_TRY(const auto file, SafetensorsFile::open(path));
  InspectReport report;
  report.kind = InspectReport::Kind::kSafetensors;
  report.path = path.string();
  for (const auto& [key, value] : file->metadata()) report.metadata.emplace_back(key, Value::string(value));
  add_safetensors(report, *file);
  return report;
}

Result<InspectReport> inspect_folder(const fs::path& path) {
  InspectReport report;
  report.kind = InspectReport::Kind::kHuggingFace;
  report.path = path.string();
  CREST_TRY(const SafetensorsSet weights, SafetensorsSet::open(path));
  const auto model = ModelFile::open(path);
  if (!model.ok()) {
    for (const auto& file : weights.files()) add_safetensors(report, *file);
    report.notes.push_back("cannot be run: " + model.error().message);
    return report;
  }
  for (const auto& file : weights.files())
    report.files.push_back({file->source(), file->file_bytes(), file->tensors().size()});
  report.architecture = (*model)->architecture();
  const auto entries = (*model)->metadata().entries();
  report.metadata.assign(entries.begin(), entries.end());
  for (const TensorEntry& entry : (*model)->tensors()) {
    report.tensors.push_back(
        {entry.name, std::string(tensor::name(entry.dtype)), sizes_of(entry.shape), entry.bytes, 0, 0});
    if (entry.dtype == tensor::DType::kParoW4) ++report.packed_linears;
  }
  if (const auto vocab = (*model)->vocab(); vocab.ok()) {
    report.vocab_size = static_cast<int64_t>(vocab->tokens.size());
    report.chat_template = !vocab->chat_template.empty();
  } else {
    report.notes.push_back("no usable tokenizer: " + vocab.error().message);
  }
  return report;
}

Result<InspectReport> inspect_any(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) return inspect_folder(path);
  CREST_TRY(const auto map, core::FileMap::open(path));
  switch (file_kind(map->bytes())) {
    case FileKind::kGguf:
      return inspect_gguf(path);
    case FileKind::kSafetensors:
      return inspect_safetensors(path);
    case FileKind::kOther:
      break;
  }
  if (path.extension() == ".safetensors") return inspect_safetensors(path);
  return not_a("a GGUF file, a safetensors file or a Hugging Face folder", path.string(), map->bytes());
}

}  // namespace

std::string_view name(InspectReport::Kind kind) {
  switch (kind) {
    case InspectReport::Kind::kGguf:
      return "gguf";
    case InspectReport::Kind::kSafetensors:
      return "safetensors";
    case InspectReport::Kind::kHuggingFace:
      return "huggingface";
  }
  return "";
}

Result<InspectReport> inspect(const fs::path& path) {
  CREST_TRY(InspectReport report, inspect_any(path));
  add_totals(report);
  return report;
}

}  // namespace crest::format
