#include "format/escape.h"
#include "format/hf_plan.h"

namespace crest::format {
namespace {

using tensor::DType;
constexpr int64_t kGroup = ParoParts::kGroup;
constexpr int64_t kMaxRotations = 64;

Status expect(const SafetensorsTensor& tensor, std::string_view dtype, const std::vector<int64_t>& shape) {
  if (tensor.dtype_name == dtype && tensor.shape == shape) return {};
  return make_error(ErrorCode::kInvalidFile, "tensor {}: is {} {}, expected {} [{}]", escaped(tensor.name),
                    tensor.dtype_name, tensor.shape_text(), dtype, fmt::join(shape, ", "));
}

Status check_sizes(const std::string& module, int64_t out, int64_t in) {
  if (in % kGroup == 0 && out % 8 == 0) return {};
  return make_error(ErrorCode::kInvalidFile,
                    "{}: a ParoQuant linear of {} inputs and {} outputs; inputs must be a "
                    "multiple of {}, outputs of 8",
                    module, in, out, kGroup);
}

Status check_rotation(const PlannedParo& paro, int64_t in) {
  const auto& theta = *paro.theta;
  if (theta.shape.size() != 2 || theta.shape[0] < 1 || theta.shape[0] > kMaxRotations)
    return make_error(ErrorCode::kInvalidFile, "tensor {}: shape is {}, expected [rounds from 1 to {}, {}]",
                      escaped(theta.name), theta.shape_text(), kMaxRotations, in / 2);
  const int64_t rounds = theta.shape[0];
  CREST_RETURN_IF_ERROR(expect(theta, "F16", {rounds, in / 2}));
  CREST_RETURN_IF_ERROR(expect(*paro.pairs, "I16", {rounds, in}));
  const auto& scales = *paro.channel_scales;
  if (scales.shape.size() == 1) return expect(scales, "F16", {in});
  return expect(scales, "F16", {1, in});
}

Status check_matrix(const PlannedParo::Matrix& matrix, bool legacy, int64_t out, int64_t in) {
  CREST_RETURN_IF_ERROR(expect(*matrix.scales, "F16", {in / kGroup, out}));
  if (legacy) {
    CREST_RETURN_IF_ERROR(expect(*matrix.qweight, "I16", {out / 4, in}));
    return expect(*matrix.qzeros, "F16", {in / kGroup, out});
  }
  CREST_RETURN_IF_ERROR(expect(*matrix.qweight, "I32", {in, out / 8}));
  return expect(*matrix.qzeros, "I32", {in / kGroup, out / 8});
}

uint64_t bytes_of(const PlannedParo& paro) {
  uint64_t bytes = paro.theta->bytes + paro.pairs->bytes + paro.channel_scales->bytes;
  for (const auto& matrix : paro.matrices) bytes += matrix.qweight->bytes + matrix.qzeros->bytes + matrix.scales->bytes;
  return bytes;
}

// A converted file holds the plain weights: GGUF has no such type. F16 keeps more of int4 x f16 than BF16 would.
void finish(PlannedTensor& tensor, bool as_converted) {
  tensor.entry.dtype = as_converted ? DType::kF16 : DType::kParoW4;
  tensor.entry.bytes = as_converted ? *tensor_bytes(DType::kF16, tensor.entry.shape) : bytes_of(*tensor.paro);
  tensor.columns = tensor.entry.shape[0];
  tensor.rows_per_matrix = tensor.source_rows = tensor.entry.shape[1];
}

}  // namespace

// True when the module is packed: decided for each module by what is there.
Result<bool> PlanBuilder::add_paro(const std::string& gguf, const std::string& module, int64_t out, int64_t in,
                                   const Orders& orders) {
  PlannedParo paro;
  paro.legacy = weights_.find(module + ".qweight") == nullptr && weights_.find(module + ".qlinear.qweight") != nullptr;
  if (!paro.legacy && weights_.find(module + ".qweight") == nullptr) return false;
  const std::string linear = module + (paro.legacy ? ".qlinear." : ".");
  const std::string rotation = module + (paro.legacy ? ".rotation." : ".");
  const auto part = [&](const std::string& name) -> Result<const SafetensorsTensor*> {
    const SafetensorsTensor* tensor = take(name);
    if (tensor == nullptr)
      return make_error(ErrorCode::kNotFound, "tensor {} is missing in the safetensors files", name);
    return tensor;
  };
  CREST_RETURN_IF_ERROR(check_sizes(module, out, in));
  PlannedParo::Matrix matrix;
  CREST_TRY(matrix.qweight, part(linear + "qweight"));
  CREST_TRY(matrix.qzeros, part(linear + (paro.legacy ? "scaled_zeros" : "qzeros")));
  CREST_TRY(matrix.scales, part(linear + "scales"));
  CREST_TRY(paro.theta, part(rotation + "theta"));
  CREST_TRY(paro.pairs, part(rotation + "pairs"));
  CREST_TRY(paro.channel_scales, part(rotation + "channel_scales"));
  CREST_RETURN_IF_ERROR(check_matrix(matrix, paro.legacy, out, in));
  CREST_RETURN_IF_ERROR(check_rotation(paro, in));
  paro.matrices = {matrix};
  PlannedTensor tensor;
  tensor.entry.name = gguf;
  tensor.entry.shape = {in, out};
  tensor.rows = orders.rows;
  tensor.column_order = orders.columns;
  tensor.paro = std::move(paro);
  finish(tensor, as_converted_);
  push(std::move(tensor));
  return true;
}

Status PlanBuilder::add_paro_experts(const std::string& gguf, const std::string& experts, const std::string& projection,
                                     const std::string& rotation, int64_t out, int64_t in) {
  const auto part = [&](const std::string& name) -> Result<const SafetensorsTensor*> {
    const SafetensorsTensor* tensor = take(name);
    if (tensor == nullptr)
      return make_error(ErrorCode::kNotFound, "tensor {} is missing in the safetensors files", name);
    return tensor;
  };
  CREST_RETURN_IF_ERROR(check_sizes(experts + projection, out, in));
  PlannedParo paro;
  CREST_TRY(paro.theta, part(experts + rotation + "_theta"));
  CREST_TRY(paro.pairs, part(experts + rotation + "_pairs"));
  CREST_TRY(paro.channel_scales, part(experts + rotation + "_channel_scales"));
  CREST_RETURN_IF_ERROR(check_rotation(paro, in));
  for (int64_t e = 0; e < config_.experts; ++e) {
    const std::string module = fmt::format("{}{}.{}.", experts, e, projection);
    PlannedParo::Matrix matrix;
    CREST_TRY(matrix.qweight, part(module + "qweight"));
    CREST_TRY(matrix.qzeros, part(module + "qzeros"));
    CREST_TRY(matrix.scales, part(module + "scales"));
    CREST_RETURN_IF_ERROR(check_matrix(matrix, false, out, in));
    paro.matrices.push_back(matrix);
  }
  PlannedTensor tensor;
  tensor.entry.name = gguf;
  tensor.entry.shape = {in, out, config_.experts};
  tensor.paro = std::move(paro);
  finish(tensor, as_converted_);
  push(std::move(tensor));
  return {};
}

}  // namespace crest::format
