// Wrong on purpose: the second half of a buffer is never written and yet read. What copies, fills and kernels write
// counts as written.
#include <vector>

#include "check.h"

__global__ void twice(const int* in, int* out) { out[threadIdx.x] = in[threadIdx.x] * 2; }
__global__ void pick(const int* in, const int* index, int* out) { out[threadIdx.x] = in[index[threadIdx.x]]; }

int main(int argc, char**) {
  int *a, *b, *c, *index;
  HIP(hipMalloc(&a, 128 * sizeof(int)));
  HIP(hipMalloc(&b, 64 * sizeof(int)));
  HIP(hipMalloc(&c, 64 * sizeof(int)));
  HIP(hipMalloc(&index, 128 * sizeof(int)));
  std::vector<int> host(64, 3);
  HIP(hipMemcpy(a, host.data(), 64 * sizeof(int), hipMemcpyHostToDevice));
  HIP(hipMemsetD32(index, 1, 64));
  twice<<<1, 64>>>(a, b);
  pick<<<1, 64>>>(b, index, c);
  HIP(hipDeviceSynchronize());
  pick<<<1, 64>>>(a, index + (argc > 1 ? 64 : 0), c);  // with an argument: unwritten values as addresses
  hipError_t status = hipDeviceSynchronize();
  REQUIRE(status == (argc > 1 ? hipErrorLaunchFailure : hipSuccess));
  return 0;
}
