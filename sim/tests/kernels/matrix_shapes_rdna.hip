#include "matrix_attention.h"
#include "matrix_shapes.h"
// C[M,N] = A[M,K] · B[N,K]ᵀ with every family of WMMA, in wave32 and wave64.
#if WAVE == 32
#define WMMA(name) __builtin_amdgcn_wmma_##name##_w32
using i32xN = vec<int, 8>;
using f16xN = vec<f16, 16>;
using i16xN = vec<short, 16>;
#else
#define WMMA(name) __builtin_amdgcn_wmma_##name##_w64
using i32xN = vec<int, 4>;
using f16xN = vec<f16, 8>;
using i16xN = vec<short, 8>;
#endif

// All 16 values of k of row lane % 16.
template <class Frag, class T>
DEV Frag wmma_fragment(const Operand<T>& m, int row0, int k0) {
  Frag f;
  T values[sizeof(Frag) / sizeof(T)];
  for (int e = 0; e < (int)(sizeof(Frag) / sizeof(T)); e++) values[e] = m.at(row0 + tid() % 16, k0 + e);
  __builtin_memcpy(&f, values, sizeof(f));
  return f;
}

#define WMMA_GEMM(name, T, FRAG, ACC, C, EXPRESSION)                                              \
  extern "C" __global__ LB(WAVE) void name(const T* A, const T* B, C* out, int M, int N, int K) { \
    Operand<T> left{A, M, K}, right{B, N, K};                                                     \
    int row0 = bidy() * 16, column0 = bidx() * 16;                                                \
    ACC acc = {};                                                                                 \
    for (int k0 = 0; k0 < K; k0 += 16) {                                                          \
      FRAG a = wmma_fragment<FRAG>(left, row0, k0), b = wmma_fragment<FRAG>(right, column0, k0);  \
      acc = EXPRESSION;                                                                           \
    }                                                                                             \
    for (int e = 0; e < kTileValues; e++) {                                                       \
      int row = row0 + tile_row(e), column = column0 + tid() % 16;                                \
      if (row < M && column < N) out[(u64)row * N + column] = acc[e];                             \
    }                                                                                             \
  }
using f16x16 = vec<f16, 16>;
WMMA_GEMM(gemm_f16_16, f16, f16x16, Tile, float, WMMA(f32_16x16x16_f16)(a, b, acc))
WMMA_GEMM(gemm_bf16_16, u16, i16x16, Tile, float, WMMA(f32_16x16x16_bf16)(a, b, acc))
WMMA_GEMM(gemm_i8_16, i8, i32x4, i32xN, int, WMMA(i32_16x16x16_iu8)(true, a, true, b, acc, false))
WMMA_GEMM(gemm_u8_16, u8, i32x4, i32xN, int, WMMA(i32_16x16x16_iu8)(false, a, false, b, acc, true))

// 4-bit operands, two values a byte: K is a multiple of 16.
extern "C" __global__ LB(WAVE) void gemm_i4_16(const u8* A, const u8* B, int* out, int M, int N, int K) {
  int r = tid() % 16, row0 = bidy() * 16, column0 = bidx() * 16;
  i32xN acc = {};
  for (int k0 = 0; k0 < K; k0 += 16) {
    vec<int, 2> a = {}, b = {};
    if (row0 + r < M) __builtin_memcpy(&a, &A[((u64)(row0 + r) * K + k0) / 2], 8);
    if (column0 + r < N) __builtin_memcpy(&b, &B[((u64)(column0 + r) * K + k0) / 2], 8);
    acc = WMMA(i32_16x16x16_iu4)(true, a, false, b, acc, false);
  }
  for (int e = 0; e < kTileValues; e++) {
    int row = row0 + tile_row(e), column = column0 + r;
    if (row < M && column < N) out[(u64)row * N + column] = acc[e];
  }
}

// fp16 accumulation: two tiles share the accumulator registers (lower and upper halves).
extern "C" __global__ LB(WAVE) void gemm_f16_f16(const f16* A, const f16* B, f16* out, int M, int N, int K) {
  Operand<f16> left{A, M, K}, right{B, N, K};
  int row0 = bidy() * 32, column0 = bidx() * 16;
  f16xN acc = {};
  for (int k0 = 0; k0 < K; k0 += 16) {
    f16x16 b = wmma_fragment<f16x16>(right, column0, k0);
    acc = WMMA(f16_16x16x16_f16)(wmma_fragment<f16x16>(left, row0, k0), b, acc, false);
    acc = WMMA(f16_16x16x16_f16)(wmma_fragment<f16x16>(left, row0 + 16, k0), b, acc, true);
  }
  for (int e = 0; e < kTileValues; e++)
    for (int half = 0; half < 2; half++) {
      int row = row0 + 16 * half + tile_row(e), column = column0 + tid() % 16;
      if (row < M && column < N) out[(u64)row * N + column] = acc[2 * e + half];
    }
}
