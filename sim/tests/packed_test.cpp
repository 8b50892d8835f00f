// Packed 16- and 32-bit operations and integer dot products with random op_sel, neg and clamp.
#include <algorithm>

#include "register_check.h"

namespace crest_sim::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;
using wide = __float128;

i64 sx(u64 x, int bits) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }

/// op_sel, op_sel_hi, neg_lo and neg_hi of three sources, one bit each.
struct Modifiers {
  int select_low = 0, select_high = 7, negate_low = 0, negate_high = 0;
  bool clamp = false;

  static Modifiers random(std::mt19937_64& r, bool negations, bool clamps) {
    Modifiers m;
    m.select_low = int(r() & 7), m.select_high = int(r() & 7);
    if (negations) m.negate_low = int(r() & 7), m.negate_high = int(r() & 7);
    m.clamp = clamps && r() % 2;
    return m;
  }
  std::string text(int sources) const {
    auto list = [&](const char* name, int bits) {
      std::string s = fmt::format(" {}:[{}", name, bits & 1);
      for (int k = 1; k < sources; ++k) s += fmt::format(",{}", bits >> k & 1);
      return s + "]";
    };
    std::string s = list("op_sel", select_low) + list("op_sel_hi", select_high);
    if (negate_low || negate_high) s += list("neg_lo", negate_low) + list("neg_hi", negate_high);
    return s + (clamp ? " clamp" : "");
  }
};

class Packed : public ::testing::TestWithParam<MachineKind> {
 protected:
  RegisterCheck check_{GetParam().arch, GetParam().lanes};
};

using HalfOp = std::function<u64(const u64* x, bool clamp)>;

/// Sources in v1 …, result in v8.
void add_packed_16(RegisterCheck& c, const std::string& name, int sources, bool is_float, bool clamps, const HalfOp& op,
                   bool accumulates = false) {
  for (int form = 0; form < 12; ++form) {
    Modifiers m = form == 0 ? Modifiers{} : Modifiers::random(c.random, is_float, clamps);
    std::string operands = "v8, v1, v2";
    if (sources == 3) operands += ", v3";
    std::string text = name + " " + operands + (accumulates ? "" : m.text(sources));
    if (accumulates) m = Modifiers{};
    c.add({text,
           [=](const Before& b, u32 lane, const Put& put) {
             u32 result = 0;
             for (int half = 0; half < 2; ++half) {
               u64 x[3] = {};
               for (int k = 0; k < sources + (accumulates ? 1 : 0); ++k) {
                 u32 word = b.v(k == 2 && accumulates ? 8 : 1 + k, lane);
                 bool high = k == 2 && accumulates ? half : (half ? m.select_high : m.select_low) >> k & 1;
                 x[k] = high ? word >> 16 : word & 0xffff;
                 if ((half ? m.negate_high : m.negate_low) >> k & 1) x[k] ^= 0x8000;
               }
               result |= u32(op(x, m.clamp) & 0xffff) << 16 * half;
             }
             put(8, result);
           },
           is_float ? Same::kHalfPair : Same::kExact});
  }
}

u64 clamp_half(u64 x, bool clamp) {
  if (!clamp) return x;
  double v = half_value(x);
  return std::isnan(v) ? 0 : v < 0 || x == 0x8000 ? 0 : v > 1 ? 0x3c00 : x;
}

u64 pick_half(u64 a, u64 b, bool max) {
  auto quiet = [](u64 x) { return half_nan(u32(x)) && !(x & 0x200); };
  if (quiet(a)) return a | 0x200;
  if (quiet(b)) return b | 0x200;
  if (half_nan(u32(a))) return b;
  if (half_nan(u32(b))) return a;
  double x = half_value(a), y = half_value(b);
  if (x == 0 && y == 0) return max ? a & b : a | b;
  return (x < y) == max ? b : a;
}

u64 saturate(i64 x, i64 low, i64 high, bool clamp) { return u64(clamp ? std::clamp(x, low, high) : x); }

/// Result of f16 arithmetic; infinities and NaNs by the host's rules.
u64 half_result(wide exact, double approximate) {
  if (std::isnan(approximate)) return 0x7e00;
  if (std::isinf(approximate)) return approximate < 0 ? 0xfc00 : 0x7c00;
  return nearest_half(exact);
}

TEST_P(Packed, Half) {
  auto v = [](u64 x) { return half_value(x); };
  auto sum = [=](u64 a, u64 b) -> u64 {
    double x = v(a) + v(b);
    if (x == 0) return v(a) == 0 && v(b) == 0 && (a & b & 0x8000) ? 0x8000 : 0;
    return half_result(wide(v(a)) + wide(v(b)), x);
  };
  auto product = [=](u64 a, u64 b) -> u64 {
    double x = v(a) * v(b);
    if (x == 0) return (a ^ b) & 0x8000;
    return half_result(wide(x), x);
  };
  auto fused = [=](u64 a, u64 b, u64 c) -> u64 {
    double p = v(a) * v(b), x = p + v(c);
    wide exact = std::isfinite(x) ? wide(p) + wide(v(c)) : 0;
    if (std::isfinite(x) && exact == 0) return std::signbit(p) && std::signbit(v(c)) ? 0x8000 : 0;
    return half_result(exact, x);
  };
  add_packed_16(check_, "v_pk_add_f16", 2, true, true,
                [=](const u64* x, bool k) { return clamp_half(sum(x[0], x[1]), k); });
  add_packed_16(check_, "v_pk_mul_f16", 2, true, true,
                [=](const u64* x, bool k) { return clamp_half(product(x[0], x[1]), k); });
  add_packed_16(check_, "v_pk_fma_f16", 3, true, true,
                [=](const u64* x, bool k) { return clamp_half(fused(x[0], x[1], x[2]), k); });
  add_packed_16(check_, "v_pk_max_f16", 2, true, true,
                [=](const u64* x, bool k) { return clamp_half(pick_half(x[0], x[1], true), k); });
  add_packed_16(check_, "v_pk_min_f16", 2, true, true,
                [=](const u64* x, bool k) { return clamp_half(pick_half(x[0], x[1], false), k); });
  EXPECT_EQ(check_.run(random_word), 60);
  add_packed_16(
      check_, "v_pk_fmac_f16", 2, true, false, [=](const u64* x, bool) { return fused(x[0], x[1], x[2]); }, true);
  check_.run(random_word, true);
}

TEST_P(Packed, Short) {
  auto add = [&](const char* name, int sources, bool clamps, auto op) {
    add_packed_16(check_, name, sources, false, clamps, op);
  };
  auto s = [](u64 x) { return sx(x, 16); };
  add("v_pk_add_u16", 2, true, [](const u64* x, bool k) { return saturate(i64(x[0] + x[1]), 0, 65535, k); });
  add("v_pk_sub_u16", 2, true, [](const u64* x, bool k) { return saturate(i64(x[0]) - i64(x[1]), 0, 65535, k); });
  add("v_pk_add_i16", 2, true, [=](const u64* x, bool k) { return saturate(s(x[0]) + s(x[1]), -32768, 32767, k); });
  add("v_pk_sub_i16", 2, true, [=](const u64* x, bool k) { return saturate(s(x[0]) - s(x[1]), -32768, 32767, k); });
  add("v_pk_mul_lo_u16", 2, false, [](const u64* x, bool) { return x[0] * x[1]; });
  add("v_pk_mad_u16", 3, true, [](const u64* x, bool k) { return saturate(i64(x[0] * x[1] + x[2]), 0, 65535, k); });
  add("v_pk_mad_i16", 3, true,
      [=](const u64* x, bool k) { return saturate(s(x[0]) * s(x[1]) + s(x[2]), -32768, 32767, k); });
  add("v_pk_lshlrev_b16", 2, false, [](const u64* x, bool) { return x[1] << (x[0] & 15); });
  add("v_pk_lshrrev_b16", 2, false, [](const u64* x, bool) { return x[1] >> (x[0] & 15); });
  add("v_pk_ashrrev_i16", 2, false, [=](const u64* x, bool) { return u64(s(x[1]) >> (x[0] & 15)); });
  add("v_pk_min_u16", 2, false, [](const u64* x, bool) { return std::min(x[0], x[1]); });
  add("v_pk_max_u16", 2, false, [](const u64* x, bool) { return std::max(x[0], x[1]); });
  add("v_pk_min_i16", 2, false, [=](const u64* x, bool) { return u64(std::min(s(x[0]), s(x[1]))); });
  add("v_pk_max_i16", 2, false, [=](const u64* x, bool) { return u64(std::max(s(x[0]), s(x[1]))); });
  EXPECT_EQ(check_.run(random_word), 14 * 12);
}

/// CDNA: two f32 in a register pair.
TEST_P(Packed, Single) {
  if (!check_.cdna()) GTEST_SKIP() << "not on this architecture";
  auto clamp = [](float x, bool on) { return !on ? x : std::isnan(x) || x <= 0 ? 0.0f : std::min(x, 1.0f); };
  auto add = [&](const char* name, int sources, auto op) {
    for (int form = 0; form < 12; ++form) {
      Modifiers m = form == 0 ? Modifiers{} : Modifiers::random(check_.random, true, true);
      std::string text =
          std::string(name) + " v[8:9], v[2:3], v[4:5]" + (sources == 3 ? ", v[6:7]" : "") + m.text(sources);
      check_.add({text,
                  [=](const Before& b, u32 lane, const Put& put) {
                    for (int half = 0; half < 2; ++half) {
                      float x[3] = {};
                      for (int k = 0; k < sources; ++k) {
                        u32 word = b.v(2 + 2 * k + ((half ? m.select_high : m.select_low) >> k & 1), lane);
                        if ((half ? m.negate_high : m.negate_low) >> k & 1) word ^= 0x80000000;
                        x[k] = f32(word);
                      }
                      put(8 + half, u32(bits(clamp(op(x), m.clamp))));
                    }
                  },
                  Same::kFloat});
    }
  };
  add("v_pk_add_f32", 2, [](const float* x) { return x[0] + x[1]; });
  add("v_pk_mul_f32", 2, [](const float* x) { return x[0] * x[1]; });
  add("v_pk_fma_f32", 3, [](const float* x) { return std::fma(x[0], x[1], x[2]); });
  for (int pick = 0; pick < 4; ++pick)
    check_.add({fmt::format("v_pk_mov_b32 v[8:9], v[2:3], v[4:5] op_sel:[{},{}]", pick & 1, pick >> 1),
                [=](const Before& b, u32 lane, const Put& put) {
                  put(8, b.v(2 + (pick & 1), lane));
                  put(9, b.v(4 + (pick >> 1), lane));
                },
                Same::kExact, 4096});
  EXPECT_EQ(check_.run(random_word), 40);
}

/// Σ of the parts of S0 and S1, plus S2.
void add_dot(RegisterCheck& c, const std::string& name, int width, bool signed_a, bool signed_b, bool accumulates,
             bool iu) {
  for (int form = 0; form < 12; ++form) {
    bool sa = signed_a, sb = signed_b, clamp = !accumulates && c.random() % 2;
    std::string text = name + (accumulates ? " v8, v1, v2" : " v8, v1, v2, v3");
    if (iu) {
      sa = c.random() & 1, sb = c.random() & 1;
      text += fmt::format(" neg_lo:[{},{},0]", int(sa), int(sb));
    }
    if (clamp) text += " clamp";
    bool is_signed = iu || signed_a;
    c.add({text, [=](const Before& b, u32 lane, const Put& put) {
             u32 x = b.v(1, lane), y = b.v(2, lane), z = b.v(accumulates ? 8 : 3, lane);
             wide sum = is_signed ? wide(sx(z, 32)) : wide(z);
             for (int at = 0; at < 32; at += width) {
               u64 p = (x >> at) & ((u64(1) << width) - 1), q = (y >> at) & ((u64(1) << width) - 1);
               sum += wide(sa ? sx(p, width) : i64(p)) * wide(sb ? sx(q, width) : i64(q));
             }
             i64 total = i64(sum);
             if (clamp)
               total = is_signed ? std::clamp<i64>(total, INT32_MIN, INT32_MAX) : std::clamp<i64>(total, 0, UINT32_MAX);
             put(8, u32(total));
           }});
  }
}

TEST_P(Packed, IntegerDots) {
  if (check_.cdna()) {
    add_dot(check_, "v_dot2_i32_i16", 16, true, true, false, false);
    add_dot(check_, "v_dot2_u32_u16", 16, false, false, false, false);
    add_dot(check_, "v_dot4_i32_i8", 8, true, true, false, false);
    add_dot(check_, "v_dot8_i32_i4", 4, true, true, false, false);
    add_dot(check_, "v_dot2c_i32_i16", 16, true, true, true, false);
    add_dot(check_, "v_dot4c_i32_i8", 8, true, true, true, false);
    add_dot(check_, "v_dot8c_i32_i4", 4, true, true, true, false);
  } else {
    add_dot(check_, "v_dot4_i32_iu8", 8, true, true, false, true);
    add_dot(check_, "v_dot8_i32_iu4", 4, true, true, false, true);
  }
  add_dot(check_, "v_dot4_u32_u8", 8, false, false, false, false);
  add_dot(check_, "v_dot8_u32_u4", 4, false, false, false, false);
  EXPECT_EQ(check_.run(random_word), (check_.cdna() ? 9 : 4) * 12);
}

INSTANTIATE_TEST_SUITE_P(Machines, Packed, ::testing::ValuesIn(kMachines), machine_name);

}  // namespace
}  // namespace crest_sim::test
