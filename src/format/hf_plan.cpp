#include "format/hf_plan.h"

#include <algorithm>

#include "format/escape.h"

namespace crest::format {
namespace {

using tensor::DType;

Status check_float(const SafetensorsTensor& tensor) {
  const auto dtype = tensor.dtype;
  if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF64) return {};
  return make_error(ErrorCode::kUnsupported,
                    "tensor {}: dtype {} is not supported for weights; supported are F32, F16, "
                    "BF16, F64 and ParoQuant's packed linears",
                    escaped(tensor.name), tensor.dtype_name);
}

Status check_elements(const SafetensorsTensor& tensor, int64_t rows, int64_t columns, std::string_view wanted) {
  if (!tensor.shape.empty() && tensor.elements() == rows * columns) {
    // The row length must match too, whatever dimensions of size 1 are written.
    int64_t last = 1;
    for (size_t i = tensor.shape.size(); i-- > 0 && last == 1;) last = tensor.shape[i];
    if (columns == 1 || last == columns || rows * columns == 1) return {};
  }
  return make_error(ErrorCode::kInvalidFile, "tensor {}: shape is {}, expected {} by the configuration",
                    escaped(tensor.name), tensor.shape_text(), wanted);
}

// GGUF keeps vectors in F32.
DType natural_type(const SafetensorsTensor& source, const Shape& shape, Elementwise elementwise) {
  if (shape.rank == 1 || elementwise != Elementwise::kNone || *source.dtype == DType::kF64) return DType::kF32;
  return *source.dtype;
}

bool kept_f32(std::string_view gguf) {
  return gguf.ends_with("ffn_gate_inp.weight") || gguf.ends_with("ssm_conv1d.weight");
}

}  // namespace

PlanBuilder::PlanBuilder(const HfConfig& config, const SafetensorsSet& weights, bool as_converted, HfPlan& plan)
    : config_(config), weights_(weights), as_converted_(as_converted), plan_(plan) {}

const SafetensorsTensor* PlanBuilder::take(const std::string& name) {
  const SafetensorsTensor* tensor = weights_.find(name);
  if (tensor != nullptr) used_.insert(tensor);
  return tensor;
}

Result<const SafetensorsTensor*> PlanBuilder::need(const std::string& name) {
  const SafetensorsTensor* tensor = take(name);
  if (tensor == nullptr) return make_error(ErrorCode::kNotFound, "tensor {} is missing in the safetensors files", name);
  CREST_RETURN_IF_ERROR(check_float(*tensor));
  return tensor;
}

void PlanBuilder::push(PlannedTensor tensor) {
  if (!tensor.paro) tensor.entry.bytes = *tensor_bytes(tensor.entry.dtype, tensor.entry.shape);
  plan_.tensors.push_back(std::move(tensor));
}

// `shape` is the GGUF shape; the source is seen as rows of shape[0] values.
Status PlanBuilder::add_plain(const std::string& gguf, const SafetensorsTensor& source, Shape shape,
                              Elementwise elementwise, Orders orders) {
  const int64_t columns = shape[0];
  std::string wanted = fmt::format("[{}", shape[shape.rank - 1]);
  for (int i = shape.rank - 2; i >= 0; --i) wanted += fmt::format(", {}", shape[i]);
  CREST_RETURN_IF_ERROR(check_elements(source, shape.rows(), columns, wanted + "]"));
  PlannedTensor tensor;
  tensor.entry.name = gguf;
  tensor.entry.shape = shape;
  tensor.entry.dtype = kept_f32(gguf) ? DType::kF32 : natural_type(source, shape, elementwise);
  tensor.sources = {&source};
  tensor.columns = columns;
  tensor.rows_per_matrix = tensor.source_rows = shape.rows();
  tensor.elementwise = elementwise;
  tensor.rows = std::move(orders.rows);
  tensor.column_order = std::move(orders.columns);
  push(std::move(tensor));
  return {};
}

Status PlanBuilder::add_norm(const std::string& gguf, const std::string& name, int64_t size, bool shifted) {
  return add_vector(gguf, name, size, shifted ? Elementwise::kAddOne : Elementwise::kNone, {});
}

Status PlanBuilder::add_vector(const std::string& gguf, const std::string& name, int64_t size, Elementwise elementwise,
                               BlockOrder order) {
  CREST_TRY(const SafetensorsTensor* source, need(name));
  return add_plain(gguf, *source, {size}, elementwise, {{}, std::move(order)});
}

Status PlanBuilder::add_linear(const std::string& gguf, const std::string& module, int64_t out, int64_t in,
                               Orders orders) {
  if (const SafetensorsTensor* bias = take(module + ".bias"); bias != nullptr) {
    CREST_RETURN_IF_ERROR(check_float(*bias));
    CREST_RETURN_IF_ERROR(add_plain(gguf + ".bias", *bias, {out}, Elementwise::kNone, {{}, orders.rows}));
  }
  CREST_TRY(const bool packed, add_paro(gguf + ".weight", module, out, in, orders));
  if (packed) {
    take(module + ".weight");  // both may be there: the packed one counts
    return {};
  }
  CREST_TRY(const SafetensorsTensor* source, need(module + ".weight"));
  return add_plain(gguf + ".weight", *source, {in, out}, Elementwise::kNone, std::move(orders));
}

Status PlanBuilder::add_stacked(const std::string& gguf, std::vector<const SafetensorsTensor*> sources, int64_t rows,
                                int64_t columns) {
  DType dtype = *sources.front()->dtype == DType::kF64 ? DType::kF32 : *sources.front()->dtype;
  for (const SafetensorsTensor* source : sources) {
    CREST_RETURN_IF_ERROR(check_elements(*source, rows, columns, fmt::format("[{}, {}]", rows, columns)));
    if (source->dtype != sources.front()->dtype) dtype = DType::kF32;
  }
  PlannedTensor tensor;
  tensor.entry.name = gguf;
  tensor.entry.shape = {columns, rows, static_cast<int64_t>(sources.size())};
  tensor.entry.dtype = dtype;
  tensor.sources = std::move(sources);
  tensor.columns = columns;
  tensor.rows_per_matrix = tensor.source_rows = rows;
  push(std::move(tensor));
  return {};
}

// Rows [first_row, first_row + rows) of each matrix of a fused [experts, source rows, columns] tensor.
Status PlanBuilder::add_half(const std::string& gguf, const SafetensorsTensor& fused, int64_t first_row, int64_t rows,
                             int64_t columns) {
  const Shape shape = {columns, rows, config_.experts};
  PlannedTensor tensor;
  tensor.entry.name = gguf;
  tensor.entry.shape = shape;
  tensor.entry.dtype = natural_type(fused, shape, Elementwise::kNone);
  tensor.sources = {&fused};
  tensor.columns = columns;
  tensor.rows_per_matrix = rows;
  tensor.source_rows = fused.elements() / columns / config_.experts;
  tensor.first_row = first_row;
  push(std::move(tensor));
  return {};
}

Result<HfPlan> make_hf_plan(const HfConfig& config, const SafetensorsSet& weights, bool as_converted) {
  HfPlan plan;
  plan.metadata = config.metadata;
  PlanBuilder builder(config, weights, as_converted, plan);
  CREST_RETURN_IF_ERROR(builder.build());
  return plan;
}

}  // namespace crest::format
