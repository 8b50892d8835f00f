// Two host threads with a stream each; order within a stream, events across streams, the null stream between them.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

__global__ void step(unsigned* x, unsigned add) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = x[i] * 3 + add;
}
__global__ void copy(const unsigned* from, unsigned* to) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

constexpr unsigned kCount = 512, kSteps = 20;

unsigned after(unsigned x, unsigned steps) {
  for (unsigned s = 0; s < steps; ++s) x = x * 3 + s;
  return x;
}

int main() {
  std::atomic<int> called{0};
  auto work = [&](unsigned seed) {
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    unsigned* x;
    HIP(hipMalloc(&x, kCount * sizeof(unsigned)));
    std::vector<unsigned> in(kCount), out(kCount);
    for (unsigned i = 0; i < kCount; ++i) in[i] = seed + i;
    HIP(hipMemcpyAsync(x, in.data(), kCount * sizeof(unsigned), hipMemcpyHostToDevice, stream));
    for (unsigned s = 0; s < kSteps; ++s) step<<<kCount / 128, 128, 0, stream>>>(x, s);
    HIP(hipLaunchHostFunc(stream, [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); }, &called));
    HIP(hipMemcpyAsync(out.data(), x, kCount * sizeof(unsigned), hipMemcpyDeviceToHost, stream));
    HIP(hipStreamSynchronize(stream));
    for (unsigned i = 0; i < kCount; ++i) REQUIRE(out[i] == after(seed + i, kSteps));
    HIP(hipFree(x));
    HIP(hipStreamDestroy(stream));
  };
  std::thread one(work, 1000u), two(work, 77000u);
  one.join();
  two.join();
  REQUIRE(called == 2);

  // An event carries the order from one stream to the other.
  hipStream_t a, b;
  hipEvent_t ready, begin, end;
  HIP(hipStreamCreateWithFlags(&a, hipStreamNonBlocking));
  HIP(hipStreamCreateWithFlags(&b, hipStreamNonBlocking));
  HIP(hipEventCreateWithFlags(&ready, hipEventDisableTiming));
  HIP(hipEventCreate(&begin));
  HIP(hipEventCreate(&end));
  unsigned *x, *y;
  HIP(hipMalloc(&x, kCount * sizeof(unsigned)));
  HIP(hipMalloc(&y, kCount * sizeof(unsigned)));
  HIP(hipMemset(x, 0, kCount * sizeof(unsigned)));
  HIP(hipDeviceSynchronize());
  HIP(hipEventRecord(begin, a));
  for (unsigned s = 0; s < kSteps; ++s) step<<<kCount / 128, 128, 0, a>>>(x, s);
  HIP(hipEventRecord(ready, a));
  HIP(hipEventRecord(end, a));
  HIP(hipStreamWaitEvent(b, ready, 0));
  copy<<<kCount / 128, 128, 0, b>>>(x, y);
  HIP(hipStreamSynchronize(b));
  std::vector<unsigned> out(kCount);
  HIP(hipMemcpy(out.data(), y, kCount * sizeof(unsigned), hipMemcpyDeviceToHost));
  for (unsigned v : out) REQUIRE(v == after(0, kSteps));
  HIP(hipEventSynchronize(end));
  float ms = -1;
  HIP(hipEventElapsedTime(&ms, begin, end));
  REQUIRE(ms > 0);
  REQUIRE(hipEventElapsedTime(&ms, ready, end) == hipErrorInvalidHandle);

  // The null stream waits for blocking streams and they wait for it.
  hipStream_t blocking;
  HIP(hipStreamCreate(&blocking));
  HIP(hipMemset(x, 0, kCount * sizeof(unsigned)));
  for (unsigned s = 0; s < kSteps; ++s) step<<<kCount / 128, 128, 0, blocking>>>(x, s);
  copy<<<kCount / 128, 128>>>(x, y);
  step<<<kCount / 128, 128, 0, blocking>>>(y, 5);
  HIP(hipMemcpy(out.data(), y, kCount * sizeof(unsigned), hipMemcpyDeviceToHost));
  for (unsigned v : out) REQUIRE(v == after(0, kSteps) * 3 + 5);
  HIP(hipStreamDestroy(blocking));
  REQUIRE(hipStreamSynchronize(blocking) == hipErrorInvalidHandle);
  return 0;
}
