#include "gpu.h"
// Kernels for the launch itself: order of workgroups, waiting for each other, hidden arguments, calls, scratch, faults.

extern "C" __global__ LB(64) void sum_float(const float* x, float* out, int n) {
  int i = bidx() * 64 + tid();
  if (i < n) __hip_atomic_fetch_add(out, x[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

extern "C" __global__ LB(64) void tickets(u32* counter, u32* order) {
  if (tid() == 0) order[__hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)] = bidx();
}

// Every workgroup waits until all have arrived, several times.
extern "C" __global__ LB(64) void grid_barrier(u32* counter, u32* values, u32 groups, u32 rounds) {
  for (u32 r = 0; r < rounds; ++r) {
    if (tid() == 0) {
      values[r * groups + bidx()] = r == 0 ? bidx() : values[(r - 1) * groups + (bidx() + 1) % groups] + 1;
      __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
      __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
      while (__hip_atomic_load(counter, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) < (r + 1) * groups) __builtin_amdgcn_s_sleep(1);
      __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    }
    sync();
  }
}

// Workgroup k waits for workgroup k + 1.
extern "C" __global__ LB(64) void backward_chain(u32* flags, u32 groups) {
  if (tid() != 0) return;
  u32 value = 1;
  if (bidx() + 1 < groups) {
    while (!(value = __hip_atomic_load(&flags[bidx() + 1], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT))) {}
    value++;
  }
  __hip_atomic_store(&flags[bidx()], value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}

extern "C" __global__ void hidden_arguments(u32* out) {
  const u32* implicit = (const u32*)__builtin_amdgcn_implicitarg_ptr();
  if (tid() == 0 && bidx() == 0 && bidy() == 0 && bidz() == 0) {
    out[0] = implicit[0];
    out[1] = implicit[1];
    out[2] = implicit[2];
    out[3] = implicit[3] & 0xffff;
    out[4] = implicit[3] >> 16;
  }
}

__attribute__((device, noinline)) u32 collatz(u32 n) {
  u32 steps = 0;
  while (n != 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  return steps;
}
extern "C" __global__ LB(64) void calls(const u32* in, u32* out) { out[tid()] = collatz(in[tid()]); }

extern "C" __global__ LB(64) void private_array(const u32* index, u32* out) {
  u32 a[40];
  for (u32 k = 0; k < 40; ++k) a[k] = k * k + tid();
  u32 s = 0;
  for (u32 k = 0; k < 8; ++k) {
    a[index[tid() * 8 + k]] += 7;
    s = s * 3 + a[index[tid() * 8 + (k ^ 1)]];
  }
  out[tid()] = s;
}

extern __shared__ u32 dynamic_lds[];
extern "C" __global__ LB(128) void reverse_through_lds(const u32* in, u32* out) {
  dynamic_lds[tid()] = in[tid()];
  sync();
  out[tid()] = dynamic_lds[127 - tid()];
}

extern "C" __global__ LB(64) void copy_offset(const u32* in, u32* out, int offset) { out[tid()] = in[tid() + offset]; }
extern "C" __global__ LB(64) void lds_offset(u32* out, int offset) {
  __shared__ u32 a[64];
  a[tid() + offset] = tid();
  out[tid()] = a[63 - tid()];
}

extern "C" __global__ LB(64) void endless(volatile u32* out) {
  while (true) *out = *out + 1;
}

// IEEE division, square root and the rounding of conversions, for all operands.
extern "C" __global__ LB(64) void divide(const float* a, const float* b, float* q, float* r) {
  int i = bidx() * 64 + tid();
  q[i] = a[i] / b[i];
  r[i] = __builtin_sqrtf(a[i]);
}
extern "C" __global__ LB(64) void divide_double(const double* a, const double* b, double* q, double* r) {
  int i = bidx() * 64 + tid();
  q[i] = a[i] / b[i];
  r[i] = __builtin_sqrt(a[i]);
}

__device__ u32 table[4] = {11, 22, 33, 44};
__device__ u32* table_pointer = &table[1];
extern "C" __global__ LB(64) void globals(u32* out) {
  if (tid() < 4) out[tid()] = table[tid()];
  if (tid() == 4) out[4] = *table_pointer;
}
