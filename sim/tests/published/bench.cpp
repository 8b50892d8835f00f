#include "bench.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace crest_sim::published {

float bf16_to_float(uint16_t x) { return std::bit_cast<float>(uint32_t(x) << 16); }
uint16_t float_to_bf16(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

float fp8_to_float(uint8_t x) {
  if (x == 0x80) return std::nanf("");
  int exponent = (x >> 3) & 15, fraction = x & 7;
  float magnitude = exponent ? std::ldexp(1.0f + float(fraction) / 8, exponent - 8) : std::ldexp(float(fraction), -10);
  return x & 0x80 ? -magnitude : magnitude;
}

uint8_t float_to_fp8(float x) {
  float magnitude = std::fabs(x);
  uint8_t best = 0;
  if (magnitude >= 240) {
    best = 0x7f;
  } else {
    int low = 0, high = 0x7f;  // the codes are in order of value
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (fp8_to_float(uint8_t(middle)) <= magnitude ? low : high) = middle;
    }
    float below = magnitude - fp8_to_float(uint8_t(low)), above = fp8_to_float(uint8_t(high)) - magnitude;
    best = uint8_t(below < above || (below == above && low % 2 == 0) ? low : high);
  }
  return best == 0 ? 0 : uint8_t(best | (x < 0 ? 0x80 : 0));
}

void Comparison::add(size_t index, double got, double want, double allowed) {
  double difference = std::fabs(got - want);
  if (!(difference <= 1e300)) difference = INFINITY;  // NaN: never written
  error = std::max(error, difference);
  if (difference / allowed <= share) return;
  share = difference / allowed;
  worst = index;
}

Bench::Bench(std::string directory, std::function<void(const Line&)> report)
    : directory_(std::move(directory)), report_(std::move(report)) {
  auto memory = Memory::create();
  if (memory.ok()) memory_ = *memory;
  auto device =
      memory.ok() ? Device::create(Arch::kGfx942, memory_) : Result<std::unique_ptr<Device>>{Error{memory.error()}};
  if (!device.ok()) {
    fmt::print(stderr, "{}\n", device.error());
    std::exit(2);
  }
  device_ = std::move(*device);
  if (const char* names = std::getenv("CREST_SIM_CHECK")) {
    auto checks = CheckOptions::parse(names);
    if (!checks.ok()) {
      fmt::print(stderr, "CREST_SIM_CHECK: {}\n", checks.error());
      std::exit(2);
    }
    checker_ = std::make_unique<Checker>(*checks);
  }
}

void* Bench::place(const void* data, size_t bytes) {
  auto at = memory_->allocate(bytes);
  if (!at.ok()) {
    fmt::print(stderr, "{}\n", at.error());
    std::exit(2);
  }
  buffers_.push_back(*at);
  void* to = reinterpret_cast<void*>(*at);
  std::memcpy(to, data, bytes);
  return to;
}

std::vector<uint16_t> Bench::normal_bf16(size_t count, float scale) {
  std::vector<uint16_t> v(count);
  for (auto& x : v) x = float_to_bf16(normal() * scale);
  return v;
}
std::vector<uint8_t> Bench::normal_fp8(size_t count, float scale) {
  std::vector<uint8_t> v(count);
  for (auto& x : v) x = float_to_fp8(normal() * scale);
  return v;
}

void Bench::run(const std::string& object, const std::string& shape, Dim3 grid, Dim3 block, const Slots& arguments,
                const std::function<Comparison()>& judge) {
  Line line;
  line.object = object.substr(object.find_last_of('/') + 1);
  line.shape = shape;
  std::ifstream in(directory_ + "/" + object, std::ios::binary);
  std::vector<uint8_t> file{std::istreambuf_iterator<char>(in), {}};
  auto module = device_->load(file);
  if (file.empty()) {
    line.problem = "cannot read the file";
  } else if (!module.ok()) {
    line.problem = module.error();
  } else if ((*module)->object().kernels().size() != 1) {
    line.problem = fmt::format("{} kernels in the object, expected one", (*module)->object().kernels().size());
  } else {
    LaunchConfig config;
    config.grid = grid;
    config.block = block;
    config.max_wave_instructions = 400'000'000;
    if (checker_) config.observers = {checker_.get()};
    LaunchResult result = device_->launch(**module, (*module)->object().kernels()[0].name, config, arguments.bytes());
    line.instructions = result.wave_instructions;
    line.seconds = result.seconds;
    if (checker_)
      for (const CheckReport& r : checker_->take_reports()) line.findings.push_back(r.to_string());
    if (!result.ok) {
      line.problem = result.fault.to_string();
    } else {
      Comparison c = judge();
      line.error = c.error;
      line.share = c.share;
      if (!(c.share <= 1)) line.problem = fmt::format("element {} is {:.3g} times its allowance off", c.worst, c.share);
    }
  }
  report_(line);
  for (uint64_t b : buffers_) static_cast<void>(memory_->free(b));
  buffers_.clear();
}

}  // namespace crest_sim::published
