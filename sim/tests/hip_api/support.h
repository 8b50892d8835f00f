// The HIP calls in-process: devices gfx942 and gfx1100, the objects built for the kernel tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "crest_sim/hip/hip_runtime_api.h"

namespace crest_sim::test {

inline std::vector<char> object(const std::string& name) {
  std::ifstream in(std::string(CREST_SIM_KERNEL_DIR) + "/" + name + ".co", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Each test starts and ends with a fresh device.
class HipApi : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(hipSetDevice(0), hipSuccess);
    ASSERT_EQ(hipDeviceReset(), hipSuccess);
    static_cast<void>(hipGetLastError());
    image_ = object("basic.gfx942");
    launch_image_ = object("launch.gfx942");
    ASSERT_FALSE(image_.empty());
    ASSERT_FALSE(launch_image_.empty());
  }
  void TearDown() override {
    static_cast<void>(hipSetDevice(0));
    EXPECT_EQ(hipDeviceReset(), hipSuccess);
  }

  hipFunction_t kernel(const char* name) {
    hipModule_t module = nullptr;
    hipFunction_t f = nullptr;
    for (const auto* image : {&image_, &launch_image_}) {
      if (hipModuleLoadData(&module, image->data()) != hipSuccess) continue;
      if (hipModuleGetFunction(&f, module, name) == hipSuccess) break;
    }
    static_cast<void>(hipGetLastError());
    EXPECT_NE(f, nullptr) << name;
    return f;
  }

  template <class T>
  T* device(size_t count) {
    void* p = nullptr;
    EXPECT_EQ(hipMalloc(&p, count * sizeof(T)), hipSuccess);
    return static_cast<T*>(p);
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    T* p = device<T>(values.size());
    EXPECT_EQ(hipMemcpy(p, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice), hipSuccess);
    return p;
  }
  template <class T>
  std::vector<T> download(const T* p, size_t count) {
    std::vector<T> out(count);
    EXPECT_EQ(hipMemcpy(out.data(), p, count * sizeof(T), hipMemcpyDeviceToHost), hipSuccess);
    return out;
  }
  /// copy_offset: out[i] = in[i + offset] for 64 lanes; offsets beyond the buffer are faults.
  hipError_t copy_offset(hipFunction_t f, uint32_t* in, uint32_t* out, int offset, hipStream_t stream = nullptr) {
    void* arguments[] = {&in, &out, &offset};
    return hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, stream, arguments, nullptr);
  }

  std::vector<char> image_, launch_image_;
};

}  // namespace crest_sim::test
