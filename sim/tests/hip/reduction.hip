// Sum through LDS, dynamic LDS, wave shuffles and atomics.
#include <vector>

#include "check.h"

__global__ void __launch_bounds__(256) sum_lds(const int* in, int* out, int n) {
  __shared__ int part[256];
  int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  part[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (unsigned step = 128; step; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
}

__global__ void sum_shuffle(const int* in, int* out, int n) {
  extern __shared__ int waves[];
  int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), value = i < n ? in[i] : 0;
  for (int step = warpSize / 2; step; step /= 2) value += __shfl_xor(value, step);
  unsigned wave = threadIdx.x / warpSize;
  if (__lane_id() == 0) waves[wave] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    int total = 0;
    for (unsigned w = 0; w < blockDim.x / warpSize; ++w) total += waves[w];
    atomicAdd(out, total);
  }
}

__global__ void softmax_row(const float* in, float* out, int n) {
  __shared__ float part[256];
  float m = -1e30f;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 256) m = fmaxf(m, in[i]);
  part[threadIdx.x] = m;
  __syncthreads();
  for (int i = 0; i < 256; ++i) m = fmaxf(m, part[i]);
  __syncthreads();
  float s = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 256) s += expf(in[i] - m);
  part[threadIdx.x] = s;
  __syncthreads();
  s = 0;
  for (int i = 0; i < 256; ++i) s += part[i];
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 256) out[i] = expf(in[i] - m) / s;
}

int main() {
  for (int n : {1, 255, 257, 10007}) {
    std::vector<int> in(n);
    int expected = 0;
    for (int i = 0; i < n; ++i) expected += in[i] = (i * 7919) % 1013 - 500;
    int *din, *out;
    HIP(hipMalloc(&din, n * sizeof(int)));
    HIP(hipMallocManaged(&out, 2 * sizeof(int)));
    out[0] = out[1] = 0;
    HIP(hipMemcpy(din, in.data(), n * sizeof(int), hipMemcpyHostToDevice));
    sum_lds<<<dim3((n + 255) / 256), dim3(256)>>>(din, out, n);
    sum_shuffle<<<(n + 255) / 256, 256, 8 * sizeof(int)>>>(din, out + 1, n);
    HIP(hipDeviceSynchronize());
    REQUIRE(out[0] == expected);
    REQUIRE(out[1] == expected);
    HIP(hipFree(din));
    HIP(hipFree(out));
  }
  float *x, *y;
  HIP(hipHostMalloc(&x, 300 * sizeof(float)));
  HIP(hipHostMalloc(&y, 300 * sizeof(float)));
  for (int i = 0; i < 300; ++i) x[i] = static_cast<float>(i % 17) * 0.5f;
  hipLaunchKernelGGL(softmax_row, dim3(1), dim3(256), 0, nullptr, x, y, 300);
  HIP(hipDeviceSynchronize());
  double sum = 0;
  for (int i = 0; i < 300; ++i) sum += y[i];
  REQUIRE(sum > 0.99999 && sum < 1.00001);
  REQUIRE(y[16] > y[15]);
  HIP(hipHostFree(x));
  HIP(hipHostFree(y));
  return 0;
}
