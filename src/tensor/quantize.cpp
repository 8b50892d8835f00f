#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tensor/blocks.h"
#include "tensor/fp8.h"
#include "tensor/half.h"
#include "tensor/quant.h"
#include "tensor/quantize_kernels.h"

namespace crest::tensor {
namespace {

using Kernel = void (*)(const float*, const float*, void*, int64_t);

// Largest magnitude: the largest half as scale, times the largest code and the largest scale of a sub-block.
struct Quantiser {
  DType dtype;
  Kernel kernel;
  double limit;
};
constexpr double kHalfMax = 65504;
constexpr Quantiser kQuantisers[] = {
    {DType::kQ4_0, detail::quantize_q4_0, kHalfMax * 7},
    {DType::kQ4_1, detail::quantize_q4_1, kHalfMax},
    {DType::kQ5_0, detail::quantize_q5_0, kHalfMax * 15},
    {DType::kQ5_1, detail::quantize_q5_1, kHalfMax},
    {DType::kQ8_0, detail::quantize_q8_0, kHalfMax * 127},
    {DType::kQ2_K, detail::quantize_q2_k, kHalfMax * 15},
    {DType::kQ3_K, detail::quantize_q3_k, kHalfMax * 3 * 31},
    {DType::kQ4_K, detail::quantize_q4_k, kHalfMax * 63},
    {DType::kQ5_K, detail::quantize_q5_k, kHalfMax * 63},
    {DType::kQ6_K, detail::quantize_q6_k, kHalfMax * 31 * 127},
    {DType::kIQ4_NL, detail::quantize_iq4_nl, kHalfMax * 113},
    {DType::kIQ4_XS, detail::quantize_iq4_xs, kHalfMax * 113 * 31},
    {DType::kMXFP4, detail::quantize_mxfp4, 0x1p127},
};

const Quantiser* find_quantiser(DType dtype) {
  for (const Quantiser& q : kQuantisers) {
    if (q.dtype == dtype) return &q;
  }
  return nullptr;
}

template <typename Element, typename Convert>
void each(const float* src, void* dst, int64_t n, Convert convert) {
  auto* bytes = static_cast<char*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    const Element element = convert(src[i]);
    std::memcpy(bytes + i * static_cast<int64_t>(sizeof(Element)), &element, sizeof(Element));
  }
}

bool quantize_plain(DType dtype, const float* src, void* dst, int64_t n) {
  using enum DType;
  switch (dtype) {
    case kF32:
      std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
      return true;
    case kF16:
      return each<uint16_t>(src, dst, n, f32_to_f16), true;
    case kBF16:
      return each<uint16_t>(src, dst, n, f32_to_bf16), true;
    case kF8_E4M3FN:
      return each<uint8_t>(src, dst, n, f32_to_e4m3fn), true;
    case kF8_E4M3FNUZ:
      return each<uint8_t>(src, dst, n, f32_to_e4m3fnuz), true;
    default:
      return false;
  }
}

Status check_values(DType dtype, const float* src, int64_t n, double limit) {
  for (int64_t i = 0; i < n; ++i) {
    if (std::fabs(src[i]) <= limit) continue;
    if (std::isfinite(src[i])) {
      return make_error(ErrorCode::kInvalidArgument, "element {} is {}; {} holds at most {}", i, src[i], name(dtype),
                        limit);
    }
    return make_error(ErrorCode::kInvalidArgument, "element {} is {}; only finite values can be quantised", i, src[i]);
  }
  return {};
}

// Turning a finite weight into an infinity would go unnoticed until the model talks nonsense.
Status check_half_overflow(const float* src, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (std::isfinite(src[i]) && std::fabs(src[i]) >= 65520) {
      return make_error(ErrorCode::kInvalidArgument, "element {} is {}; F16 holds at most 65504", i, src[i]);
    }
  }
  return {};
}

// Weights of mean 1 a row; a column that was never active still counts a little, so that its codes are defined.
std::vector<float> row_weights(const float* importance, int64_t n) {
  std::vector<float> weights(static_cast<size_t>(n), 1.0f);
  if (importance == nullptr) return weights;
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += importance[i];
  if (!(total > 0)) return weights;
  const double inverse = static_cast<double>(n) / total;
  for (int64_t i = 0; i < n; ++i) {
    weights[static_cast<size_t>(i)] = static_cast<float>(std::max(importance[i] * inverse, 1e-4));
  }
  return weights;
}

}  // namespace

bool can_quantize(DType dtype) {
  using enum DType;
  return find_quantiser(dtype) != nullptr || dtype == kF32 || dtype == kF16 || dtype == kBF16 || dtype == kF8_E4M3FN ||
         dtype == kF8_E4M3FNUZ;
}

Status quantize_row(DType dtype, const float* src, void* dst, int64_t n, const float* importance) {
  CREST_CHECK(n % info(dtype).block_size == 0, "{} values of {}", n, name(dtype));
  if (!can_quantize(dtype)) {
    return make_error(ErrorCode::kUnsupported, "Crest reads {} but cannot make it", name(dtype));
  }
  if (dtype == DType::kF16) CREST_RETURN_IF_ERROR(check_half_overflow(src, n));
  if (quantize_plain(dtype, src, dst, n)) return {};
  const Quantiser* quantiser = find_quantiser(dtype);
  CREST_RETURN_IF_ERROR(check_values(dtype, src, n, quantiser->limit));
  const std::vector<float> weights = row_weights(importance, n);
  quantiser->kernel(src, weights.data(), dst, n);
  return {};
}

}  // namespace crest::tensor
