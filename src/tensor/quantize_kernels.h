#pragma once

#include <cstdint>

namespace crest::tensor::detail {

/// One function a block type: n values into consecutive blocks. `weights` are n positive weights of the squared error
/// (all equal when nothing is known about the inputs). Values are finite and within the type's range.
void quantize_q4_0(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q4_1(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q5_0(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q5_1(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q8_0(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q2_k(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q3_k(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q4_k(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q5_k(const float* x, const float* weights, void* dst, int64_t n);
void quantize_q6_k(const float* x, const float* weights, void* dst, int64_t n);
void quantize_iq4_nl(const float* x, const float* weights, void* dst, int64_t n);
void quantize_iq4_xs(const float* x, const float* weights, void* dst, int64_t n);
void quantize_mxfp4(const float* x, const float* weights, void* dst, int64_t n);

}  // namespace crest::tensor::detail
