// Wrong on purpose: a barrier is missing. Without checks the program ends well; with them the stream fails.
#include <cstring>

#include "check.h"

__global__ void __launch_bounds__(256) sum(const int* in, int* out) {
  __shared__ int part[256];
  part[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) {  // other waves may not have stored yet
    int s = 0;
    for (int i = 0; i < 256; ++i) s += part[i];
    *out = s;
  }
}

int main(int argc, char** argv) {
  int *in, *out;
  HIP(hipMalloc(&in, 256 * sizeof(int)));
  HIP(hipMalloc(&out, sizeof(int)));
  HIP(hipMemset(in, 0, 256 * sizeof(int)));
  sum<<<1, 256>>>(in, out);
  bool expected = argc > 1 && std::strcmp(argv[1], "found") == 0;
  hipError_t status = hipDeviceSynchronize();
  REQUIRE(status == (expected ? hipErrorLaunchFailure : hipSuccess));
  if (expected) REQUIRE(hipStreamQuery(nullptr) == hipErrorLaunchFailure);
  return 0;
}
