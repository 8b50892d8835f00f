// Tiles of 16 × 16 and 32 × 32 products for any M, N and K: fragments are loaded value by value with bounds checks.
#pragma once
#include "gpu.h"

// One row-major operand; rows beyond `rows` and values beyond `k` read as zero.
template <class T>
struct Operand {
  const T* data;
  int rows, k;
  __device__ __attribute__((always_inline)) T at(int row, int column) const {
    return row < rows && column < k ? data[(u64)row * k + column] : T();
  }
};

// Fragment of an MFMA operand: lane l holds E consecutive values of k of row l % TILE.
template <int TILE, int E, class Frag, class T>
DEV Frag mfma_fragment(const Operand<T>& m, int row0, int k0) {
  Frag f;
  T values[E];
  int l = tid() % 64;
  for (int e = 0; e < E; e++) values[e] = m.at(row0 + l % TILE, k0 + l / TILE * E + e);
  __builtin_memcpy(&f, values, sizeof(f));
  return f;
}

// Stores a 16 × 16 (four values) or 32 × 32 (sixteen) accumulator.
template <int TILE, class Acc, class C>
DEV void mfma_store(C* out, Acc acc, int row0, int column0, int m, int n) {
  int l = tid() % 64, groups = 64 / TILE;
  for (int e = 0; e < TILE * TILE / 64; e++) {
    int row = row0 + e / 4 * 4 * groups + l / TILE * 4 + e % 4, column = column0 + l % TILE;
    if (row < m && column < n) out[(u64)row * n + column] = acc[e];
  }
}

#define MFMA_GEMM(name, TILE, K_STEP, E, T, FRAG, ACC, C, EXPRESSION)                                              \
  extern "C" __global__ LB(64) void name(const T* A, const T* B, C* out, int M, int N, int K) {                    \
    Operand<T> left{A, M, K}, right{B, N, K};                                                                      \
    int row0 = bidy() * TILE, column0 = bidx() * TILE;                                                             \
    ACC acc = {};                                                                                                  \
    for (int k0 = 0; k0 < K; k0 += K_STEP) {                                                                       \
      FRAG a = mfma_fragment<TILE, E, FRAG>(left, row0, k0), b = mfma_fragment<TILE, E, FRAG>(right, column0, k0); \
      acc = EXPRESSION;                                                                                            \
    }                                                                                                              \
    mfma_store<TILE>(out, acc, row0, column0, M, N);                                                               \
  }
