// Attention with fp16 inputs, head_dim 64, grouped queries, causal or not, any length: one wave computes 16 queries.
// The only parts that differ between machines are the 16 × 16 product and where its rows lie.
#pragma once
#include "gpu.h"

#if defined(__GFX11__) && WAVE == 32
typedef f32x8 Tile;
DEV int tile_row(int e) { return 2 * e + tid() / 16; }
#elif defined(__GFX11__)
typedef f32x4 Tile;
DEV int tile_row(int e) { return 4 * e + tid() / 16; }
#else
typedef f32x4 Tile;
DEV int tile_row(int e) { return 4 * (tid() / 16) + e; }
#endif
constexpr int kTileValues = sizeof(Tile) / 4;

// acc[i][j] += Σ a[i][k] · b[j][k] for k < 16; rows of a and b are `pitch` values apart in LDS.
DEV Tile multiply_tile(const f16* a, int pitch_a, const f16* b, int pitch_b, Tile acc) {
  int r = tid() % 16;
#ifdef __GFX11__
  vec<f16, 16> x, y;
  __builtin_memcpy(&x, a + r * pitch_a, 32);
  __builtin_memcpy(&y, b + r * pitch_b, 32);
#if WAVE == 32
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, acc);
#else
  return __builtin_amdgcn_wmma_f32_16x16x16_f16_w64(x, y, acc);
#endif
#else
  f16x4 x, y;
  __builtin_memcpy(&x, a + r * pitch_a + tid() / 16 * 4, 8);
  __builtin_memcpy(&y, b + r * pitch_b + tid() / 16 * 4, 8);
  return __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, acc, 0, 0, 0);
#endif
}

// Q [heads][queries][64], K and V [heads / group][keys][64], O like Q. Causal: the last query sees all keys.
extern "C" __global__ LB(WAVE) void attention_f16(const f16* Q, const f16* K, const f16* V, f16* O, int queries,
                                                  int keys, int group, float scale, int causal) {
  constexpr int D = 64, P = D + 8, PS = 16 + 8;
  __shared__ __attribute__((aligned(16))) f16 q[16 * P], k[16 * P], vt[D * PS], p[16 * PS];
  __shared__ float s[16 * 17], top[16], sum[16], rescale[16];
  int t = tid(), q0 = bidx() * 16, head = bidy();
  Q += (u64)head * queries * D;
  O += (u64)head * queries * D;
  K += (u64)(head / group) * keys * D;
  V += (u64)(head / group) * keys * D;
  for (int i = t; i < 16 * D; i += WAVE)
    q[i / D * P + i % D] = q0 + i / D < queries ? Q[(u64)(q0 + i / D) * D + i % D] : (f16)0;
  if (t < 16) top[t] = -__builtin_inff(), sum[t] = 0;
  Tile out[D / 16] = {};
  int seen = causal ? keys - queries + q0 + 16 : keys;
  if (seen > keys) seen = keys;
  for (int k0 = 0; k0 < seen; k0 += 16) {
    sync();
    for (int i = t; i < 16 * D; i += WAVE) {
      bool inside = k0 + i / D < keys;
      k[i / D * P + i % D] = inside ? K[(u64)(k0 + i / D) * D + i % D] : (f16)0;
      vt[i % D * PS + i / D] = inside ? V[(u64)(k0 + i / D) * D + i % D] : (f16)0;
    }
    sync();
    Tile scores = {};
    for (int d = 0; d < D; d += 16) scores = multiply_tile(q + d, P, k + d, P, scores);
    for (int e = 0; e < kTileValues; e++) {
      int row = tile_row(e), key = k0 + t % 16;
      bool visible = key < keys && (!causal || key <= keys - queries + q0 + row);
      s[row * 17 + t % 16] = visible ? scores[e] * scale * 1.44269504f : -__builtin_inff();
    }
    sync();
    if (t < 16) {
      float m = top[t];
      for (int j = 0; j < 16; j++) m = __builtin_fmaxf(m, s[t * 17 + j]);
      float factor = m == -__builtin_inff() ? 1.0f : exp2_(top[t] - m), l = sum[t] * factor;
      for (int j = 0; j < 16; j++) {
        f16 x = (f16)(m == -__builtin_inff() ? 0.0f : exp2_(s[t * 17 + j] - m));
        p[t * PS + j] = x;
        l += (float)x;
      }
      top[t] = m;
      sum[t] = l;
      rescale[t] = factor;
    }
    sync();
    for (int d = 0; d < D / 16; d++) {
      for (int e = 0; e < kTileValues; e++) out[d][e] *= rescale[tile_row(e)];
      out[d] = multiply_tile(p, PS, vt + d * 16 * PS, PS, out[d]);
    }
  }
  sync();
  for (int d = 0; d < D / 16; d++)
    for (int e = 0; e < kTileValues; e++) {
      int row = tile_row(e);
      if (q0 + row < queries)
        O[(u64)(q0 + row) * D + d * 16 + t % 16] = (f16)(sum[row] > 0 ? out[d][e] / sum[row] : 0.0f);
    }
}

// y[rows] = W[rows][columns] · x with pairwise dot products; one wave per row.
extern "C" __global__ LB(WAVE) void gemv_f16(const f16* W, const f16* x, float* y, int columns) {
  float sum = 0;
  using f16x2 = vec<f16, 2>;
  for (int i = tid() * 2; i < columns; i += 2 * WAVE) {
    f16x2 a = {W[(u64)bidx() * columns + i], i + 1 < columns ? W[(u64)bidx() * columns + i + 1] : (f16)0};
    f16x2 b = {x[i], i + 1 < columns ? x[i + 1] : (f16)0};
    sum = __builtin_amdgcn_fdot2(a, b, sum, false);
  }
  sum = wave_sum(sum);
  if (tid() == 0) y[bidx()] = sum;
}
extern "C" __global__ LB(WAVE) void gemv_i8(const int* W, const int* x, int* y, int words) {
  int sum = 0;
  for (int i = tid(); i < words; i += WAVE) {
#ifdef __GFX11__
    sum = __builtin_amdgcn_sudot4(true, W[(u64)bidx() * words + i], true, x[i], sum, false);
#else
    sum = __builtin_amdgcn_sdot4(W[(u64)bidx() * words + i], x[i], sum, false);
#endif
  }
  for (int step = 1; step < WAVE; step *= 2) sum += __builtin_amdgcn_ds_bpermute((tid() ^ step) * 4, sum);
  if (tid() == 0) y[bidx()] = sum;
}
