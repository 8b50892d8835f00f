// Devices, memory, modules and launches: what is right, and what wrong arguments give.
#include <cstring>

#include "hip/registered.h"
#include "hip_api/support.h"

namespace crest_sim::test {
namespace {

int never_registered = 0;

TEST_F(HipApi, Devices) {
  int count = 0, value = 0;
  EXPECT_EQ(hipGetDeviceCount(&count), hipSuccess);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 1), hipSuccess);
  EXPECT_EQ(value, 32);
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0), hipSuccess);
  EXPECT_EQ(value, 304);
  EXPECT_EQ(hipDeviceGetAttribute(&value, static_cast<hipDeviceAttribute_t>(12345), 0), hipErrorNotSupported);
  hipDeviceProp_tR0600 p;
  std::memset(&p, 0xee, sizeof p);
  EXPECT_EQ(hipGetDevicePropertiesR0600(&p, 1), hipSuccess);
  EXPECT_STREQ(p.gcnArchName, "gfx1100");
  EXPECT_EQ(p.sharedMemPerBlock, 65536u);
  hipDeviceProp_tR0000 old;
  EXPECT_EQ(hipGetDevicePropertiesR0000(&old, 0), hipSuccess);
  EXPECT_STREQ(old.gcnArchName, "gfx942:sramecc+:xnack-");
  EXPECT_EQ(old.warpSize, 64);
  for (int bad : {-1, 2, 1 << 30}) {
    EXPECT_EQ(hipSetDevice(bad), hipErrorInvalidDevice);
    EXPECT_EQ(hipGetDevicePropertiesR0600(&p, bad), hipErrorInvalidDevice);
    EXPECT_EQ(hipDeviceEnablePeerAccess(bad, 0), hipErrorInvalidDevice);
  }
  char text[32];
  EXPECT_EQ(hipDeviceGetPCIBusId(text, sizeof text, 1), hipSuccess);
  int found = -1;
  EXPECT_EQ(hipDeviceGetByPCIBusId(&found, text), hipSuccess);
  EXPECT_EQ(found, 1);
  EXPECT_EQ(hipDeviceGetName(text, 4, 0), hipSuccess);
  EXPECT_STREQ(text, "gfx");
}

TEST_F(HipApi, NullPointersAreErrors) {
  EXPECT_EQ(hipGetDeviceCount(nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipGetDevice(nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipMalloc(nullptr, 4), hipErrorInvalidValue);
  EXPECT_EQ(hipHostMalloc(nullptr, 4, 0), hipErrorInvalidValue);
  EXPECT_EQ(hipMemGetInfo(nullptr, nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(nullptr, &never_registered, 4, hipMemcpyHostToDevice), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(nullptr, nullptr, 0, hipMemcpyHostToDevice), hipSuccess);
  EXPECT_EQ(hipMemset(nullptr, 0, 4), hipErrorInvalidValue);
  EXPECT_EQ(hipStreamCreate(nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipEventCreate(nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipEventRecord(nullptr, nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipModuleLoad(nullptr, "x"), hipErrorInvalidValue);
  EXPECT_EQ(hipModuleLoadData(nullptr, image_.data()), hipErrorInvalidValue);
  EXPECT_EQ(hipModuleGetFunction(nullptr, nullptr, nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr), hipErrorInvalidDeviceFunction);
  EXPECT_EQ(hipLaunchKernel(&never_registered, dim3(1), dim3(1), nullptr, 0, nullptr), hipErrorInvalidDeviceFunction);
  EXPECT_EQ(hipGetSymbolSize(nullptr, nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipGraphCreate(nullptr, 0), hipErrorInvalidValue);
  EXPECT_EQ(hipGraphLaunch(nullptr, nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipGraphInstantiate(nullptr, nullptr, nullptr, nullptr, 0), hipErrorInvalidValue);
  EXPECT_EQ(hipIpcGetMemHandle(nullptr, nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipPointerGetAttributes(nullptr, nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  EXPECT_EQ(hipHostFree(nullptr), hipSuccess);
  EXPECT_EQ(hipPeekAtLastError(), hipErrorInvalidValue);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidValue);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
}

TEST_F(HipApi, MadeUpHandlesAreErrors) {
  auto* stream = reinterpret_cast<hipStream_t>(&never_registered);
  auto* event = reinterpret_cast<hipEvent_t>(0x1234);
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorInvalidHandle);
  EXPECT_EQ(hipStreamDestroy(stream), hipErrorInvalidHandle);
  EXPECT_EQ(hipStreamDestroy(nullptr), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventSynchronize(event), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventDestroy(event), hipErrorInvalidHandle);
  EXPECT_EQ(hipStreamWaitEvent(nullptr, event, 0), hipErrorInvalidHandle);
  EXPECT_EQ(hipMemcpyAsync(&never_registered, &never_registered, 4, hipMemcpyHostToHost, stream),
            hipErrorInvalidHandle);
  EXPECT_EQ(hipModuleUnload(reinterpret_cast<hipModule_t>(8)), hipErrorInvalidHandle);
  EXPECT_EQ(hipGraphDestroyNode(reinterpret_cast<hipGraphNode_t>(16)), hipErrorInvalidValue);
  EXPECT_EQ(hipGraphExecDestroy(reinterpret_cast<hipGraphExec_t>(16)), hipErrorInvalidValue);
}

TEST_F(HipApi, ErrorTexts) {
  EXPECT_STREQ(hipGetErrorName(hipErrorIllegalAddress), "hipErrorIllegalAddress");
  EXPECT_STREQ(hipGetErrorName(hipSuccess), "hipSuccess");
  EXPECT_NE(std::string(hipGetErrorString(hipErrorOutOfMemory)), "");
  const char* text = nullptr;
  EXPECT_EQ(hipDrvGetErrorName(hipErrorNotReady, &text), hipSuccess);
  EXPECT_STREQ(text, "hipErrorNotReady");
  EXPECT_EQ(hipDrvGetErrorString(static_cast<hipError_t>(777777), &text), hipErrorInvalidValue);
}

TEST_F(HipApi, MemoryIsBoundedAndCounted) {
  size_t free_before = 0, total = 0, free_now = 0;
  ASSERT_EQ(hipMemGetInfo(&free_before, &total), hipSuccess);
  EXPECT_EQ(total, size_t(192) << 30);
  void* big = nullptr;  // nearly all of it: costs nothing until touched
  ASSERT_EQ(hipMalloc(&big, free_before - 4096), hipSuccess);
  ASSERT_EQ(hipMemGetInfo(&free_now, &total), hipSuccess);
  EXPECT_EQ(free_now, 4096u);
  void* more = nullptr;
  EXPECT_EQ(hipMalloc(&more, 8192), hipErrorOutOfMemory);
  EXPECT_EQ(more, nullptr);
  ASSERT_EQ(hipFree(big), hipSuccess);
  EXPECT_EQ(hipFree(big), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(&never_registered), hipErrorInvalidValue);
  ASSERT_EQ(hipMemGetInfo(&free_now, &total), hipSuccess);
  EXPECT_EQ(free_now, free_before);
  // Address space is not used up by allocating and freeing.
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(hipMalloc(&big, size_t(180) << 30), hipSuccess) << i;
    ASSERT_EQ(hipMemset(static_cast<char*>(big) + (size_t(90) << 30), i, 16), hipSuccess);
    ASSERT_EQ(hipFree(big), hipSuccess);
  }
}

TEST_F(HipApi, CopiesStayInsideAllocations) {
  char host[64] = {};
  char* p = device<char>(64);
  EXPECT_EQ(hipMemcpy(p, host, 64, hipMemcpyHostToDevice), hipSuccess);
  EXPECT_EQ(hipMemcpy(p, host, 65, hipMemcpyHostToDevice), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(host, p + 1, 64, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(host, host + 32, 32, hipMemcpyDeviceToHost), hipErrorInvalidDevicePointer);
  EXPECT_EQ(hipMemcpy(p, host, 64, static_cast<hipMemcpyKind>(9)), hipErrorInvalidMemcpyDirection);
  EXPECT_EQ(hipMemset(p, 1, 65), hipErrorInvalidValue);
  EXPECT_EQ(hipMemsetD32(p, 1, 16), hipSuccess);
  EXPECT_EQ(hipMemsetD32(p, 1, 17), hipErrorInvalidValue);
  EXPECT_EQ(hipMemsetD32(p, 1, ~size_t(0) / 2), hipErrorInvalidValue);
  EXPECT_EQ(hipMemset2D(p, 16, 7, 8, 4), hipSuccess);
  EXPECT_EQ(hipMemset2D(p, 4, 7, 8, 4), hipErrorInvalidPitchValue);
  EXPECT_EQ(hipMemset2D(p, 16, 7, 8, 5), hipErrorInvalidValue);
  ASSERT_EQ(hipMemcpy(host, p, 64, hipMemcpyDeviceToHost), hipSuccess);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(host[i], i % 16 < 8 ? 7 : i % 4 == 0) << i;
  char part[6] = {};
  EXPECT_EQ(hipMemcpy2D(part, 2, p + 7, 16, 2, 3, hipMemcpyDeviceToHost), hipSuccess);
  EXPECT_EQ(std::string(part, 6), std::string("\7\1\7\1\7\1", 6));
  EXPECT_EQ(hipMemcpy2D(part, 2, p + 7, 16, 2, 5, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  ASSERT_EQ(hipFree(p), hipSuccess);
  EXPECT_EQ(hipMemcpy(host, p, 1, hipMemcpyDeviceToHost), hipErrorInvalidValue);
}

TEST_F(HipApi, PointersSayWhatTheyAre) {
  int* d = device<int>(100);
  void *h = nullptr, *m = nullptr;
  std::vector<int> own(1000);
  ASSERT_EQ(hipHostMalloc(&h, 100, hipHostMallocMapped), hipSuccess);
  ASSERT_EQ(hipMallocManaged(&m, 100, hipMemAttachGlobal), hipSuccess);
  hipPointerAttribute_t a;
  ASSERT_EQ(hipPointerGetAttributes(&a, d + 5), hipSuccess);
  EXPECT_EQ(a.type, hipMemoryTypeDevice);
  EXPECT_EQ(a.devicePointer, d + 5);
  ASSERT_EQ(hipPointerGetAttributes(&a, h), hipSuccess);
  EXPECT_EQ(a.type, hipMemoryTypeHost);
  EXPECT_EQ(a.allocationFlags, unsigned(hipHostMallocMapped));
  ASSERT_EQ(hipPointerGetAttributes(&a, m), hipSuccess);
  EXPECT_EQ(a.type, hipMemoryTypeManaged);
  EXPECT_EQ(a.isManaged, 1);
  ASSERT_EQ(hipPointerGetAttributes(&a, own.data()), hipSuccess);
  EXPECT_EQ(a.type, hipMemoryTypeUnregistered);
  ASSERT_EQ(hipHostRegister(own.data(), own.size() * sizeof(int), 0), hipSuccess);
  EXPECT_EQ(hipHostRegister(own.data() + 10, 4, 0), hipErrorHostMemoryAlreadyRegistered);
  ASSERT_EQ(hipPointerGetAttributes(&a, own.data() + 3), hipSuccess);
  EXPECT_EQ(a.type, hipMemoryTypeHost);
  void* base = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(hipMemGetAddressRange(&base, &bytes, d + 7), hipSuccess);
  EXPECT_EQ(base, d);
  EXPECT_EQ(bytes, 400u);
  // A kernel may use it until it is unregistered.
  hipFunction_t f = kernel("copy_offset");
  for (int i = 0; i < 1000; ++i) own[i] = i;
  auto* in = reinterpret_cast<uint32_t*>(own.data());
  EXPECT_EQ(copy_offset(f, in, in + 500, 100), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(own[500], 100);
  EXPECT_EQ(own[563], 163);
  ASSERT_EQ(hipHostUnregister(own.data()), hipSuccess);
  EXPECT_EQ(hipHostUnregister(own.data()), hipErrorHostMemoryNotRegistered);
  EXPECT_EQ(copy_offset(f, in, in + 500, 100), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorIllegalAddress);
}

TEST_F(HipApi, BothFormsOfArguments) {
  hipFunction_t f = kernel("vadd");
  std::vector<float> x(100), y(100);
  for (int i = 0; i < 100; ++i) x[i] = static_cast<float>(i), y[i] = 0.5f;
  struct {
    float *a, *b, *c;
    int n;
  } packed{upload(x), upload(y), device<float>(100), 100};
  size_t bytes = sizeof packed;
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   HIP_LAUNCH_PARAM_END};
  ASSERT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra), hipSuccess);
  EXPECT_EQ(download(packed.c, 100)[99], 99.5f);
  float* c = device<float>(100);
  void* list[] = {&packed.a, &packed.a, &c, &packed.n};
  ASSERT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, nullptr, list, nullptr), hipSuccess);
  EXPECT_EQ(download(c, 100)[99], 198.0f);
  EXPECT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, nullptr, list, extra), hipErrorInvalidValue);
  EXPECT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr), hipErrorInvalidValue);
  bytes = 8;
  EXPECT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra), hipErrorInvalidConfiguration);
  void* broken[] = {&packed, HIP_LAUNCH_PARAM_END};
  EXPECT_EQ(hipModuleLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, nullptr, nullptr, broken), hipErrorInvalidValue);
  for (auto [gx, bx, lds] : {std::tuple{0u, 256u, 0u}, {1u, 0u, 0u}, {1u, 257u, 0u}, {1u, 256u, 65537u}})
    EXPECT_EQ(hipModuleLaunchKernel(f, gx, 1, 1, bx, 1, 1, lds, nullptr, list, nullptr), hipErrorInvalidConfiguration)
        << gx << " " << bx << " " << lds;
  EXPECT_EQ(hipExtModuleLaunchKernel(f, 256, 1, 1, 256, 1, 1, 0, nullptr, list, nullptr, nullptr, nullptr, 0),
            hipSuccess);
  EXPECT_EQ(hipExtModuleLaunchKernel(f, 300, 1, 1, 256, 1, 1, 0, nullptr, list, nullptr, nullptr, nullptr, 0),
            hipErrorNotSupported);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
}

TEST_F(HipApi, ModulesOfOtherArchitecturesAndDamagedOnes) {
  hipModule_t module = nullptr;
  auto other = object("basic.gfx1100");
  EXPECT_EQ(hipModuleLoadData(&module, other.data()), hipErrorNoBinaryForGpu);
  EXPECT_EQ(hipSetDevice(1), hipSuccess);
  EXPECT_EQ(hipModuleLoadData(&module, other.data()), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipErrorInvalidHandle);
  EXPECT_EQ(hipSetDevice(0), hipSuccess);
  const char text[64] = "not a code object at all";
  EXPECT_EQ(hipModuleLoadData(&module, text), hipErrorInvalidImage);
  EXPECT_EQ(hipModuleLoad(&module, "/nonexistent/file.co"), hipErrorFileNotFound);
  ASSERT_EQ(hipModuleLoadData(&module, launch_image_.data()), hipSuccess);
  hipFunction_t f = nullptr;
  EXPECT_EQ(hipModuleGetFunction(&f, module, "no_such_kernel"), hipErrorNotFound);
  void* table = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(hipModuleGetGlobal(&table, &bytes, module, "table"), hipSuccess);
  EXPECT_EQ(bytes, 16u);
  EXPECT_EQ(download(static_cast<uint32_t*>(table), 4), (std::vector<uint32_t>{11, 22, 33, 44}));
  EXPECT_EQ(hipModuleGetGlobal(&table, &bytes, module, "no_table"), hipErrorNotFound);
  // A function outlives neither its module's handle nor a reset.
  ASSERT_EQ(hipModuleGetFunction(&f, module, "copy_offset"), hipSuccess);
  ASSERT_EQ(hipModuleUnload(module), hipSuccess);
  EXPECT_EQ(copy_offset(f, nullptr, nullptr, 0), hipErrorInvalidHandle);
}

TEST_F(HipApi, ImagesTellTheirSize) {
  EXPECT_EQ(hip::image_bytes(image_.data()), image_.size());
  EXPECT_EQ(hip::image_bytes(nullptr), 0u);
  EXPECT_EQ(hip::image_bytes("0123456789abcdefghijklmnop"), 0u);
}

TEST_F(HipApi, FaultsStayWithTheirStream) {
  hipFunction_t f = kernel("copy_offset");
  uint32_t *in = upload(std::vector<uint32_t>(64, 5)), *out = device<uint32_t>(64), *other = device<uint32_t>(64);
  hipStream_t bad, good;
  hipEvent_t event;
  ASSERT_EQ(hipStreamCreateWithFlags(&bad, hipStreamNonBlocking), hipSuccess);
  ASSERT_EQ(hipStreamCreateWithFlags(&good, hipStreamNonBlocking), hipSuccess);
  ASSERT_EQ(hipEventCreate(&event), hipSuccess);
  EXPECT_EQ(copy_offset(f, in, out, 1, bad), hipSuccess);  // one element too far
  EXPECT_EQ(copy_offset(f, in, out, 0, bad), hipSuccess);
  EXPECT_EQ(hipEventRecord(event, bad), hipSuccess);
  EXPECT_EQ(copy_offset(f, in, other, 0, good), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(good), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(bad), hipErrorIllegalAddress);
  EXPECT_EQ(hipEventSynchronize(event), hipErrorIllegalAddress);
  EXPECT_EQ(hipStreamQuery(bad), hipErrorIllegalAddress);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorIllegalAddress);
  EXPECT_EQ(download(out, 64), std::vector<uint32_t>(64, 0)) << "work behind a fault must not run";
  EXPECT_EQ(download(other, 64), std::vector<uint32_t>(64, 5));
  // What waits for failed work has failed.
  EXPECT_EQ(hipStreamWaitEvent(good, event, 0), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(good), hipErrorIllegalAddress);
  EXPECT_EQ(hipStreamDestroy(bad), hipSuccess);
  EXPECT_EQ(hipStreamDestroy(good), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
}

TEST_F(HipApi, Occupancy) {
  hipFunction_t f = kernel("vadd");
  int blocks = 0, grid = 0, block = 0;
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0), hipSuccess);
  EXPECT_EQ(blocks, 8);  // 8 waves a SIMD, 4 SIMDs, 4 waves a block
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 20000), hipSuccess);
  EXPECT_EQ(blocks, 3);  // LDS
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 512, 0), hipSuccess);
  EXPECT_EQ(blocks, 0);  // the kernel was built for 256
  EXPECT_EQ(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 0), hipSuccess);
  EXPECT_EQ(block, 256);
  EXPECT_EQ(grid, 8 * 304);
  EXPECT_EQ(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, f, 256, 0), hipErrorInvalidValue);
  int value = 0;
  EXPECT_EQ(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f), hipSuccess);
  EXPECT_EQ(value, 256);
}

extern "C" hipError_t hipMallocArray();

TEST_F(HipApi, UnsupportedCallsSaySo) { EXPECT_EQ(hipMallocArray(), hipErrorNotSupported); }

}  // namespace
}  // namespace crest_sim::test
