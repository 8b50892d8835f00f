// Scalar floating point of gfx1151 against references in higher precision.
#include <algorithm>

#include "register_check.h"

namespace crest_sim::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

/// Sources s0 and s1 (and the old s2), result s2 or SCC.
struct ScalarOp {
  std::string line;
  std::function<u64(u32 a, u32 b, u32 old)> reference;
  enum Kind { kSingle, kHalf, kExact, kCondition } kind;
};

double h(u32 x) { return half_value(x & 0xffff); }
u64 to_half(double x) {
  if (std::isnan(x)) return 0x7e00;
  if (std::isinf(x)) return x < 0 ? 0xfc00 : 0x7c00;
  if (x == 0) return std::signbit(x) ? 0x8000 : 0;
  return nearest_half(x);
}
/// Towards zero: the nearest value, or the next one below it in magnitude.
u64 to_half_down(double x) {
  if (std::isnan(x)) return 0x7e00;
  if (std::isinf(x)) return x < 0 ? 0xfc00 : 0x7c00;
  u64 r = std::fabs(x) >= 65504 ? 0x7bff : to_half(std::fabs(x));
  if (half_value(r) > std::fabs(x)) --r;
  return r | (std::signbit(x) ? 0x8000 : 0);
}

u64 pick(u32 a, u32 b, bool max, bool half) {
  double x = half ? h(a) : double(f32(a)), y = half ? h(b) : double(f32(b));
  u32 mask = half ? 0xffff : ~0u, quiet = half ? 0x200 : 0x400000;
  a &= mask, b &= mask;
  if (std::isnan(x) && !(a & quiet)) return a | quiet;
  if (std::isnan(y) && !(b & quiet)) return b | quiet;
  if (std::isnan(x)) return b;
  if (std::isnan(y)) return a;
  if (x == 0 && y == 0) return max ? a & b : a | b;
  return (x < y) == max ? b : a;
}

std::vector<ScalarOp> all_operations() {
  using K = ScalarOp;
  std::vector<ScalarOp> ops;
  auto binary = [&](const std::string& name, auto single, auto half) {
    ops.push_back(
        {name + "_f32 s2, s0, s1", [=](u32 a, u32 b, u32) { return bits(float(single(f32(a), f32(b)))); }, K::kSingle});
    ops.push_back({name + "_f16 s2, s0, s1", [=](u32 a, u32 b, u32) { return to_half(half(h(a), h(b))); }, K::kHalf});
  };
  binary("s_add", [](float a, float b) { return a + b; }, [](double a, double b) { return a + b; });
  binary("s_sub", [](float a, float b) { return a - b; }, [](double a, double b) { return a - b; });
  binary("s_mul", [](float a, float b) { return a * b; }, [](double a, double b) { return a * b; });
  for (bool max : {false, true})
    for (bool half : {false, true})
      ops.push_back({fmt::format("s_{}_f{} s2, s0, s1", max ? "max" : "min", half ? 16 : 32),
                     [=](u32 a, u32 b, u32) { return pick(a, b, max, half); }, half ? K::kHalf : K::kSingle});
  ops.push_back({"s_fmac_f32 s2, s0, s1", [](u32 a, u32 b, u32 c) { return bits(std::fma(f32(a), f32(b), f32(c))); },
                 K::kSingle});
  ops.push_back({"s_fmaak_f32 s2, s0, s1, 0x40490fdb",
                 [](u32 a, u32 b, u32) { return bits(std::fma(f32(a), f32(b), f32(0x40490fdb))); }, K::kSingle});
  ops.push_back({"s_fmamk_f32 s2, s0, 0x40490fdb, s1",
                 [](u32 a, u32 b, u32) { return bits(std::fma(f32(a), f32(0x40490fdb), f32(b))); }, K::kSingle});
  ops.push_back({"s_fmac_f16 s2, s0, s1",
                 [](u32 a, u32 b, u32 c) {
                   double p = h(a) * h(b), s = p + h(c);
                   if (!std::isfinite(s) || s == 0) return to_half(s);
                   return nearest_half(__float128(p) + h(c));
                 },
                 K::kHalf});
  ops.push_back({"s_cvt_f32_i32 s2, s0", [](u32 a, u32, u32) { return bits(float(double(int32_t(a)))); }, K::kSingle});
  ops.push_back({"s_cvt_f32_u32 s2, s0", [](u32 a, u32, u32) { return bits(float(double(a))); }, K::kSingle});
  ops.push_back({"s_cvt_i32_f32 s2, s0",
                 [](u32 a, u32, u32) -> u64 {
                   double x = std::trunc(double(f32(a)));
                   return std::isnan(x) ? 0 : u32(int64_t(std::clamp(x, -2147483648.0, 2147483647.0)));
                 },
                 K::kExact});
  ops.push_back({"s_cvt_u32_f32 s2, s0",
                 [](u32 a, u32, u32) -> u64 {
                   double x = std::trunc(double(f32(a)));
                   return std::isnan(x) ? 0 : u32(int64_t(std::clamp(x, 0.0, 4294967295.0)));
                 },
                 K::kExact});
  ops.push_back({"s_cvt_f16_f32 s2, s0", [](u32 a, u32, u32) { return to_half(double(f32(a))); }, K::kHalf});
  ops.push_back({"s_cvt_f32_f16 s2, s0", [](u32 a, u32, u32) { return bits(float(h(a))); }, K::kSingle});
  ops.push_back({"s_cvt_hi_f32_f16 s2, s0", [](u32 a, u32, u32) { return bits(float(h(a >> 16))); }, K::kSingle});
  ops.push_back({"s_cvt_pk_rtz_f16_f32 s2, s0, s1",
                 [](u32 a, u32 b, u32) { return to_half_down(double(f32(a))) | to_half_down(double(f32(b))) << 16; },
                 K::kHalf});
  auto rounding = [&](const std::string& name, double (*f)(double)) {
    ops.push_back({name + "_f32 s2, s0", [=](u32 a, u32, u32) { return bits(float(f(double(f32(a))))); }, K::kSingle});
    ops.push_back({name + "_f16 s2, s0", [=](u32 a, u32, u32) { return to_half(f(h(a))); }, K::kHalf});
  };
  rounding("s_floor", std::floor);
  rounding("s_ceil", std::ceil);
  rounding("s_trunc", std::trunc);
  rounding("s_rndne", std::nearbyint);
  auto compare = [&](const std::string& name, bool (*f)(double, double)) {
    ops.push_back({"s_cmp_" + name + "_f32 s0, s1",
                   [=](u32 a, u32 b, u32) { return u64(f(double(f32(a)), double(f32(b)))); }, K::kCondition});
    ops.push_back(
        {"s_cmp_" + name + "_f16 s0, s1", [=](u32 a, u32 b, u32) { return u64(f(h(a), h(b))); }, K::kCondition});
  };
  compare("lt", [](double a, double b) { return std::isless(a, b); });
  compare("le", [](double a, double b) { return std::islessequal(a, b); });
  compare("gt", [](double a, double b) { return std::isgreater(a, b); });
  compare("ge", [](double a, double b) { return std::isgreaterequal(a, b); });
  compare("eq", [](double a, double b) { return a == b; });
  compare("lg", [](double a, double b) { return std::islessgreater(a, b); });
  compare("o", [](double a, double b) { return !std::isunordered(a, b); });
  compare("u", [](double a, double b) { return std::isunordered(a, b); });
  compare("nlt", [](double a, double b) { return !std::isless(a, b); });
  compare("nle", [](double a, double b) { return !std::islessequal(a, b); });
  compare("ngt", [](double a, double b) { return !std::isgreater(a, b); });
  compare("nge", [](double a, double b) { return !std::isgreaterequal(a, b); });
  compare("neq", [](double a, double b) { return a != b; });
  compare("nlg", [](double a, double b) { return !std::islessgreater(a, b); });
  return ops;
}

TEST(ScalarFloat, MatchesReference) {
  const TargetInfo& target = target_info(Arch::kGfx1151);
  auto ops = all_operations();
  std::vector<std::string> lines;
  for (const ScalarOp& op : ops) lines.push_back(op.line);
  auto assembled = assemble("gfx1151", 32, lines);
  std::mt19937_64 random(9);
  Machine m(Arch::kGfx1151, 32);
  for (size_t k = 0; k < ops.size(); ++k) {
    ASSERT_FALSE(assembled[k].bytes.empty()) << lines[k];
    Decoded d = decode_one(target, 32, assembled[k].bytes);
    ASSERT_TRUE(d.ok) << lines[k] << ": " << d.problem;
    for (int n = 0; n < 10240; ++n) {
      u32 a = random_word(random), b = n % 8 ? random_word(random) : a, old = random_word(random);
      m.wave.s[0] = a, m.wave.s[1] = b, m.wave.s[2] = old, m.wave.s[cell::kScc] = u32(n & 1);
      m.run(d);
      u32 got = ops[k].kind == ScalarOp::kCondition ? m.wave.s[cell::kScc] : m.wave.s[2],
          want = u32(ops[k].reference(a, b, old));
      Same rule = ops[k].kind == ScalarOp::kSingle ? Same::kFloat
                  : ops[k].kind == ScalarOp::kHalf ? Same::kHalfPair
                                                   : Same::kExact;
      ASSERT_TRUE(is_same(got, want, rule))
          << lines[k] << std::hex << " of " << a << ", " << b << ", " << old << ": " << got << " for " << want;
      if (ops[k].kind == ScalarOp::kCondition) {
        ASSERT_EQ(m.wave.s[2], old) << lines[k];
      }
    }
  }
}

}  // namespace
}  // namespace crest_sim::test
