#include "gpu.h"
// WMMA gfx11: A frag lane l: row l%16, 16 k; B lane: col l%16, 16 k; D: row 2*e + l/16, col l%16
extern "C" __global__ LB(32) void gemm_bf16_wmma(const u16* A, const u16* B, float* C, int M, int N, int K) {
  int l = tid(), r = l % 16, g = l / 16;
  int m0 = bidy() * 16, n0 = bidx() * 16;
  f32x8 acc = {};
  for (int k = 0; k < K; k += 16) {
    i16x16 a = *(const i16x16*)&A[(u64)(m0 + r) * K + k], b = *(const i16x16*)&B[(u64)(n0 + r) * K + k];
    acc = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, acc);
  }
  for (int e = 0; e < 8; e++) C[(u64)(m0 + 2 * e + g) * N + n0 + r] = acc[e];
}
extern "C" __global__ LB(128) void gemm_bf16_wmma_lds(const u16* A, const u16* B, float* C, int M, int N, int K) {
  __shared__ __attribute__((aligned(16))) u16 sA[64 * 40], sB[64 * 40];
  int t = tid(), w = t / 32, l = t % 32, wm = w / 2, wn = w % 2, r = l % 16, g = l / 16;
  int m0 = bidy() * 64, n0 = bidx() * 64;
  f32x8 acc[2][2] = {};
  for (int k0 = 0; k0 < K; k0 += 32) {
    for (int i = t; i < 64 * 4; i += 128) {
      int row = i / 4, c = (i % 4) * 8;
      *(u32x4*)&sA[row * 40 + c] = *(const u32x4*)&A[(u64)(m0 + row) * K + k0 + c];
      *(u32x4*)&sB[row * 40 + c] = *(const u32x4*)&B[(u64)(n0 + row) * K + k0 + c];
    }
    sync();
    for (int kk = 0; kk < 32; kk += 16) {
      i16x16 a[2], b[2];
      for (int i = 0; i < 2; i++) {
        i16x8 lo = *(i16x8*)&sA[(wm * 32 + i * 16 + r) * 40 + kk],
              hi = *(i16x8*)&sA[(wm * 32 + i * 16 + r) * 40 + kk + 8];
        a[i] = __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        lo = *(i16x8*)&sB[(wn * 32 + i * 16 + r) * 40 + kk];
        hi = *(i16x8*)&sB[(wn * 32 + i * 16 + r) * 40 + kk + 8];
        b[i] = __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      }
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) acc[i][j] = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a[i], b[j], acc[i][j]);
    }
    sync();
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int e = 0; e < 8; e++)
        C[(u64)(m0 + wm * 32 + i * 16 + 2 * e + g) * N + n0 + wn * 32 + j * 16 + r] = acc[i][j][e];
}
// iu8 wmma
extern "C" __global__ LB(32) void gemm_iu8_wmma(const i8* A, const i8* B, int* C, int M, int N, int K) {
  int l = tid(), r = l % 16, g = l / 16;
  int m0 = bidy() * 16, n0 = bidx() * 16;
  vec<int, 8> acc = {};
  for (int k = 0; k < K; k += 16) {
    i32x4 a = *(const i32x4*)&A[(u64)(m0 + r) * K + k], b = *(const i32x4*)&B[(u64)(n0 + r) * K + k];
    acc = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, acc, false);
  }
  for (int e = 0; e < 8; e++) C[(u64)(m0 + 2 * e + g) * N + n0 + r] = acc[e];
}
// flash attention fwd, D=128, wave=16 queries, 4 waves/wg, S = Q*K^T in D layout, P through LDS back to A layout
extern "C" __global__ LB(128) void fa_fwd(const u16* Q, const u16* K, const u16* V, u16* O, int S, float scale,
                                          int causal) {
  __shared__ __attribute__((aligned(16))) u16 sK[16 * 136], sVt[128 * 24], sP[4][16 * 24];
  int t = tid(), w = t / 32, l = t % 32, r = l % 16, g = l / 16;
  u64 head = (u64)bidy() * S * 128;
  Q += head;
  K += head;
  V += head;
  O += head;
  int q0 = bidx() * 64 + w * 16;
  float sc = scale * 1.44269504f;
  i16x16 q[8];
  for (int i = 0; i < 8; i++) q[i] = *(const i16x16*)&Q[(u64)(q0 + r) * 128 + i * 16];
  f32x8 o[8] = {};
  float m[8], ls[8];
  for (int e = 0; e < 8; e++) {
    m[e] = -__builtin_inff();
    ls[e] = 0;
  }
  int kend = causal ? (bidx() + 1) * 64 : S;
  for (int k0 = 0; k0 < kend; k0 += 16) {
    for (int i = t; i < 16 * 16; i += 128) {
      int row = i / 16, c = (i % 16) * 8;
      *(u32x4*)&sK[row * 136 + c] = *(const u32x4*)&K[(u64)(k0 + row) * 128 + c];
      i16x8 v = *(const i16x8*)&V[(u64)(k0 + row) * 128 + c];
      for (int e = 0; e < 8; e++) sVt[(c + e) * 24 + row] = (u16)v[e];
    }
    sync();
    f32x8 s = {};
    for (int i = 0; i < 8; i++) {
      i16x8 lo = *(i16x8*)&sK[r * 136 + i * 16], hi = *(i16x8*)&sK[r * 136 + i * 16 + 8];
      i16x16 b = __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      s = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(q[i], b, s);
    }
    float al[8];
    for (int e = 0; e < 8; e++) {
      float x = (causal && (k0 + r > q0 + 2 * e + g)) ? -__builtin_inff() : s[e] * sc;
      float mx = x;
      mx = __builtin_fmaxf(mx, dpp<0xB1>(mx));
      mx = __builtin_fmaxf(mx, dpp<0x4E>(mx));
      mx = __builtin_fmaxf(mx, dpp<0x141>(mx));
      mx = __builtin_fmaxf(mx, dpp<0x140>(mx));
      mx = __builtin_fmaxf(mx, m[e]);
      al[e] = exp2_(m[e] - mx);
      m[e] = mx;
      float p = exp2_(x - mx);
      float ps = p;
      ps += dpp<0xB1>(ps);
      ps += dpp<0x4E>(ps);
      ps += dpp<0x141>(ps);
      ps += dpp<0x140>(ps);
      ls[e] = ls[e] * al[e] + ps;
      sP[w][(2 * e + g) * 24 + r] = f2bf(p);
    }
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "wavefront");
    __builtin_amdgcn_wave_barrier();
    i16x8 plo = *(i16x8*)&sP[w][r * 24], phi = *(i16x8*)&sP[w][r * 24 + 8];
    i16x16 pa = __builtin_shufflevector(plo, phi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int d = 0; d < 8; d++) {
      for (int e = 0; e < 8; e++) o[d][e] *= al[e];
      i16x8 lo = *(i16x8*)&sVt[(d * 16 + r) * 24], hi = *(i16x8*)&sVt[(d * 16 + r) * 24 + 8];
      i16x16 b = __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      o[d] = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(pa, b, o[d]);
    }
    sync();
  }
  for (int e = 0; e < 8; e++) {
    float inv = 1.f / ls[e];
    for (int d = 0; d < 8; d++) O[(u64)(q0 + 2 * e + g) * 128 + d * 16 + r] = f2bf(o[d][e] * inv);
  }
}
