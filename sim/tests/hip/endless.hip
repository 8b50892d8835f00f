// Ends only if the simulator is told to give up (CREST_SIM_MAX_INSTRUCTIONS).
#include "check.h"

__global__ void forever(volatile int* x) {
  while (true) *x = *x + 1;
}

int main() {
  int* x;
  HIP(hipMalloc(&x, 64 * sizeof(int)));
  forever<<<1, 64>>>(x);
  REQUIRE(hipDeviceSynchronize() == hipErrorLaunchTimeOut);
  return 1;
}
