#include <vector>

#include "check.h"

__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  int count = 0;
  HIP(hipGetDeviceCount(&count));
  REQUIRE(count >= 1);
  for (int n : {1, 63, 64, 65, 1000, 4099}) {
    std::vector<float> a(n), b(n), c(n, -1.0f);
    for (int i = 0; i < n; ++i) a[i] = static_cast<float>(i) * 0.25f, b[i] = static_cast<float>(n - i);
    float *da, *db, *dc;
    size_t bytes = a.size() * sizeof(float);
    HIP(hipMalloc(&da, bytes));
    HIP(hipMalloc(&db, bytes));
    HIP(hipMalloc(&dc, bytes));
    HIP(hipMemcpy(da, a.data(), bytes, hipMemcpyHostToDevice));
    HIP(hipMemcpy(db, b.data(), bytes, hipMemcpyHostToDevice));
    add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
    HIP(hipGetLastError());
    HIP(hipMemcpy(c.data(), dc, bytes, hipMemcpyDeviceToHost));
    for (int i = 0; i < n; ++i) REQUIRE(c[i] == a[i] + b[i]);
    HIP(hipFree(da));
    HIP(hipFree(db));
    HIP(hipFree(dc));
  }
  return 0;
}
