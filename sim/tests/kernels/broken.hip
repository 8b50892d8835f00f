#include "gpu.h"
// Kernels with one fault each, as a compiler leaves them.

extern "C" __global__ LB(256) void sum_without_barrier(const float* in, float* out) {
  __shared__ float part[256];
  part[tid()] = in[bidx() * 256 + tid()];
  if (tid() < 128) part[tid()] += part[tid() + 128];  // written by other waves
  if (tid() == 0) out[bidx()] = part[0];
}

extern "C" __global__ LB(128) void reads_unwritten_lds(const float* in, float* out) {
  __shared__ float part[129];
  part[tid()] = in[tid()];
  sync();
  out[tid()] = part[tid() + 1];  // element 128 was never written
}

// All workgroups write one element.
extern "C" __global__ LB(64) void same_element(u32* out) {
  if (tid() == 0) out[0] = bidx();
}

// Each workgroup reads what its neighbour writes.
extern "C" __global__ LB(64) void shift_in_place(u32* data, u32 n) {
  u32 i = bidx() * 64 + tid();
  if (i + 1 < n) data[i] = data[i + 1];
}

// A counter that is not atomic.
extern "C" __global__ LB(64) void plain_counter(u32* counter) {
  if (tid() == 0) counter[0] = counter[0] + 1;
}

// The flag is set before the data, so nothing orders the data.
extern "C" __global__ LB(64) void flag_before_data(u32* flag, u32* data) {
  if (tid() != 0) return;
  if (bidx() == 0) {
    __hip_atomic_store(flag, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) != 2) __builtin_amdgcn_s_sleep(1);
    data[0] = 7;
  } else {
    while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT)) __builtin_amdgcn_s_sleep(1);
    __hip_atomic_store(flag, 2u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    data[1] = data[0];
  }
}

extern "C" __global__ LB(64) void one_too_far(const u32* in, u32* out, u32 n) {
  u32 i = bidx() * 64 + tid();
  if (i <= n) out[i] = in[i];  // < n
}

extern "C" __global__ LB(64) void copy(const u32* in, u32* out) { out[tid()] = in[tid()]; }

// The second half of the block leaves before the barrier.
extern "C" __global__ LB(256) void some_leave(const float* in, float* out, u32 n) {
  __shared__ float part[256];
  part[tid()] = 0;
  if (tid() >= n) return;
  part[tid()] = in[tid()];
  sync();
  out[tid()] = part[n - 1 - tid()];
}
