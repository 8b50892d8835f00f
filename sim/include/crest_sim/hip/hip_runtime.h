// What a HIP program needs to be compiled without ROCm:
//
//   clang++-22 -x hip --offload-arch=gfx942 -nogpuinc -nogpulib -O2 -std=c++20 -I <prefix>/include/crest_sim
//   program.hip
//       -L <prefix>/lib/crest_sim -lamdhip64 -o program
//   LD_LIBRARY_PATH=<prefix>/lib/crest_sim ./program
//
// A small part of HIP: kernels and launches, built-in coordinates, barriers, atomics, shuffles and the mathematics that
// compile without device libraries. Usable as <hip/hip_runtime.h>.
#pragma once

#ifdef __HIP__
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) CREST_SIM_BOUNDS(__VA_ARGS__, 1, 1)
#define CREST_SIM_BOUNDS(threads, waves, ...) \
  __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#endif

#include "hip_runtime_api.h"

#ifdef __HIP__

#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...) \
  kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
#define HIP_SYMBOL(x) x
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];

#define CREST_SIM_DEVICE static inline __attribute__((device)) __attribute__((always_inline))

// threadIdx and its relatives are objects without state whose members are read where they are used.
#define CREST_SIM_COORDINATE(member, expression)            \
  __declspec(property(get = get_##member)) unsigned member; \
  __attribute__((device)) __attribute__((always_inline)) unsigned get_##member() const { return expression; }
#define CREST_SIM_COORDINATES(type, ex, ey, ez)                             \
  struct type {                                                             \
    CREST_SIM_COORDINATE(x, ex)                                             \
    CREST_SIM_COORDINATE(y, ey)                                             \
    CREST_SIM_COORDINATE(z, ez)                                             \
    __attribute__((device)) operator dim3() const { return dim3(x, y, z); } \
  };

struct crest_sim_builtin {
  CREST_SIM_COORDINATES(Thread, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
                        __builtin_amdgcn_workitem_id_z())
  CREST_SIM_COORDINATES(Block, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
                        __builtin_amdgcn_workgroup_id_z())
  CREST_SIM_COORDINATES(Size, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
                        __builtin_amdgcn_workgroup_size_z())
  CREST_SIM_COORDINATES(Grid, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
                        __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
                        __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())
};
static constexpr __attribute__((device)) crest_sim_builtin::Thread threadIdx{};
static constexpr __attribute__((device)) crest_sim_builtin::Block blockIdx{};
static constexpr __attribute__((device)) crest_sim_builtin::Size blockDim{};
static constexpr __attribute__((device)) crest_sim_builtin::Grid gridDim{};
struct crest_sim_warp_size {
  __attribute__((device)) operator int() const { return static_cast<int>(__builtin_amdgcn_wavefrontsize()); }
};
static constexpr __attribute__((device)) crest_sim_warp_size warpSize{};

// Barriers and fences
CREST_SIM_DEVICE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
CREST_SIM_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
CREST_SIM_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
CREST_SIM_DEVICE void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

// Atomics, of device scope and relaxed order as HIP's are
#define CREST_SIM_ATOMIC(name, operation)                                      \
  template <class T>                                                           \
  CREST_SIM_DEVICE T name(T* address, T value) {                               \
    return operation(address, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE); \
  }
CREST_SIM_ATOMIC(atomicAdd, __scoped_atomic_fetch_add)
CREST_SIM_ATOMIC(atomicSub, __scoped_atomic_fetch_sub)
CREST_SIM_ATOMIC(atomicMin, __scoped_atomic_fetch_min)
CREST_SIM_ATOMIC(atomicMax, __scoped_atomic_fetch_max)
CREST_SIM_ATOMIC(atomicAnd, __scoped_atomic_fetch_and)
CREST_SIM_ATOMIC(atomicOr, __scoped_atomic_fetch_or)
CREST_SIM_ATOMIC(atomicXor, __scoped_atomic_fetch_xor)
CREST_SIM_ATOMIC(atomicExch, __scoped_atomic_exchange_n)
template <class T>
CREST_SIM_DEVICE T atomicCAS(T* address, T expected, T desired) {
  __scoped_atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                     __MEMORY_SCOPE_DEVICE);
  return expected;
}

// Lanes
CREST_SIM_DEVICE unsigned __lane_id() {
  unsigned low = __builtin_amdgcn_mbcnt_lo(~0u, 0);
  return __builtin_amdgcn_wavefrontsize() == 64 ? __builtin_amdgcn_mbcnt_hi(~0u, low) : low;
}
template <class T>
CREST_SIM_DEVICE T crest_sim_from_lane(T value, unsigned lane) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  unsigned words[sizeof(T) / 4];
  __builtin_memcpy(words, &value, sizeof(T));
  for (unsigned& w : words)
    w = static_cast<unsigned>(__builtin_amdgcn_ds_bpermute(static_cast<int>(lane * 4), static_cast<int>(w)));
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}
template <class T>
CREST_SIM_DEVICE T __shfl(T value, int lane, int width = warpSize) {
  unsigned self = __lane_id(), base = self & ~static_cast<unsigned>(width - 1);
  return crest_sim_from_lane(value, base | (static_cast<unsigned>(lane) & static_cast<unsigned>(width - 1)));
}
template <class T>
CREST_SIM_DEVICE T __shfl_xor(T value, int mask, int width = warpSize) {
  unsigned self = __lane_id(), other = self ^ static_cast<unsigned>(mask);
  unsigned end = (self | static_cast<unsigned>(width - 1)) + 1;
  return crest_sim_from_lane(value, other >= end ? self : other);
}
template <class T>
CREST_SIM_DEVICE T __shfl_down(T value, unsigned delta, int width = warpSize) {
  unsigned self = __lane_id(), in_group = self & static_cast<unsigned>(width - 1);
  return crest_sim_from_lane(value, in_group + delta >= static_cast<unsigned>(width) ? self : self + delta);
}
template <class T>
CREST_SIM_DEVICE T __shfl_up(T value, unsigned delta, int width = warpSize) {
  unsigned self = __lane_id(), in_group = self & static_cast<unsigned>(width - 1);
  return crest_sim_from_lane(value, in_group < delta ? self : self - delta);
}
CREST_SIM_DEVICE unsigned long long __ballot(int predicate) {
  return __builtin_amdgcn_wavefrontsize() == 64 ? __builtin_amdgcn_ballot_w64(predicate != 0)
                                                : __builtin_amdgcn_ballot_w32(predicate != 0);
}
CREST_SIM_DEVICE int __any(int predicate) { return __ballot(predicate) != 0; }
CREST_SIM_DEVICE int __all(int predicate) { return __ballot(predicate) == __ballot(1); }

// Bits
CREST_SIM_DEVICE int __popc(unsigned x) { return __builtin_popcount(x); }
CREST_SIM_DEVICE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
CREST_SIM_DEVICE int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
CREST_SIM_DEVICE int __ffs(int x) { return __builtin_ffs(x); }
CREST_SIM_DEVICE float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
CREST_SIM_DEVICE int __float_as_int(float x) { return __builtin_bit_cast(int, x); }

// Mathematics. Device code that calls one of these names gets this one, host code the C library's.
#define CREST_SIM_MATH_1(name, builtin) \
  static inline __attribute__((device)) float name(float x) { return builtin(x); }
#define CREST_SIM_MATH_2(name, builtin) \
  static inline __attribute__((device)) float name(float x, float y) { return builtin(x, y); }
CREST_SIM_MATH_1(fabsf, __builtin_fabsf)
CREST_SIM_MATH_1(sqrtf, __builtin_sqrtf)
CREST_SIM_MATH_1(expf, __builtin_expf)
CREST_SIM_MATH_1(exp2f, __builtin_exp2f)
CREST_SIM_MATH_1(logf, __builtin_logf)
CREST_SIM_MATH_1(log2f, __builtin_log2f)
CREST_SIM_MATH_1(floorf, __builtin_floorf)
CREST_SIM_MATH_1(ceilf, __builtin_ceilf)
CREST_SIM_MATH_1(truncf, __builtin_truncf)
CREST_SIM_MATH_1(rintf, __builtin_rintf)
CREST_SIM_MATH_1(roundf, __builtin_roundf)
CREST_SIM_MATH_1(rsqrtf, __builtin_amdgcn_rsqf)
CREST_SIM_MATH_2(fmaxf, __builtin_fmaxf)
CREST_SIM_MATH_2(fminf, __builtin_fminf)
static inline __attribute__((device)) float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
template <class T>
CREST_SIM_DEVICE T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
CREST_SIM_DEVICE T max(T a, T b) {
  return a < b ? b : a;
}

#endif
