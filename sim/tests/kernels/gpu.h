#pragma once
// What the test kernels need of HIP; no ROCm headers.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __host__ __attribute__((host))
#define DEV static inline __attribute__((device)) __attribute__((always_inline))
#define LB(n) __attribute__((amdgpu_flat_work_group_size(n, n)))
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned long long u64;
typedef int i32;
typedef _Float16 f16;
typedef __bf16 bf16;
template <class T, int N>
using vec = T __attribute__((ext_vector_type(N)));
using f32x2 = vec<float, 2>;
using f32x4 = vec<float, 4>;
using f32x8 = vec<float, 8>;
using f32x16 = vec<float, 16>;
using i16x4 = vec<short, 4>;
using i16x8 = vec<short, 8>;
using i16x16 = vec<short, 16>;
using u32x4 = vec<u32, 4>;
using u32x2 = vec<u32, 2>;
using i32x4 = vec<int, 4>;
using bf16x2 = vec<bf16, 2>;
using bf16x4 = vec<bf16, 4>;
using bf16x8 = vec<bf16, 8>;
using bf16x16 = vec<bf16, 16>;
using f16x4 = vec<f16, 4>;
using f16x8 = vec<f16, 8>;
DEV u32 tid() { return __builtin_amdgcn_workitem_id_x(); }
DEV u32 bidx() { return __builtin_amdgcn_workgroup_id_x(); }
DEV u32 bidy() { return __builtin_amdgcn_workgroup_id_y(); }
DEV u32 bidz() { return __builtin_amdgcn_workgroup_id_z(); }
DEV void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// The command line says -DWAVE=64 for wave64 code on RDNA3.
#ifndef WAVE
#ifdef __GFX11__
#define WAVE 32
#else
#define WAVE 64
#endif
#endif
DEV float bf2f(u16 x) { return __builtin_bit_cast(float, (u32)x << 16); }
DEV u16 f2bf(float f) { return __builtin_bit_cast(u16, (bf16)f); }
DEV float exp2_(float x) { return __builtin_amdgcn_exp2f(x); }
DEV float log2_(float x) { return __builtin_amdgcn_logf(x); }
DEV float rsq_(float x) { return __builtin_amdgcn_rsqf(x); }
DEV float rcp_(float x) { return __builtin_amdgcn_rcpf(x); }
template <int CTRL>
DEV float dpp(float x) {
  return __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, x), CTRL, 0xf, 0xf, true));
}
DEV float bperm(int lane, float x) {
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(lane * 4, __builtin_bit_cast(int, x)));
}
DEV u32 lane_id() {
#if WAVE == 64
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
#else
  return __builtin_amdgcn_mbcnt_lo(~0u, 0);
#endif
}
// butterfly within wave
DEV float wave_sum(float x) {
  x += dpp<0xB1>(x);   // quad_perm 1,0,3,2
  x += dpp<0x4E>(x);   // quad_perm 2,3,0,1
  x += dpp<0x141>(x);  // row_half_mirror
  x += dpp<0x140>(x);  // row_mirror
#if WAVE == 64
  x += __builtin_bit_cast(float, __builtin_amdgcn_ds_swizzle(__builtin_bit_cast(int, x), 0x401f));  // swap 16
  x += bperm(lane_id() ^ 32, x);
#else
  x += __builtin_bit_cast(
      float, __builtin_amdgcn_permlanex16(0, __builtin_bit_cast(int, x), 0x76543210, 0xfedcba98, false, false));
#endif
  return x;
}
DEV float wave_max(float x) {
  x = __builtin_fmaxf(x, dpp<0xB1>(x));
  x = __builtin_fmaxf(x, dpp<0x4E>(x));
  x = __builtin_fmaxf(x, dpp<0x141>(x));
  x = __builtin_fmaxf(x, dpp<0x140>(x));
  x = __builtin_fmaxf(x, bperm(lane_id() ^ 16, x));
#if WAVE == 64
  x = __builtin_fmaxf(x, bperm(lane_id() ^ 32, x));
#endif
  return x;
}
