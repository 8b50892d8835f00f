#include <algorithm>

#include "ops/gemm/internal.h"
#include "ops/reference_math.h"

namespace crest::ops {
namespace {

// Rows dequantised at a time; each token's activations are then read once for all of them.
constexpr int64_t kRows = 4;

/// fp32 rows are read where they are.
bool in_place(const LinearProblem& p) { return p.dtype == tensor::DType::kF32 && p.layout == WeightLayout::kRows; }

int64_t workspace(const LinearProblem& p, int) {
  return in_place(p) ? 0 : kRows * p.cols * static_cast<int64_t>(sizeof(float));
}

bool supports(const LinearProblem& p) {
  using enum tensor::DType;
  const auto d = p.dtype;
  return d != kF64 && d != kI8 && d != kI16 && d != kI32 && d != kI64;
}

void store(const LinearArgs& a, int64_t token, int64_t row, float value) {
  if (a.bias != nullptr) value += a.bias[row];
  float& out = a.out[token * a.out_stride + row];
  out = a.accumulate ? out + value : value;
}

template <int Rows>
void multiply(const LinearArgs& a, int64_t row, const float* weights, int64_t stride) {
  for (int64_t t = 0; t < a.tokens; ++t) {
    float sums[Rows];
    dot_rows<Rows>(weights, stride, a.x->f32(a.x_row(t)), a.weight->cols, sums);
    for (int r = 0; r < Rows; ++r) store(a, t, row + r, sums[r]);
  }
}

Status launch(const LinearProblem& p, const LinearArgs& a, Launch& launch) {
  const Weight& w = *a.weight;
  auto* buffer = reinterpret_cast<float*>(launch.workspace.data());
  for (int64_t row = a.row_begin; row < a.row_end; row += kRows) {
    const int64_t count = std::min(kRows, a.row_end - row);
    const float* weights = buffer;
    int64_t stride = w.cols;
    if (in_place(p)) {
      weights = reinterpret_cast<const float*>(w.row(row, a.expert));
      stride = w.row_bytes / static_cast<int64_t>(sizeof(float));
    } else {
      for (int64_t r = 0; r < count; ++r) dequantize_weight_row(w, a.expert, row + r, buffer + r * w.cols);
    }
    if (count == kRows) {
      multiply<kRows>(a, row, weights, stride);
      continue;
    }
    for (int64_t r = 0; r < count; ++r) multiply<1>(a, row + r, weights + r * stride, stride);
  }
  return {};
}

}  // namespace

LinearKernel linear_reference() {
  return {.name = "reference",
          .supports = supports,
          .workspace = workspace,
          .launch = launch,
          .traits = {.activations = ActivationFormat::kF32, .row_grain = kRows}};
}

}  // namespace crest::ops
