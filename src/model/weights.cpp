#include "model/weights.h"

#include <algorithm>

#include "tensor/half.h"

namespace crest::model {
namespace {

bool is_weight_type(tensor::DType dtype) {
  switch (dtype) {
    case tensor::DType::kF64:
    case tensor::DType::kI8:
    case tensor::DType::kI16:
    case tensor::DType::kI32:
    case tensor::DType::kI64:
      return false;
    default:
      return true;
  }
}

std::vector<uint16_t> to_half(const std::vector<float>& values) {
  std::vector<uint16_t> half(values.size());
  std::transform(values.begin(), values.end(), half.begin(), tensor::f32_to_f16);
  return half;
}

}  // namespace

WeightLoader::WeightLoader(const format::ModelFile& file, const LoadOptions& options)
    : file_(file), options_(options), taken_(file.tensors().size()) {
  for (const auto& entry : file.tensors()) total_ += entry.bytes;
}

Result<const format::TensorEntry*> WeightLoader::take(std::string_view name, const format::Shape& shape) {
  CREST_TRY(const format::TensorEntry* entry, file_.require(name));
  if (entry->shape.ne != shape.ne) {
    return error(ErrorCode::kInvalidFile, "tensor {} has shape {}, expected {}", name, entry->shape.to_text(),
                 shape.to_text());
  }
  taken_[entry->index] = true;
  return entry;
}

Status WeightLoader::report(const format::TensorEntry& entry) {
  done_ += entry.bytes;
  parameters_ += entry.shape.elements();
  if (options_.progress && !options_.progress(done_, total_)) {
    return make_error(ErrorCode::kCancelled, "loading was cancelled");
  }
  return {};
}

Result<Linear> WeightLoader::table(std::string_view name, int64_t in, int64_t out) {
  Linear result{fmt::format("{}.weight", name), {}, {}};
  CREST_TRY(const format::TensorEntry* entry, take(result.name, {in, out}));
  CREST_TRY(result.weight, stored(*entry, in, out, 1));
  CREST_RETURN_IF_ERROR(report(*entry));
  return result;
}

Result<Linear> WeightLoader::from_table(const Linear& table) {
  CREST_TRY(const format::TensorEntry* entry, file_.require(table.name));
  Linear result{table.name, {}, {}};
  CREST_TRY(result.weight, prepare(table.weight, *entry));
  return result;
}

Result<Linear> WeightLoader::linear(std::string_view name, int64_t in, int64_t out) {
  Linear result{fmt::format("{}.weight", name), {}, {}};
  CREST_TRY(const format::TensorEntry* entry, take(result.name, out == 1 ? format::Shape{in} : format::Shape{in, out}));
  CREST_TRY(result.weight, matrix(*entry, in, out, 1));
  CREST_RETURN_IF_ERROR(report(*entry));
  const std::string bias = fmt::format("{}.bias", name);
  if (has(bias)) {
    CREST_TRY(result.bias, values(bias, {out}));
  }
  return result;
}

Result<Linear> WeightLoader::experts(std::string_view name, int64_t in, int64_t out, int64_t experts) {
  Linear result{fmt::format("{}.weight", name), {}, {}};
  CREST_TRY(const format::TensorEntry* entry, take(result.name, {in, out, experts}));
  CREST_TRY(result.weight, matrix(*entry, in, out, experts));
  CREST_RETURN_IF_ERROR(report(*entry));
  return result;
}

Result<std::vector<float>> WeightLoader::values(std::string_view name, const format::Shape& shape) {
  CREST_TRY(const format::TensorEntry* entry, take(name, shape));
  std::vector<float> result(static_cast<size_t>(shape.elements()));
  CREST_RETURN_IF_ERROR(file_.read_rows(*entry, 0, shape.rows(), result.data()));
  CREST_RETURN_IF_ERROR(report(*entry));
  return result;
}

Result<ops::Weight> WeightLoader::matrix(const format::TensorEntry& entry, int64_t in, int64_t out, int64_t experts) {
  CREST_TRY(ops::Weight weight, stored(entry, in, out, experts));
  return prepare(std::move(weight), entry);
}

Result<ops::Weight> WeightLoader::prepare(ops::Weight weight, const format::TensorEntry& entry) {
  const ops::WeightLayout before = weight.layout;
  CREST_TRY(ops::Weight prepared,
            ops::prepare_weight(std::move(weight), {.keep_mapping = options_.keep_mapping, .pool = options_.pool}));
  // The packed copy is what runs: the file's pages need not stay in memory beside it.
  if (prepared.layout != before) file_.dont_need(entry);
  return prepared;
}

Result<ops::Weight> WeightLoader::stored(const format::TensorEntry& entry, int64_t in, int64_t out, int64_t experts) {
  if (!is_weight_type(entry.dtype)) {
    return error(ErrorCode::kUnsupported, "tensor {} has type {}, which weights cannot have", entry.name,
                 tensor::name(entry.dtype));
  }
  if (entry.dtype == tensor::DType::kParoW4) return paro_matrix(entry, in, out, experts);
  file_.will_need(entry);
  CREST_TRY(const format::TensorData data, file_.data(entry));
  auto weight = ops::make_weight(entry.dtype, out, in, experts, data.bytes, data.owner);
  if (!weight.ok())
    return std::move(weight).error().with_context(fmt::format("{}: tensor {}", file_.path().string(), entry.name));
  return weight;
}

Result<ops::Weight> WeightLoader::paro_matrix(const format::TensorEntry& entry, int64_t in, int64_t out,
                                              int64_t experts) {
  CREST_TRY(const format::ParoParts parts, file_.paro(entry));
  if (parts.in_features != in || parts.out_features != out || static_cast<int64_t>(parts.matrices.size()) != experts) {
    return error(ErrorCode::kInvalidFile, "ParoQuant tensor {} holds {} matrices [{}, {}], expected {} of [{}, {}]",
                 entry.name, parts.matrices.size(), parts.out_features, parts.in_features, experts, out, in);
  }
  const auto context = fmt::format("{}: tensor {}", file_.path().string(), entry.name);
  auto rotation =
      ops::Rotation::create(in, parts.rotations, to_half(parts.theta), parts.pairs, to_half(parts.channel_scales));
  if (!rotation.ok()) return std::move(rotation).error().with_context(context);
  std::vector<ops::ParoTensors> tensors;
  for (const auto& m : parts.matrices) tensors.push_back({m.qweight.bytes, m.qzeros.bytes, m.scales.bytes});
  auto weight = ops::make_paro_weight(out, in, tensors, std::move(*rotation));
  if (!weight.ok()) return std::move(weight).error().with_context(context);
  return weight;
}

std::vector<std::string> WeightLoader::unused() const {
  std::vector<std::string> names;
  for (const auto& entry : file_.tensors()) {
    if (!taken_[entry.index]) names.push_back(entry.name);
  }
  return names;
}

void WeightLoader::skip(std::string_view prefix) {
  for (const auto& entry : file_.tensors()) {
    if (entry.name.starts_with(prefix)) taken_[entry.index] = true;
  }
}

}  // namespace crest::model
