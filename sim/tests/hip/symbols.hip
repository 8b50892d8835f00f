// __constant__, __device__ and __managed__ variables.
#include "check.h"

__constant__ int table[4] = {10, 20, 30, 40};
__device__ float total = 1.0f;
__device__ int counts[8];
__managed__ int shared_value = 5;

__global__ void use(int n) {
  int i = static_cast<int>(threadIdx.x);
  if (i < n) atomicAdd(&counts[i % 8], table[i % 4]);
  if (i == 0) {
    total = total + 2.5f;
    shared_value = shared_value * 7;
  }
}

int main() {
  use<<<1, 64>>>(13);
  HIP(hipDeviceSynchronize());
  REQUIRE(shared_value == 35);
  int got[8];
  HIP(hipMemcpyFromSymbol(got, counts, sizeof got));
  for (int k = 0; k < 8; ++k) REQUIRE(got[k] == (k % 4 + 1) * 10 * (k < 5 ? 2 : 1));
  float t = 0;
  HIP(hipMemcpyFromSymbol(&t, total, sizeof t));
  REQUIRE(t == 3.5f);
  int fresh[2] = {7, 8};
  HIP(hipMemcpyToSymbol(table, fresh, sizeof fresh, 2 * sizeof(int)));
  void* at = nullptr;
  size_t bytes = 0;
  HIP(hipGetSymbolAddress(&at, counts));
  HIP(hipGetSymbolSize(&bytes, counts));
  REQUIRE(bytes == sizeof got);
  HIP(hipMemset(at, 0, bytes));
  shared_value = 1;
  use<<<1, 64>>>(4);
  HIP(hipMemcpyFromSymbol(got, counts, sizeof got));
  REQUIRE(got[0] == 10 && got[1] == 20 && got[2] == 7 && got[3] == 8 && got[4] == 0);
  REQUIRE(shared_value == 7);
  REQUIRE(hipMemcpyToSymbol(table, fresh, 5 * sizeof(int)) == hipErrorInvalidValue);
  int no_symbol = 0;
  REQUIRE(hipMemcpyToSymbol(no_symbol, fresh, 4) == hipErrorInvalidSymbol);
  return 0;
}
