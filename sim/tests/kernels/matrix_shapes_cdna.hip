#include "matrix_attention.h"
#include "matrix_shapes.h"
// C[M,N] = A[M,K] · B[N,K]ᵀ with every family of MFMA.
using i32x8 = vec<int, 8>;
using f64x4 = vec<double, 4>;
using i32x16 = vec<int, 16>;

MFMA_GEMM(gemm_f16_16, 16, 16, 4, f16, f16x4, f32x4, float, __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_f16_32, 32, 8, 4, f16, f16x4, f32x16, float, __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_bf16_16, 16, 16, 4, u16, i16x4, f32x4, float,
          __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_f32_16, 16, 4, 1, float, float, f32x4, float, __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_f32_32, 32, 2, 1, float, float, f32x16, float, __builtin_amdgcn_mfma_f32_32x32x2f32(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_i8_32, 32, 16, 8, i8, long, i32x16, int, __builtin_amdgcn_mfma_i32_32x32x16_i8(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_fp8_32, 32, 16, 8, u8, long, f32x16, float,
          __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_bf8_16, 16, 32, 8, u8, long, f32x4, float,
          __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_fp8_bf8_16, 16, 32, 8, u8, long, f32x4, float,
          __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(a, b, acc, 0, 0, 0))
#ifdef __gfx942__
MFMA_GEMM(gemm_xf32_16, 16, 8, 2, float, f32x2, f32x4, float,
          __builtin_amdgcn_mfma_f32_16x16x8_xf32(a, b, acc, 0, 0, 0))
#else
MFMA_GEMM(gemm_f16_16x16x32, 16, 32, 8, f16, f16x8, f32x4, float,
          __builtin_amdgcn_mfma_f32_16x16x32_f16(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_f16_32x32x16, 32, 16, 8, f16, f16x8, f32x16, float,
          __builtin_amdgcn_mfma_f32_32x32x16_f16(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_bf16_16x16x32, 16, 32, 8, u16, bf16x8, f32x4, float,
          __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, acc, 0, 0, 0))
MFMA_GEMM(gemm_i8_16x16x64, 16, 64, 16, i8, i32x4, i32x4, int,
          __builtin_amdgcn_mfma_i32_16x16x64_i8(a, b, acc, 0, 0, 0))

// Microscaling: A and B fp8 with one e8m0 byte per 32 values of k; K is a multiple of 128. Lane l holds, of row l % 16,
// the values 16·(l/16) … + 15 and 64 + those, and the scale of block l/16.
extern "C" __global__ LB(64) void gemm_mxfp8(const u8* A, const u8* B, const u8* scaleA, const u8* scaleB, float* out,
                                             int M, int N, int K) {
  int l = tid(), r = l % 16, g = l / 16, row = bidy() * 16 + r, column = bidx() * 16 + r;
  f32x4 acc = {};
  for (int k0 = 0; k0 < K; k0 += 128) {
    i32x8 a = {}, b = {};
    int sa = 127, sb = 127;
    if (row < M) {
      __builtin_memcpy(&a, &A[(u64)row * K + k0 + g * 16], 16);
      __builtin_memcpy((char*)&a + 16, &A[(u64)row * K + k0 + 64 + g * 16], 16);
      sa = scaleA[(u64)row * (K / 32) + k0 / 32 + g];
    }
    if (column < N) {
      __builtin_memcpy(&b, &B[(u64)column * K + k0 + g * 16], 16);
      __builtin_memcpy((char*)&b + 16, &B[(u64)column * K + k0 + 64 + g * 16], 16);
      sb = scaleB[(u64)column * (K / 32) + k0 / 32 + g];
    }
    acc = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, acc, 0, 0, 0, sa, 0, sb);
  }
  mfma_store<16>(out, acc, bidy() * 16, bidx() * 16, M, N);
}
// The same with fp4: two values a byte, lane l holds the 32 values of block l/16.
extern "C" __global__ LB(64) void gemm_mxfp4(const u8* A, const u8* B, const u8* scaleA, const u8* scaleB, float* out,
                                             int M, int N, int K) {
  int l = tid(), r = l % 16, g = l / 16, row = bidy() * 16 + r, column = bidx() * 16 + r;
  f32x4 acc = {};
  for (int k0 = 0; k0 < K; k0 += 128) {
    i32x8 a = {}, b = {};
    int sa = 127, sb = 127;
    if (row < M) {
      __builtin_memcpy(&a, &A[((u64)row * K + k0) / 2 + g * 16], 16);
      sa = scaleA[(u64)row * (K / 32) + k0 / 32 + g];
    }
    if (column < N) {
      __builtin_memcpy(&b, &B[((u64)column * K + k0) / 2 + g * 16], 16);
      sb = scaleB[(u64)column * (K / 32) + k0 / 32 + g];
    }
    acc = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, acc, 4, 4, 0, sa, 0, sb);
  }
  mfma_store<16>(out, acc, bidy() * 16, bidx() * 16, M, N);
}
#endif

// fp64: row r of four consecutive accumulators is 4·e + lane/16.
extern "C" __global__ LB(64) void gemm_f64_16(const double* A, const double* B, double* out, int M, int N, int K) {
  Operand<double> left{A, M, K}, right{B, N, K};
  int l = tid(), row0 = bidy() * 16, column0 = bidx() * 16;
  f64x4 acc = {};
  for (int k0 = 0; k0 < K; k0 += 4)
    acc = __builtin_amdgcn_mfma_f64_16x16x4f64(left.at(row0 + l % 16, k0 + l / 16),
                                               right.at(column0 + l % 16, k0 + l / 16), acc, 0, 0, 0);
  for (int e = 0; e < 4; e++) {
    int row = row0 + 4 * e + l / 16, column = column0 + l % 16;
    if (row < M && column < N) out[(u64)row * N + column] = acc[e];
  }
}

// Sixteen independent 4 × 4 products: A, B and C are [16][4][K], [16][4][K] and [16][4][4].
extern "C" __global__ LB(64) void batched_4x4(const u16* A, const u16* B, float* out, int K) {
  int l = tid(), block = l / 4, r = l % 4;
  f32x4 acc = {};
  for (int k = 0; k < K; k += 4) {
    i16x4 a, b;
    __builtin_memcpy(&a, &A[(block * 4 + r) * K + k], 8);
    __builtin_memcpy(&b, &B[(block * 4 + r) * K + k], 8);
    acc = __builtin_amdgcn_mfma_f32_4x4x4bf16_1k(a, b, acc, 0, 0, 0);
  }
  for (int e = 0; e < 4; e++) out[block * 16 + e * 4 + r] = acc[e];
}

// 2:4 sparse A: `values` [M][K/2], `places` [M][K/4] bytes with two bits per stored value; K is a multiple of 32.
extern "C" __global__ LB(64) void gemm_sparse(const f16* values, const u8* places, const f16* B, float* out, int M,
                                              int N, int K) {
  int l = tid(), r = l % 16, g = l / 16, row = bidy() * 16 + r, column = bidx() * 16 + r;
  f32x4 acc = {};
  for (int k0 = 0; k0 < K; k0 += 32) {
    f16x4 a = {};
    f16x8 b = {};
    int index = 0;
    if (row < M) {
      __builtin_memcpy(&a, &values[(u64)row * (K / 2) + k0 / 2 + g * 4], 8);
      for (int quad = 0; quad < 2; quad++)
        index |= (places[(u64)row * (K / 4) + k0 / 4 + g * 2 + quad] & 15) << (4 * quad);
    }
    if (column < N) __builtin_memcpy(&b, &B[(u64)column * K + k0 + g * 8], 16);
    acc = __builtin_amdgcn_smfmac_f32_16x16x32_f16(a, b, acc, index, 0, 0);
  }
  mfma_store<16>(out, acc, bidy() * 16, bidx() * 16, M, N);
}

// fp8 quantisation of rows: scale = largest magnitude / largest fp8; and back.
extern "C" __global__ LB(64) void quantise_fp8(const float* in, u8* out, float* scales, int columns, float largest) {
  const float* row = in + (u64)bidx() * columns;
  float top = 0;
  for (int i = tid(); i < columns; i += 64) top = __builtin_fmaxf(top, __builtin_fabsf(row[i]));
  top = wave_max(top);
  float scale = top > 0 ? top / largest : 1.0f;
  if (tid() == 0) scales[bidx()] = scale;
  for (int i = tid() * 2; i < columns; i += 128) {
    float second = i + 1 < columns ? row[i + 1] / scale : 0.0f;
    u32 packed = __builtin_amdgcn_cvt_pk_fp8_f32(row[i] / scale, second, 0, false);
    out[(u64)bidx() * columns + i] = (u8)packed;
    if (i + 1 < columns) out[(u64)bidx() * columns + i + 1] = (u8)(packed >> 8);
  }
}
extern "C" __global__ LB(64) void dequantise_fp8(const u8* in, const float* scales, float* out, int count,
                                                 int columns) {
  int i = bidx() * 64 + tid();
  if (i < count) out[i] = __builtin_amdgcn_cvt_f32_fp8(in[i], 0) * scales[i / columns];
}
