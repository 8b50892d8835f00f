#include <cmath>
#include <cstring>

#include "tensor/fp8.h"
#include "tensor/half.h"
#include "tensor/quant.h"

namespace crest::tensor {

bool can_quantize(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

Status quantize_row(DType dtype, const float* src, void* dst, int64_t n, const float*) {
  CREST_CHECK(n % info(dtype).block_size == 0, "{} values of {}", n, name(dtype));
  if (!can_quantize(dtype)) return make_error(ErrorCode::kUnsupported, "Crest cannot make {}", name(dtype));
  auto* out = static_cast<char*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(src[i])) return make_error(ErrorCode::kInvalidArgument, "element {} is {}", i, src[i]);
    if (dtype == DType::kF32) std::memcpy(out + 4 * i, src + i, 4);
    const uint16_t bits = dtype == DType::kF16 ? f32_to_f16(src[i]) : f32_to_bf16(src[i]);
    if (dtype != DType::kF32) std::memcpy(out + 2 * i, &bits, 2);
  }
  return {};
}

}  // namespace crest::tensor
