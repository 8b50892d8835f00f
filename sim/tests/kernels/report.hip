// Kernels for the fidelity and coverage report. Built with -g.
#include "gpu.h"

// The result of an approximate instruction is only data.
extern "C" __global__ LB(64) void only_data(const float* x, float* y) { y[tid()] = exp2_(x[tid()]) + 1.0f; }

// It becomes part of an address.
extern "C" __global__ LB(64) void to_address(const float* x, float* y) {
  int i = (int)exp2_(x[tid()]) & 63;
  y[tid()] = x[i];
}

// It decides a branch, after a way through LDS.
extern "C" __global__ LB(64) void to_branch(const float* x, float* y) {
  __shared__ float a[64];
  a[63 - tid()] = log2_(x[tid()]);
  sync();
  float v = a[tid()];
  float sum = 0;
  while (v > 0.5f) {
    sum += v;
    v *= 0.5f;
  }
  y[tid()] = sum;
}

// Through device memory from the first kernel to the second.
extern "C" __global__ LB(64) void first_half(const float* x, float* y) { y[tid()] = rsq_(x[tid()]); }
extern "C" __global__ LB(64) void second_half(const float* y, float* z) { z[(int)(y[tid()] * 40.0f) & 63] = 1.0f; }

extern "C" __global__ LB(64) void two_ways(const int* x, int* y, int limit) {
  int v = x[tid()];
  if (limit > 100) {
    v = v * 3 + 1;
    v = v ^ (v >> 3);
  } else {
    v = v - 7;
  }
  y[tid()] = v;
}
