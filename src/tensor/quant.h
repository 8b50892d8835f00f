#pragma once

#include <cstdint>

#include "core/result.h"
#include "tensor/dtype.h"

namespace crest::tensor {

/// Values of one row. `src` holds row_bytes(dtype, n) bytes of any alignment, `dst` n floats; n is a multiple of the
/// type's block size. Every type but kParoW4 (its parts are separate tensors). Block formats are GGUF's and give the
/// same bits as its reference: scale products are formed first and in fp32, then multiplied by the integer, then the
/// minimum is subtracted; nothing is fused. 64-bit types round to the nearest float.
/// MXFP4's scale byte e means 2^(e-127) at all 256 values (255 is a NaN in OCP MX, but not in GGUF).
void dequantize_row(DType dtype, const void* src, float* dst, int64_t n);

/// Types that quantize_row can make: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4
/// and both fp8 types.
bool can_quantize(DType dtype);

/// Rounds one row of n values into row_bytes(dtype, n) bytes at `dst`; n is a multiple of the block size. The quantiser
/// minimises the squared error of the row; `importance` is null or n non-negative weights of that error, one a column
/// (mean squared activation of the input that the column meets). Plain types have nothing to choose and ignore it. The
/// result depends only on the arguments, not on the processor.
/// Error when the type cannot be made, or when a value cannot be represented: for block types NaN, infinities and what
/// is beyond the largest scale, for F16 finite values that would become infinite. The message says which element; the
/// caller adds tensor and row. Other plain conversions are IEEE's (fp8: see tensor/fp8.h).
Status quantize_row(DType dtype, const float* src, void* dst, int64_t n, const float* importance);

}  // namespace crest::tensor
