#include "gpu.h"
// C[M,N] f32 = A[M,K] bf16 row-major * B[N,K]^T bf16 ; 128x128 tile/workgroup, 256 threads (4 waves 2x2, each 64x64),
// LDS staged, K step 32
extern "C" __global__ LB(256) void gemm_bf16_32x32x8(const u16* A, const u16* B, float* C, int M, int N, int K) {
  __shared__ __attribute__((aligned(16))) u16 sA[128 * 40], sB[128 * 40];
  int t = tid(), w = t / 64, l = t % 64, wm = w / 2, wn = w % 2, r = l % 32, h = l / 32;
  int m0 = bidy() * 128, n0 = bidx() * 128;
  f32x16 acc[2][2] = {};
  for (int k0 = 0; k0 < K; k0 += 32) {
    for (int i = t; i < 128 * 4; i += 256) {
      int row = i / 4, c = (i % 4) * 8;
      *(u32x4*)&sA[row * 40 + c] = *(const u32x4*)&A[(u64)(m0 + row) * K + k0 + c];
      *(u32x4*)&sB[row * 40 + c] = *(const u32x4*)&B[(u64)(n0 + row) * K + k0 + c];
    }
    sync();
    for (int kk = 0; kk < 32; kk += 8) {
      i16x4 a[2], b[2];
      for (int i = 0; i < 2; i++) {
        a[i] = *(i16x4*)&sA[(wm * 64 + i * 32 + r) * 40 + kk + h * 4];
        b[i] = *(i16x4*)&sB[(wn * 64 + i * 32 + r) * 40 + kk + h * 4];
      }
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
          acc[i][j] = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(a[i], b[j], acc[i][j], 0, 0, 0);
    }
    sync();
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      for (int e = 0; e < 16; e++) {
        int row = m0 + wm * 64 + i * 32 + (e / 4) * 8 + h * 4 + e % 4, col = n0 + wn * 64 + j * 32 + r;
        C[(u64)row * N + col] = acc[i][j][e];
      }
}
extern "C" __global__ LB(64) void gemm_bf16_16x16x16(const u16* A, const u16* B, float* C, int M, int N, int K) {
  int l = tid(), r = l % 16, g = l / 16;
  int m0 = bidy() * 16, n0 = bidx() * 16;
  f32x4 acc = {};
  for (int k = 0; k < K; k += 16) {
    i16x4 a = *(const i16x4*)&A[(u64)(m0 + r) * K + k + g * 4], b = *(const i16x4*)&B[(u64)(n0 + r) * K + k + g * 4];
    acc = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, acc, 0, 0, 0);
  }
  for (int e = 0; e < 4; e++) C[(u64)(m0 + g * 4 + e) * N + n0 + r] = acc[e];
}
extern "C" __global__ LB(64) void gemm_i8_16x16x32(const i8* A, const i8* B, int* C, int M, int N, int K) {
  int l = tid(), r = l % 16, g = l / 16;
  int m0 = bidy() * 16, n0 = bidx() * 16;
  i32x4 acc = {};
  for (int k = 0; k < K; k += 32) {
    long a = *(const long*)&A[(u64)(m0 + r) * K + k + g * 8], b = *(const long*)&B[(u64)(n0 + r) * K + k + g * 8];
    acc = __builtin_amdgcn_mfma_i32_16x16x32_i8(a, b, acc, 0, 0, 0);
  }
  for (int e = 0; e < 4; e++) C[(u64)(m0 + g * 4 + e) * N + n0 + r] = acc[e];
}
extern "C" __global__ LB(64) void gemm_fp8_16x16x32(const u8* A, const u8* B, float* C, int M, int N, int K) {
  int l = tid(), r = l % 16, g = l / 16;
  int m0 = bidy() * 16, n0 = bidx() * 16;
  f32x4 acc = {};
  for (int k = 0; k < K; k += 32) {
    long a = *(const long*)&A[(u64)(m0 + r) * K + k + g * 8], b = *(const long*)&B[(u64)(n0 + r) * K + k + g * 8];
    acc = __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(a, b, acc, 0, 0, 0);
  }
  for (int e = 0; e < 4; e++) C[(u64)(m0 + g * 4 + e) * N + n0 + r] = acc[e];
}
// flash attention fwd, D=128, one wave = 32 queries, K/V tiles of 32 through LDS, S^T trick: S^T = K*Q^T so that P^T
// feeds O^T = V^T P^T
extern "C" __global__ LB(256) void fa_fwd(const u16* Q, const u16* K, const u16* V, u16* O, int S, float scale,
                                          int causal) {
  __shared__ __attribute__((aligned(16))) u16 sK[32 * 136], sVt[128 * 40];
  int t = tid(), w = t / 64, l = t % 64, r = l % 32, h = l / 32;
  u64 head = (u64)bidy() * S * 128;
  Q += head;
  K += head;
  V += head;
  O += head;
  int q0 = bidx() * 128 + w * 32;
  float sc = scale * 1.44269504f;
  i16x4 q[16];
  for (int i = 0; i < 16; i++) q[i] = *(const i16x4*)&Q[(u64)(q0 + r) * 128 + i * 8 + h * 4];
  f32x16 o[4] = {};
  float m = -__builtin_inff(), lsum = 0;
  int kend = causal ? (bidx() + 1) * 128 : S;
  for (int k0 = 0; k0 < kend; k0 += 32) {
    for (int i = t; i < 32 * 16; i += 256) {
      int row = i / 16, c = (i % 16) * 8;
      *(u32x4*)&sK[row * 136 + c] = *(const u32x4*)&K[(u64)(k0 + row) * 128 + c];
      i16x8 v = *(const i16x8*)&V[(u64)(k0 + row) * 128 + c];
      for (int e = 0; e < 8; e++) sVt[(c + e) * 40 + row] = (u16)v[e];
    }
    sync();
    f32x16 s = {};
    for (int i = 0; i < 16; i++) {
      i16x4 kk = *(i16x4*)&sK[r * 136 + i * 8 + h * 4];
      s = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(kk, q[i], s, 0, 0, 0);
    }
    float mx = m;
    for (int e = 0; e < 16; e++) {
      int kr = k0 + (e / 4) * 8 + h * 4 + e % 4;
      s[e] = (causal && kr > q0 + r) ? -__builtin_inff() : s[e] * sc;
      mx = __builtin_fmaxf(mx, s[e]);
    }
    mx = __builtin_fmaxf(mx, bperm(l ^ 32, mx));
    float al = exp2_(m - mx);
    m = mx;
    float ps = 0;
    i16x4 p[4];
    for (int e = 0; e < 16; e++) {
      float x = exp2_(s[e] - mx);
      ps += x;
      p[e / 4][e % 4] = (short)f2bf(x);
    }
    lsum = lsum * al + ps;
    for (int d = 0; d < 4; d++) {
      for (int e = 0; e < 16; e++) o[d][e] *= al;
      for (int i = 0; i < 4; i++) {
        i16x4 vv = *(i16x4*)&sVt[(d * 32 + r) * 40 + i * 8 + h * 4];
        o[d] = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(vv, p[i], o[d], 0, 0, 0);
      }
    }
    sync();
  }
  lsum += bperm(l ^ 32, lsum);
  float inv = 1.f / lsum;
  for (int d = 0; d < 4; d++)
    for (int e = 0; e < 16; e += 4) {
      i16x4 x;
      for (int f = 0; f < 4; f++) x[f] = (short)f2bf(o[d][e + f] * inv);
      *(i16x4*)&O[(u64)(q0 + r) * 128 + d * 32 + (e / 4) * 8 + h * 4] = x;
    }
}
