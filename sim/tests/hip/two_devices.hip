// Two devices of different architecture (the test sets CREST_SIM_DEVICES=gfx942,gfx1100), with and without peer access.
#include <cstring>

#include "check.h"

__global__ void fill(int* out, int value) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = value + static_cast<int>(threadIdx.x) * static_cast<int>(warpSize);
}
__global__ void sum(const int* in, int* out) {
  int s = 0;
  for (int i = 0; i < 128; ++i) s += in[i];
  out[threadIdx.x] = s;
}

int main() {
  int count = 0;
  HIP(hipGetDeviceCount(&count));
  REQUIRE(count == 2);
  const char* names[] = {"gfx942:sramecc+:xnack-", "gfx1100"};
  int* memory[2];
  for (int d = 0; d < 2; ++d) {
    hipDeviceProp_t p;
    HIP(hipGetDeviceProperties(&p, d));
    REQUIRE(std::strcmp(p.gcnArchName, names[d]) == 0);
    REQUIRE(p.warpSize == (d == 0 ? 64 : 32));
    HIP(hipSetDevice(d));
    HIP(hipMalloc(&memory[d], 128 * sizeof(int)));
    fill<<<1, 128>>>(memory[d], d + 1);
    HIP(hipDeviceSynchronize());
  }
  int expected[2] = {}, host[128];
  for (int d = 0; d < 2; ++d) {
    HIP(hipMemcpy(host, memory[d], sizeof host, hipMemcpyDeviceToHost));
    for (int i = 0; i < 128; ++i) {
      REQUIRE(host[i] == d + 1 + i * (d == 0 ? 64 : 32));
      expected[d] += host[i];
    }
  }
  // Device 1 reads device 0 once it may.
  int can = 0;
  HIP(hipDeviceCanAccessPeer(&can, 1, 0));
  REQUIRE(can == 1);
  HIP(hipDeviceEnablePeerAccess(0, 0));
  REQUIRE(hipDeviceEnablePeerAccess(0, 0) == hipErrorPeerAccessAlreadyEnabled);
  int* out;
  HIP(hipMalloc(&out, 64 * sizeof(int)));
  sum<<<1, 64>>>(memory[0], out);
  HIP(hipMemcpy(host, out, 64 * sizeof(int), hipMemcpyDeviceToHost));
  REQUIRE(host[63] == expected[0]);
  HIP(hipMemcpyPeer(memory[1], 1, memory[0], 0, 128 * sizeof(int)));
  sum<<<1, 64>>>(memory[1], out);
  HIP(hipMemcpy(host, out, 64 * sizeof(int), hipMemcpyDeviceToHost));
  REQUIRE(host[0] == expected[0]);
  // Without peer access the same read is a fault, which stays with the stream.
  HIP(hipDeviceDisablePeerAccess(0));
  sum<<<1, 64>>>(memory[0], out);
  REQUIRE(hipDeviceSynchronize() == hipErrorIllegalAddress);
  REQUIRE(hipGetLastError() == hipErrorIllegalAddress);
  HIP(hipSetDevice(0));
  HIP(hipDeviceSynchronize());
  HIP(hipSetDevice(1));
  HIP(hipDeviceReset());
  HIP(hipMalloc(&out, 128 * sizeof(int)));
  fill<<<1, 128>>>(out, 9);
  HIP(hipDeviceSynchronize());
  return 0;
}
