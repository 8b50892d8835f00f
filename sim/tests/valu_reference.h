// Arithmetic of the references for vector operations, and the suites made of them.
#pragma once

#include <cmath>

#include "valu_support.h"

namespace crest_sim::test {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;
using wide = __float128;
using In = const u64*;

constexpr int kCases = 10240;

inline i64 sx(u64 x, int bits) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }
inline u64 sat(wide x, wide low, wide high) {
  return static_cast<u64>(static_cast<i64>(x < low ? low : x > high ? high : x));
}
inline u64 saturate_s32(i64 x) { return sat(x, INT32_MIN, INT32_MAX); }
inline u64 saturate_u32(i64 x) { return sat(x, 0, 4294967295.0); }
inline bool nan32(u64 x) { return std::isnan(f32(x)); }
inline bool snan32(u64 x) { return nan32(x) && !(x & 0x400000); }
inline bool nan16(u64 x) { return (x & 0x7fff) > 0x7c00; }
inline bool snan16(u64 x) { return nan16(x) && !(x & 0x200); }

/// IEEE-mode minNum/maxNum by cases.
inline u64 pick32(u64 a, u64 b, bool max) {
  if (snan32(a)) return a | 0x400000;
  if (snan32(b)) return b | 0x400000;
  if (nan32(a)) return b;
  if (nan32(b)) return a;
  if (f32(a) == 0 && f32(b) == 0) return max ? ((a >> 31) ? b : a) : ((a >> 31) ? a : b);
  return (f32(a) < f32(b)) != max ? a : b;
}
inline u64 pick16(u64 a, u64 b, bool max) {
  if (snan16(a)) return a | 0x200;
  if (snan16(b)) return b | 0x200;
  if (nan16(a)) return b;
  if (nan16(b)) return a;
  double x = half_value(a), y = half_value(b);
  if (x == 0 && y == 0) return max ? ((a >> 15) ? b : a) : ((a >> 15) ? a : b);
  return (x < y) != max ? a : b;
}
inline u64 median32(In s) {
  if (nan32(s[0]) || nan32(s[1]) || nan32(s[2])) return pick32(pick32(s[0], s[1], false), s[2], false);
  u64 top = pick32(pick32(s[0], s[1], true), s[2], true);
  if (top == s[0]) return pick32(s[1], s[2], true);
  if (top == s[1]) return pick32(s[0], s[2], true);
  return pick32(s[0], s[1], true);
}

struct Group {
  const char* name;
  void (*add)(ValuTester&);
};
struct Case {
  Group group;
  Arch arch;
  uint32_t lanes;
};

inline void run_group(const Case& c) {
  ValuTester tester(c.arch, c.lanes);
  c.group.add(tester);
  tester.run(kCases);
}

inline std::vector<Case> on_all_targets(std::initializer_list<Group> groups) {
  std::vector<Case> out;
  for (const Group& g : groups)
    for (auto [arch, lanes] : {std::pair{Arch::kGfx942, 64u},
                               {Arch::kGfx950, 64u},
                               {Arch::kGfx1100, 32u},
                               {Arch::kGfx1100, 64u},
                               {Arch::kGfx1151, 32u}})
      out.push_back({g, arch, lanes});
  return out;
}

inline std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return std::string(c.group.name) + "_" + std::string(target_info(c.arch).name) + "_w" + std::to_string(c.lanes);
}

}  // namespace crest_sim::test
