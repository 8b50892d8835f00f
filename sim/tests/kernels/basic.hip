#include "gpu.h"
extern "C" __global__ LB(256) void vadd(const float* a, const float* b, float* c, int n) {
  int i = bidx() * 256 + tid();
  if (i < n) c[i] = a[i] + b[i];
}
// RMSNorm: one workgroup of 256 per row, n multiple of 8
extern "C" __global__ LB(256) void rmsnorm(const u16* x, const u16* w, u16* y, int n, float eps) {
  __shared__ float red[256 / WAVE];
  const u16* xr = x + (u64)bidx() * n;
  u16* yr = y + (u64)bidx() * n;
  float s = 0;
  for (int i = tid() * 8; i < n; i += 256 * 8) {
    i16x8 v = *(const i16x8*)(xr + i);
    for (int k = 0; k < 8; k++) {
      float f = bf2f((u16)v[k]);
      s += f * f;
    }
  }
  s = wave_sum(s);
  if ((tid() & (WAVE - 1)) == 0) red[tid() / WAVE] = s;
  sync();
  float t = 0;
  for (int k = 0; k < 256 / WAVE; k++) t += red[k];
  float r = rsq_(t / (float)n + eps);
  for (int i = tid() * 8; i < n; i += 256 * 8) {
    i16x8 v = *(const i16x8*)(xr + i), g = *(const i16x8*)(w + i), o;
    for (int k = 0; k < 8; k++) o[k] = (short)f2bf(bf2f((u16)v[k]) * r * bf2f((u16)g[k]));
    *(i16x8*)(yr + i) = o;
  }
}
// softmax rows, fp32
extern "C" __global__ LB(256) void softmax(const float* x, float* y, int n) {
  __shared__ float red[256 / WAVE];
  __shared__ float red2[256 / WAVE];
  const float* xr = x + (u64)bidx() * n;
  float m = -__builtin_inff();
  for (int i = tid(); i < n; i += 256) m = __builtin_fmaxf(m, xr[i]);
  m = wave_max(m);
  if ((tid() & (WAVE - 1)) == 0) red[tid() / WAVE] = m;
  sync();
  for (int k = 0; k < 256 / WAVE; k++) m = __builtin_fmaxf(m, red[k]);
  float s = 0;
  for (int i = tid(); i < n; i += 256) s += exp2_((xr[i] - m) * 1.44269504f);
  s = wave_sum(s);
  if ((tid() & (WAVE - 1)) == 0) red2[tid() / WAVE] = s;
  sync();
  s = 0;
  for (int k = 0; k < 256 / WAVE; k++) s += red2[k];
  for (int i = tid(); i < n; i += 256) y[(u64)bidx() * n + i] = exp2_((xr[i] - m) * 1.44269504f) / s;
}
extern "C" __global__ LB(256) void silu_mul(const u16* g, const u16* u, u16* o, int n) {
  int i = (bidx() * 256 + tid()) * 2;
  if (i >= n) return;
  for (int k = 0; k < 2; k++) {
    float x = bf2f(g[i + k]);
    o[i + k] = f2bf(x * rcp_(1.f + exp2_(-x * 1.44269504f)) * bf2f(u[i + k]));
  }
}
// rope with hw sin/cos (input in revolutions)
extern "C" __global__ LB(64) void rope(u16* q, const int* pos, int heads, int dim, float base_log2) {
  int row = bidx(), h = bidy();
  u16* p = q + ((u64)row * heads + h) * dim;
  int half = dim / 2;
  for (int i = tid(); i < half; i += 64) {
    float inv = exp2_(-base_log2 * (float)(2 * i) / (float)dim);
    float a = (float)pos[row] * inv * 0.15915494309189535f;
    a -= __builtin_floorf(a);
    float c = __builtin_amdgcn_cosf(a), s = __builtin_amdgcn_sinf(a);
    float x0 = bf2f(p[i]), x1 = bf2f(p[i + half]);
    p[i] = f2bf(x0 * c - x1 * s);
    p[i + half] = f2bf(x0 * s + x1 * c);
  }
}
// int8 gemv with dot4 ; one wave per row
extern "C" __global__ LB(WAVE) void gemv_q8(const u32* W, const float* ws, const u32* x, const float* xs, float* y,
                                            int k) {
  int row = bidx();
  float acc = 0;
  for (int b = tid(); b < k / 32; b += WAVE) {
    int s = 0;
    const u32* wp = W + (u64)row * (k / 4) + b * 8;
    const u32* xp = x + b * 8;
    for (int j = 0; j < 8; j++) {
#ifndef __GFX11__
      s = __builtin_amdgcn_sdot4(wp[j], xp[j], s, false);
#else
      s = __builtin_amdgcn_sudot4(true, wp[j], true, xp[j], s, false);
#endif
    }
    acc += (float)s * ws[row * (k / 32) + b] * xs[b];
  }
  acc = wave_sum(acc);
  if (tid() == 0) y[row] = acc;
}
// quantise row to int8 blocks of 32 (llama.cpp q8_1-like)
extern "C" __global__ LB(32) void quant_q8(const float* x, i8* q, float* d) {
  int b = bidx();
  float v = x[b * 32 + tid()];
  float a = __builtin_fabsf(v);
  for (int o = 16; o; o >>= 1) a = __builtin_fmaxf(a, bperm((lane_id() ^ o), a));
  float dd = a / 127.f;
  q[b * 32 + tid()] = a == 0 ? 0 : (i8)__builtin_roundf(v / dd);
  if (tid() == 0) d[b] = dd;
}
// argmax with atomics on u64
extern "C" __global__ LB(256) void argmax(const float* x, u64* out, int n) {
  u64 best = 0;
  for (int i = bidx() * 256 + tid(); i < n; i += 256 * 64) {
    u32 b = __builtin_bit_cast(u32, x[i]);
    b = (b >> 31) ? ~b : (b | 0x80000000u);
    u64 k = ((u64)b << 32) | (u32)~i;
    best = k > best ? k : best;
  }
  __hip_atomic_fetch_max(out, best, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// histogram/moe routing count
extern "C" __global__ LB(256) void moe_count(const int* ids, int* cnt, int n) {
  __shared__ int h[64];
  if (tid() < 64) h[tid()] = 0;
  sync();
  for (int i = bidx() * 256 + tid(); i < n; i += 256 * 8)
    __hip_atomic_fetch_add(&h[ids[i] & 63], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  sync();
  if (tid() < 64 && h[tid()]) __hip_atomic_fetch_add(&cnt[tid()], h[tid()], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
