// Streams, events, capture, and calls made at random.
#include <atomic>
#include <random>
#include <thread>

#include "hip_api/support.h"

namespace crest_sim::test {
namespace {

TEST_F(HipApi, QueriesDoNotWait) {
  hipStream_t s;
  hipEvent_t e;
  ASSERT_EQ(hipStreamCreateWithFlags(&s, hipStreamNonBlocking), hipSuccess);
  ASSERT_EQ(hipEventCreate(&e), hipSuccess);
  EXPECT_EQ(hipEventQuery(e), hipSuccess);  // never recorded
  std::atomic<bool> go{false};
  auto hold = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  ASSERT_EQ(hipLaunchHostFunc(s, hold, &go), hipSuccess);
  ASSERT_EQ(hipEventRecord(e, s), hipSuccess);
  EXPECT_EQ(hipStreamQuery(s), hipErrorNotReady);
  EXPECT_EQ(hipEventQuery(e), hipErrorNotReady);
  float ms = 0;
  EXPECT_EQ(hipEventElapsedTime(&ms, e, e), hipErrorNotReady);
  // Pinned memory is copied later, ordinary memory before the call returns: here there is a wait for it.
  go = true;
  EXPECT_EQ(hipStreamSynchronize(s), hipSuccess);
  EXPECT_EQ(hipStreamQuery(s), hipSuccess);
  EXPECT_EQ(hipEventQuery(e), hipSuccess);
  EXPECT_EQ(hipEventElapsedTime(&ms, e, e), hipSuccess);
  EXPECT_EQ(ms, 0.0f);
}

TEST_F(HipApi, PinnedCopiesAreAsynchronous) {
  hipStream_t s;
  ASSERT_EQ(hipStreamCreateWithFlags(&s, hipStreamNonBlocking), hipSuccess);
  std::atomic<bool> go{false};
  auto hold = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  void* pinned = nullptr;
  ASSERT_EQ(hipHostMalloc(&pinned, 4, 0), hipSuccess);
  *static_cast<int*>(pinned) = 1;
  int* d = device<int>(1);
  ASSERT_EQ(hipLaunchHostFunc(s, hold, &go), hipSuccess);
  ASSERT_EQ(hipMemcpyAsync(d, pinned, 4, hipMemcpyHostToDevice, s), hipSuccess);
  *static_cast<int*>(pinned) = 2;  // the copy has not been made yet
  go = true;
  ASSERT_EQ(hipStreamSynchronize(s), hipSuccess);
  EXPECT_EQ(download(d, 1)[0], 2);
}

TEST_F(HipApi, CallbacksAreToldOfFailure) {
  hipFunction_t f = kernel("copy_offset");
  uint32_t *in = device<uint32_t>(64), *out = device<uint32_t>(64);
  hipStream_t s;
  ASSERT_EQ(hipStreamCreateWithFlags(&s, hipStreamNonBlocking), hipSuccess);
  static hipError_t told;
  told = hipErrorUnknown;
  auto callback = [](hipStream_t, hipError_t status, void*) { told = status; };
  ASSERT_EQ(hipStreamAddCallback(s, callback, nullptr, 0), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(s), hipSuccess);
  EXPECT_EQ(told, hipSuccess);
  ASSERT_EQ(copy_offset(f, in, out, -1, s), hipSuccess);
  ASSERT_EQ(hipStreamAddCallback(s, callback, nullptr, 0), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorIllegalAddress);
  EXPECT_EQ(told, hipErrorIllegalAddress);
}

TEST_F(HipApi, CaptureRules) {
  hipStream_t s, other;
  hipEvent_t e;
  hipGraph_t graph = nullptr;
  ASSERT_EQ(hipStreamCreate(&s), hipSuccess);
  ASSERT_EQ(hipStreamCreate(&other), hipSuccess);
  ASSERT_EQ(hipEventCreate(&e), hipSuccess);
  char* d = device<char>(64);
  EXPECT_EQ(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(hipStreamEndCapture(s, &graph), hipErrorIllegalState);

  // A synchronisation spoils the capture.
  ASSERT_EQ(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal), hipSuccess);
  EXPECT_EQ(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal), hipErrorIllegalState);
  EXPECT_EQ(hipMemsetAsync(d, 0, 64, s), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(s), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(hipMemsetAsync(d, 0, 64, s), hipErrorStreamCaptureInvalidated);
  EXPECT_EQ(hipStreamEndCapture(s, &graph), hipErrorStreamCaptureInvalidated);

  // So do an allocation and the null stream.
  for (int kind = 0; kind < 2; ++kind) {
    ASSERT_EQ(hipStreamBeginCapture(s, hipStreamCaptureModeGlobal), hipSuccess);
    void* p = nullptr;
    if (kind == 0)
      EXPECT_EQ(hipMalloc(&p, 4), hipErrorStreamCaptureUnsupported);
    else
      EXPECT_EQ(hipMemset(d, 0, 4), hipErrorStreamCaptureImplicit);
    EXPECT_EQ(hipStreamEndCapture(s, &graph), hipErrorStreamCaptureInvalidated);
  }
  // In relaxed mode an allocation is fine.
  ASSERT_EQ(hipStreamBeginCapture(s, hipStreamCaptureModeRelaxed), hipSuccess);
  void* p = nullptr;
  EXPECT_EQ(hipMalloc(&p, 4), hipSuccess);
  EXPECT_EQ(hipStreamEndCapture(s, &graph), hipSuccess);
  EXPECT_EQ(hipGraphDestroy(graph), hipSuccess);

  // A branch that does not come back.
  ASSERT_EQ(hipStreamBeginCapture(s, hipStreamCaptureModeThreadLocal), hipSuccess);
  EXPECT_EQ(hipMemsetAsync(d, 0, 64, s), hipSuccess);
  EXPECT_EQ(hipEventRecord(e, s), hipSuccess);
  EXPECT_EQ(hipEventQuery(e), hipErrorCapturedEvent);
  EXPECT_EQ(hipStreamWaitEvent(other, e, 0), hipSuccess);
  EXPECT_EQ(hipMemsetAsync(d, 1, 64, other), hipSuccess);
  EXPECT_EQ(hipStreamEndCapture(other, &graph), hipErrorStreamCaptureUnmatched);
  EXPECT_EQ(hipStreamEndCapture(s, &graph), hipErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  hipStreamCaptureStatus status;
  EXPECT_EQ(hipStreamIsCapturing(other, &status), hipSuccess);
  EXPECT_EQ(status, hipStreamCaptureStatusNone);

  // Work outside the capture may not be waited for.
  ASSERT_EQ(hipEventRecord(e, other), hipSuccess);
  ASSERT_EQ(hipStreamBeginCapture(s, hipStreamCaptureModeThreadLocal), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(s, e, 0), hipErrorStreamCaptureIsolation);
  EXPECT_EQ(hipStreamEndCapture(s, &graph), hipErrorStreamCaptureInvalidated);
}

TEST_F(HipApi, ChildGraphsClonesAndUpdates) {
  int* d = device<int>(4);
  hipGraph_t inner, outer, clone;
  hipGraphNode_t set, child, found;
  ASSERT_EQ(hipGraphCreate(&inner, 0), hipSuccess);
  ASSERT_EQ(hipGraphCreate(&outer, 0), hipSuccess);
  hipMemsetParams p{d, 4, 1, 0, 41, 4};
  ASSERT_EQ(hipGraphAddMemsetNode(&set, inner, nullptr, 0, &p), hipSuccess);
  ASSERT_EQ(hipGraphAddChildGraphNode(&child, outer, nullptr, 0, inner), hipSuccess);
  EXPECT_EQ(hipGraphAddChildGraphNode(&child, outer, nullptr, 0, outer), hipErrorInvalidValue);
  ASSERT_EQ(hipGraphClone(&clone, inner), hipSuccess);
  ASSERT_EQ(hipGraphNodeFindInClone(&found, set, clone), hipSuccess);
  EXPECT_EQ(hipGraphAddEmptyNode(&child, outer, &set, 1), hipErrorInvalidValue) << "a node of another graph";
  hipGraphExec_t exec;
  ASSERT_EQ(hipGraphInstantiate(&exec, outer, nullptr, nullptr, 0), hipSuccess);
  ASSERT_EQ(hipGraphDestroy(inner), hipSuccess);
  ASSERT_EQ(hipGraphDestroy(outer), hipSuccess);
  ASSERT_EQ(hipGraphLaunch(exec, nullptr), hipSuccess);
  EXPECT_EQ(download(d, 4), std::vector<int>(4, 41));
  // An update with the same shape is taken over, another shape is not.
  hipGraphExec_t second;
  ASSERT_EQ(hipGraphInstantiate(&second, clone, nullptr, nullptr, 0), hipSuccess);
  p.value = 42;
  ASSERT_EQ(hipGraphMemsetNodeSetParams(found, &p), hipSuccess);
  hipGraphExecUpdateResult result;
  ASSERT_EQ(hipGraphExecUpdate(second, clone, nullptr, &result), hipSuccess);
  ASSERT_EQ(hipGraphLaunch(second, nullptr), hipSuccess);
  EXPECT_EQ(download(d, 4), std::vector<int>(4, 42));
  hipGraphNode_t extra;
  ASSERT_EQ(hipGraphAddEmptyNode(&extra, clone, &found, 1), hipSuccess);
  EXPECT_EQ(hipGraphExecUpdate(second, clone, nullptr, &result), hipErrorGraphExecUpdateFailure);
  EXPECT_EQ(result, hipGraphExecUpdateErrorTopologyChanged);
  ASSERT_EQ(hipGraphDestroyNode(found), hipSuccess);
  size_t count = 99;
  EXPECT_EQ(hipGraphNodeGetDependencies(extra, nullptr, &count), hipSuccess);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(hipGraphNodeGetType(found, nullptr), hipErrorInvalidValue);
}

/// Calls in any order with handles that may be stale, from several threads. Nothing may crash, hang, or leave the
/// device unusable after a reset.
void random_calls(uint32_t seed, hipFunction_t f, int calls) {
  std::mt19937 random(seed);
  std::vector<hipStream_t> streams{nullptr, hipStreamPerThread, reinterpret_cast<hipStream_t>(0x40)};
  std::vector<hipEvent_t> events{nullptr};
  std::vector<hipGraph_t> graphs{nullptr};
  std::vector<hipGraphExec_t> execs{nullptr};
  std::vector<char*> memory{nullptr};
  static char host[4096];  // captured copies may use it after this call
  auto pick = [&](const auto& v) { return v[random() % v.size()]; };
  auto bytes = [&] { return size_t(random() % 3000); };
  for (int n = 0; n < calls; ++n) {
    hipStream_t s = pick(streams);
    hipEvent_t e = pick(events);
    char *a = pick(memory), *b = pick(memory);
    void* p = nullptr;
    switch (random() % 24) {
      case 0:
        if (hipMalloc(&p, 1 + bytes()) == hipSuccess) memory.push_back(static_cast<char*>(p));
        break;
      case 1:
        if (hipHostMalloc(&p, 1 + bytes(), 0) == hipSuccess) memory.push_back(static_cast<char*>(p));
        break;
      case 2:
        static_cast<void>(hipFree(a));
        break;
      case 3:
        static_cast<void>(hipFreeAsync(a, s));
        break;
      case 4:
        if (hipStreamCreateWithFlags(&s, random() % 2) == hipSuccess) streams.push_back(s);
        break;
      case 5:
        if (random() % 4 == 0) static_cast<void>(hipStreamDestroy(s));
        break;
      case 6:
        if (hipEventCreateWithFlags(&e, random() % 4) == hipSuccess) events.push_back(e);
        break;
      case 7:
        if (random() % 4 == 0) static_cast<void>(hipEventDestroy(e));
        break;
      case 8:
        static_cast<void>(hipEventRecord(e, s));
        break;
      case 9:
        static_cast<void>(hipStreamWaitEvent(s, e, 0));
        break;
      case 10:
        static_cast<void>(hipMemcpyAsync(a, b, bytes(), hipMemcpyDefault, s));
        break;
      case 11:
        static_cast<void>(hipMemcpyAsync(host, a, bytes(), hipMemcpyDeviceToHost, s));
        break;
      case 12:
        static_cast<void>(hipMemsetAsync(a, static_cast<int>(random()), bytes(), s));
        break;
      case 13:
        static_cast<void>(hipMemcpy(a, host, bytes(), hipMemcpyHostToDevice));
        break;
      case 14:
        static_cast<void>(hipStreamSynchronize(s));
        break;
      case 15:
        static_cast<void>(hipEventSynchronize(e));
        break;
      case 16:
        static_cast<void>(hipStreamQuery(s));
        break;
      case 17:
        static_cast<void>(hipStreamBeginCapture(s, hipStreamCaptureMode(random() % 3)));
        break;
      case 18: {
        hipGraph_t g = nullptr;
        if (hipStreamEndCapture(s, &g) == hipSuccess) graphs.push_back(g);
        break;
      }
      case 19: {
        hipGraphExec_t x = nullptr;
        if (hipGraphInstantiate(&x, pick(graphs), nullptr, nullptr, 0) == hipSuccess) execs.push_back(x);
        break;
      }
      case 20:
        static_cast<void>(hipGraphLaunch(pick(execs), s));
        break;
      case 21:
        static_cast<void>(random() % 2 ? hipGraphDestroy(pick(graphs)) : hipGraphExecDestroy(pick(execs)));
        break;
      case 22: {
        int offset = random() % 8 == 0 ? 4000 : 0;
        void* arguments[] = {&a, &b, &offset};
        static_cast<void>(hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, s, arguments, nullptr));
        break;
      }
      case 23:
        static_cast<void>(hipGetLastError());
        break;
    }
  }
}

TEST_F(HipApi, RandomCalls) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    hipFunction_t f = kernel("copy_offset");
    testing::internal::CaptureStderr();  // the faults that the calls cause are reported there
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 3; ++t) threads.emplace_back([=] { random_calls(seed * 100 + t, f, 400); });
    for (auto& t : threads) t.join();
    ASSERT_EQ(hipDeviceReset(), hipSuccess);
    testing::internal::GetCapturedStderr();
    f = kernel("copy_offset");
    std::vector<uint32_t> in(64, seed);
    uint32_t* out = device<uint32_t>(64);
    ASSERT_EQ(copy_offset(f, upload(in), out, 0), hipSuccess);
    ASSERT_EQ(download(out, 64), in) << seed;
    ASSERT_EQ(hipDeviceReset(), hipSuccess);
  }
}

}  // namespace
}  // namespace crest_sim::test
