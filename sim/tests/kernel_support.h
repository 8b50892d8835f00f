// Runs compiled kernels: device, module and buffers for one architecture.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "crest_sim/check.h"
#include "crest_sim/device.h"

namespace crest_sim::test {

inline std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline float bf16_to_float(uint16_t x) { return std::bit_cast<float>(uint32_t(x) << 16); }
inline uint16_t float_to_bf16(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

/// "gfx942", "gfx1100-wave64": which build of the kernels to run.
struct KernelTarget {
  std::string name;
  Arch arch() const { return *parse_arch(name.substr(0, name.find('-'))); }
  bool wave64() const { return !name.starts_with("gfx1") || name.ends_with("-wave64"); }
};

class KernelTest : public ::testing::TestWithParam<KernelTarget> {
 protected:
  void SetUp() override {
    auto memory = Memory::create();
    ASSERT_TRUE(memory.ok()) << memory.error();
    memory_ = *memory;
    auto device = Device::create(GetParam().arch(), memory_);
    ASSERT_TRUE(device.ok()) << device.error();
    device_ = std::move(*device);
    config.threads = 1;
  }

  /// From now on kernels run with checks, and what these find is a failure.
  void check(const CheckOptions& options) {
    checker_ = std::make_unique<Checker>(options);
    config.observers = {checker_.get()};
  }

  void load(const std::string& family) {
    auto bytes = read_file(std::string(CREST_SIM_KERNEL_DIR) + "/" + family + "." + GetParam().name + ".co");
    ASSERT_FALSE(bytes.empty()) << family << " was not built for " << GetParam().name;
    auto module = device_->load(bytes);
    ASSERT_TRUE(module.ok()) << module.error();
    module_ = *module;
    for (uint32_t wave : {32u, 64u}) {
      bool used = false;
      for (const Kernel& k : module_->object().kernels()) used = used || k.wave_size == wave;
      if (used) EXPECT_TRUE(module_->object().code(wave).unknown.empty()) << module_->object().code(wave).unknown[0];
    }
  }

  /// A device allocation that is compared, filled and read as a vector.
  template <class T>
  T* upload(const std::vector<T>& values) {
    auto at = memory_->allocate(values.size() * sizeof(T));
    EXPECT_TRUE(at.ok());
    std::memcpy(reinterpret_cast<void*>(*at), values.data(), values.size() * sizeof(T));
    return reinterpret_cast<T*>(*at);
  }
  template <class T>
  std::vector<T> download(const T* from, size_t count) {
    return std::vector<T>(from, from + count);
  }

  void launch(const char* kernel, Dim3 grid, Dim3 block, const Arguments& arguments) {
    config.grid = grid;
    config.block = block;
    result = device_->launch(*module_, kernel, config, arguments.bytes());
    ASSERT_TRUE(result.ok) << result.fault.to_string();
    if (!checker_) return;
    for (const CheckReport& r : checker_->take_reports()) ADD_FAILURE() << r.to_string();
  }

  float uniform() { return std::uniform_real_distribution<float>(-1, 1)(random); }
  std::vector<uint16_t> random_bf16(size_t count, float scale = 1) {
    std::vector<uint16_t> v(count);
    for (auto& x : v) x = float_to_bf16(uniform() * scale);
    return v;
  }

  std::shared_ptr<Memory> memory_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<Module> module_;
  std::unique_ptr<Checker> checker_;
  LaunchConfig config;
  LaunchResult result;
  std::mt19937 random{1};
};

inline std::string target_name(const ::testing::TestParamInfo<KernelTarget>& info) {
  std::string s = info.param.name;
  for (char& c : s)
    if (c == '-') c = '_';
  return s;
}

inline const KernelTarget kAllTargets[] = {{"gfx942"}, {"gfx950"}, {"gfx1100"}, {"gfx1151"}};
inline const KernelTarget kAllTargetsAndWave64[] = {
    {"gfx942"}, {"gfx950"}, {"gfx1100"}, {"gfx1151"}, {"gfx1100-wave64"}};

}  // namespace crest_sim::test
