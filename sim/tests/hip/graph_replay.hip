// Capture, instantiate, replay; a forked capture; explicit nodes; an update.
#include <vector>

#include "check.h"

__global__ void scale(float* x, float factor, int n) {
  int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] *= factor;
}
__global__ void combine(const float* a, const float* b, float* c, int n) {
  int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) c[i] += a[i] - b[i];
}

constexpr int kCount = 777, kBlocks = (kCount + 127) / 128;
constexpr size_t kBytes = kCount * sizeof(float);

int main() {
  float *a, *b, *c, *host;
  HIP(hipMalloc(&a, kBytes));
  HIP(hipMalloc(&b, kBytes));
  HIP(hipMalloc(&c, kBytes));
  HIP(hipHostMalloc(&host, kBytes));
  for (int i = 0; i < kCount; ++i) host[i] = static_cast<float>(i);
  hipStream_t stream, side;
  hipEvent_t fork, join;
  HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  HIP(hipStreamCreateWithFlags(&side, hipStreamNonBlocking));
  HIP(hipEventCreateWithFlags(&fork, hipEventDisableTiming));
  HIP(hipEventCreateWithFlags(&join, hipEventDisableTiming));

  HIP(hipMemset(c, 0, kBytes));
  HIP(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal));
  HIP(hipMemcpyAsync(a, host, kBytes, hipMemcpyHostToDevice, stream));
  HIP(hipEventRecord(fork, stream));
  HIP(hipStreamWaitEvent(side, fork, 0));
  HIP(hipMemcpyAsync(b, a, kBytes, hipMemcpyDeviceToDevice, side));
  HIP(hipEventRecord(join, side));
  HIP(hipStreamWaitEvent(stream, join, 0));
  scale<<<kBlocks, 128, 0, stream>>>(a, 3.0f, kCount);
  combine<<<kBlocks, 128, 0, stream>>>(a, b, c, kCount);
  hipStreamCaptureStatus status;
  HIP(hipStreamIsCapturing(side, &status));
  REQUIRE(status == hipStreamCaptureStatusActive);
  hipGraph_t graph;
  HIP(hipStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  HIP(hipGraphGetNodes(graph, nullptr, &nodes));
  REQUIRE(nodes == 4);
  hipGraphExec_t exec;
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  constexpr int kReplays = 5;
  for (int r = 0; r < kReplays; ++r) HIP(hipGraphLaunch(exec, stream));
  HIP(hipStreamSynchronize(stream));
  std::vector<float> out(kCount);
  HIP(hipMemcpy(out.data(), c, kBytes, hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) REQUIRE(out[i] == 2.0f * kReplays * static_cast<float>(i));

  // The same graph with other parameters.
  std::vector<hipGraphNode_t> list(nodes);
  HIP(hipGraphGetNodes(graph, list.data(), &nodes));
  int changed = 0;
  for (hipGraphNode_t node : list) {
    hipGraphNodeType type;
    HIP(hipGraphNodeGetType(node, &type));
    if (type != hipGraphNodeTypeKernel) continue;
    size_t dependencies = 0;
    HIP(hipGraphNodeGetDependencies(node, nullptr, &dependencies));
    if (dependencies != 2) continue;  // scale waits for both branches
    float factor = 11.0f;
    int n = kCount;
    void* arguments[] = {&a, &factor, &n};
    hipKernelNodeParams p{};
    p.func = reinterpret_cast<void*>(scale);
    p.gridDim = dim3(kBlocks);
    p.blockDim = dim3(128);
    p.kernelParams = arguments;
    HIP(hipGraphExecKernelNodeSetParams(exec, node, &p));
    ++changed;
  }
  REQUIRE(changed == 1);
  HIP(hipMemset(c, 0, kBytes));
  HIP(hipGraphLaunch(exec, stream));
  HIP(hipStreamSynchronize(stream));
  HIP(hipMemcpy(out.data(), c, kBytes, hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) REQUIRE(out[i] == 10.0f * static_cast<float>(i));
  HIP(hipGraphExecDestroy(exec));
  HIP(hipGraphDestroy(graph));

  // By hand: set, scale, copy back, with edges made afterwards.
  HIP(hipGraphCreate(&graph, 0));
  hipMemsetParams set{};
  set.dst = a;
  set.elementSize = 4;
  set.value = 0x40400000;  // 3.0f
  set.width = kCount;
  set.height = 1;
  hipGraphNode_t n_set, n_scale, n_copy;
  HIP(hipGraphAddMemsetNode(&n_set, graph, nullptr, 0, &set));
  float factor = 0.5f;
  int n = kCount;
  void* arguments[] = {&a, &factor, &n};
  hipKernelNodeParams p{};
  p.func = reinterpret_cast<void*>(scale);
  p.gridDim = dim3(kBlocks);
  p.blockDim = dim3(128);
  p.kernelParams = arguments;
  HIP(hipGraphAddKernelNode(&n_scale, graph, nullptr, 0, &p));
  HIP(hipGraphAddMemcpyNode1D(&n_copy, graph, &n_scale, 1, host, a, kBytes, hipMemcpyDeviceToHost));
  HIP(hipGraphAddDependencies(graph, &n_set, &n_scale, 1));
  REQUIRE(hipGraphAddDependencies(graph, &n_set, &n_scale, 1) == hipErrorInvalidValue);
  HIP(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  HIP(hipGraphLaunch(exec, nullptr));
  HIP(hipDeviceSynchronize());
  for (int i = 0; i < kCount; ++i) REQUIRE(host[i] == 1.5f);
  // A cycle is refused.
  HIP(hipGraphAddDependencies(graph, &n_copy, &n_set, 1));
  hipGraphExec_t none;
  REQUIRE(hipGraphInstantiate(&none, graph, nullptr, nullptr, 0) == hipErrorInvalidValue);
  return 0;
}
