#include "core/cpu_features.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "core/env.h"

namespace crest::core {
namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

uint64_t enabled_states() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool bit(uint32_t word, int index) { return (word >> index & 1) != 0; }

// Linux hands out the tile registers only on request.
bool request_amx() {
  constexpr int kArchReqXcompPerm = 0x1023, kXfeatureXtiledata = 18;
  return ::syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

std::string processor_name() {
  char name[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002 + i, 0);
    std::memcpy(name + 16 * i, &r, 16);
  }
  return name;
}

CpuFeatures detect() {
  CpuFeatures f;
  f.model_name = processor_name();
  const Registers one = cpuid(1, 0), seven = cpuid(7, 0), seven_one = cpuid(7, 1);
  const bool osxsave = bit(one.c, 27);
  const uint64_t states = osxsave ? enabled_states() : 0;
  const bool ymm = (states & 0x6) == 0x6, zmm = (states & 0xe6) == 0xe6, tiles = (states & 0x60000) == 0x60000;
  f.avx2 = ymm && bit(seven.b, 5) && bit(one.c, 12) && bit(one.c, 29) && bit(seven.b, 8);
  f.avx_vnni = f.avx2 && bit(seven_one.a, 4);
  f.avx512 = f.avx2 && zmm && bit(seven.b, 16) && bit(seven.b, 30) && bit(seven.b, 31) && bit(seven.b, 17);
  f.avx512_vnni = f.avx512 && bit(seven.c, 11);
  f.avx512_bf16 = f.avx512 && bit(seven_one.a, 5);
  if (f.avx512 && tiles && bit(seven.d, 24) && request_amx()) {
    f.amx_int8 = bit(seven.d, 25);
    f.amx_bf16 = bit(seven.d, 22);
  }
  return f;
}

struct Override {
  CpuFeatures features;
  Status status;
};

Override apply_override() {
  Override result{detected_cpu_features(), {}};
  const auto wanted = env("CREST_CPU");
  if (!wanted) return result;
  CpuFeatures f;
  f.model_name = result.features.model_name;
  const CpuFeatures& have = detected_cpu_features();
  bool possible = true, known = true;
  if (*wanted == "generic") {
  } else if (*wanted == "avx2") {
    possible = f.avx2 = have.avx2;
  } else if (*wanted == "avx_vnni") {
    f.avx2 = have.avx2;
    possible = f.avx_vnni = have.avx_vnni;
  } else if (*wanted == "avx512") {
    f.avx2 = have.avx2;
    possible = f.avx512 = have.avx512;
  } else if (*wanted == "avx512_vnni") {
    f = have;
    f.amx_int8 = f.amx_bf16 = false;
    possible = have.avx512_vnni;
  } else {
    known = false;
  }
  if (!known) {
    result.status = make_error(ErrorCode::kInvalidArgument,
                               "CREST_CPU is '{}'; allowed are generic, avx2, avx_vnni, avx512, avx512_vnni", *wanted);
  } else if (!possible) {
    result.status = make_error(ErrorCode::kUnsupported, "CREST_CPU is '{}', which this processor ({}) does not have",
                               *wanted, f.model_name);
  } else {
    result.features = f;
  }
  return result;
}

const Override& override_state() {
  static const Override state = apply_override();
  return state;
}

}  // namespace

const CpuFeatures& detected_cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

const CpuFeatures& cpu_features() { return override_state().features; }
Status cpu_override_status() { return override_state().status; }

std::vector<std::string> feature_names(const CpuFeatures& f) {
  std::vector<std::string> names;
  if (f.avx2) names.emplace_back("avx2");
  if (f.avx_vnni) names.emplace_back("avx_vnni");
  if (f.avx512) names.emplace_back("avx512");
  if (f.avx512_vnni) names.emplace_back("avx512_vnni");
  if (f.avx512_bf16) names.emplace_back("avx512_bf16");
  if (f.amx_int8) names.emplace_back("amx_int8");
  if (f.amx_bf16) names.emplace_back("amx_bf16");
  return names;
}

}  // namespace crest::core
