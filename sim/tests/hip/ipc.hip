// Memory shared between two processes through an IPC handle.
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void add(int* x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] += value; }

constexpr int kCount = 3000, kOffset = 40;

void child(int from_parent, int to_parent) {
  hipIpcMemHandle_t handle;
  REQUIRE(read(from_parent, &handle, sizeof handle) == static_cast<ssize_t>(sizeof handle));
  int* x;
  HIP(hipIpcOpenMemHandle(reinterpret_cast<void**>(&x), handle, hipIpcMemLazyEnablePeerAccess));
  int seen[2];
  HIP(hipMemcpy(seen, x, sizeof seen, hipMemcpyDeviceToHost));
  REQUIRE(seen[0] == kOffset * 3 && seen[1] == (kOffset + 1) * 3);
  add<<<1, 64>>>(x, 1000);
  HIP(hipDeviceSynchronize());
  HIP(hipIpcCloseMemHandle(x));
  REQUIRE(hipIpcCloseMemHandle(x) == hipErrorInvalidValue);
  REQUIRE(write(to_parent, "k", 1) == 1);
  std::exit(0);
}

int main() {
  int down[2], up[2];
  REQUIRE(pipe(down) == 0 && pipe(up) == 0);
  pid_t process = fork();  // before HIP is used: the child is a process of its own
  REQUIRE(process >= 0);
  if (process == 0) child(down[0], up[1]);
  int *x, host[kCount];
  for (int i = 0; i < kCount; ++i) host[i] = i * 3;
  HIP(hipMalloc(&x, sizeof host));
  HIP(hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice));
  hipIpcMemHandle_t handle;
  HIP(hipIpcGetMemHandle(&handle, x + kOffset));
  int* again;
  REQUIRE(hipIpcOpenMemHandle(reinterpret_cast<void**>(&again), handle, 0) == hipErrorInvalidContext);
  REQUIRE(write(down[1], &handle, sizeof handle) == static_cast<ssize_t>(sizeof handle));
  char done = 0;
  REQUIRE(read(up[0], &done, 1) == 1);
  int status = -1;
  REQUIRE(waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  HIP(hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) REQUIRE(host[i] == i * 3 + (i >= kOffset && i < kOffset + 64 ? 1000 : 0));
  add<<<1, 64>>>(x, 1);  // the memory is still this process's own
  HIP(hipDeviceSynchronize());
  HIP(hipFree(x));
  return 0;
}
