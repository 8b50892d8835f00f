// Lane swaps, relative moves, mixed-precision multiply-add, 64-bit multiply-add, division and argument reduction in
// f64, sums of absolute differences, cube coordinates, parameter interpolation.
#include <algorithm>
#include <array>

#include "register_check.h"

namespace crest_sim::test {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;

class SpecialValu : public ::testing::TestWithParam<MachineKind> {
 protected:
  RegisterCheck check_{GetParam().arch, GetParam().lanes};
  bool cdna() const { return check_.cdna(); }
  std::string mask() const { return GetParam().lanes == 64 ? "vcc" : "vcc_lo"; }
};

TEST_P(SpecialValu, LaneSwaps) {
  if (GetParam().arch != Arch::kGfx950) GTEST_SKIP() << "gfx950 only";
  // Rows of 16: odd rows of the first register change places with even rows of the second; halves of 32 likewise.
  for (u32 width : {16u, 32u})
    check_.add({fmt::format("v_permlane{}_swap_b32 v1, v2", width),
                [=](const Before& b, u32 lane, const Put& put) {
                  bool odd = lane / width % 2;
                  u32 partner = odd ? lane - width : lane + width;
                  if (!(b.exec >> partner & 1)) return;
                  if (odd)
                    put(1, b.v(2, partner));
                  else
                    put(2, b.v(1, partner));
                },
                Same::kExact, 10240});
  EXPECT_EQ(check_.run(random_word), 2);
}

TEST_P(SpecialValu, Swaps) {
  check_.add({"v_swap_b32 v1, v2",
              [](const Before& b, u32 lane, const Put& put) {
                put(1, b.v(2, lane));
                put(2, b.v(1, lane));
              },
              Same::kExact, 10240});
  EXPECT_EQ(check_.run(random_word), 1);
  if (cdna()) return;
  check_.add({"v_swap_b16 v1.l, v2.h",
              [](const Before& b, u32 lane, const Put& put) {
                u32 x = b.v(1, lane), y = b.v(2, lane);
                put(1, (x & 0xffff0000) | y >> 16);
                put(2, (y & 0xffff) | x << 16);
              },
              Same::kExact, 10240});
  // Inactive lanes are read too; in wave32 nothing happens.
  check_.add({"v_permlane64_b32 v1, v2",
              [](const Before& b, u32 lane, const Put& put) {
                if (b.lanes == 64) put(1, b.v(2, lane ^ 32));
              },
              Same::kExact, 10240});
  EXPECT_EQ(check_.run(random_word), 2);
}

TEST_P(SpecialValu, RelativeMoves) {
  if (cdna()) GTEST_SKIP() << "gfx9 indexes registers with s_set_gpr_idx";
  // M0 is set by hand: the check's own random scalars do not reach it.
  auto assembled =
      assemble(std::string(target_info(GetParam().arch).name), GetParam().lanes,
               {"v_movrels_b32 v1, v4", "v_movreld_b32 v4, v2", "v_movrelsd_b32 v4, v5", "v_movrelsd_2_b32 v4, v5"});
  for (const Assembled& a : assembled) {
    Decoded d = decode_one(target_info(GetParam().arch), GetParam().lanes, a.bytes);
    ASSERT_TRUE(d.ok) << a.text << d.problem;
    Machine m(GetParam().arch, GetParam().lanes);
    for (int compared = 0, round = 0; compared < 10240; ++round) {
      for (int r = 0; r < 40; ++r)
        for (u32 l = 0; l < GetParam().lanes; ++l) m.v(r, int(l)) = u32(check_.random());
      u32 source = u32(check_.random() % 20), destination = u32(check_.random() % 20);
      bool split = a.text.starts_with("v_movrelsd_2");
      m.wave.s[cell::kM0] = split ? source | destination << 16 : source;
      if (!split) destination = source;
      m.set_exec(round % 3 ? check_.random() : ~u64(0));
      auto before = m.snapshot(), want = before;
      bool from = a.text.starts_with("v_movrels"), to = !a.text.starts_with("v_movrels_");
      u32 read = a.text.starts_with("v_movrels_") ? 4 : a.text.starts_with("v_movreld_") ? 2 : 5;
      u32 write = a.text.starts_with("v_movrels_") ? 1 : 4;
      for (u32 l = 0; l < GetParam().lanes; ++l) {
        if (!(m.wave.exec() >> l & 1)) continue;
        want[(write + (to ? destination : 0)) * GetParam().lanes + l] =
            before[(read + (from ? source : 0)) * GetParam().lanes + l];
        ++compared;
      }
      m.run(d);
      ASSERT_EQ(m.snapshot(), want) << a.text;
    }
  }
}

TEST_P(SpecialValu, MixedPrecision) {
  // op_sel_hi: the source is f16; op_sel: in its upper half.
  for (int form = 0; form < 24; ++form) {
    int is_half = int(check_.random() & 7), high = int(check_.random() & 7), negate = int(check_.random() & 7),
        magnitude = int(check_.random() & 7), kind = form % 3;
    bool clamp = check_.random() % 4 == 0;
    auto list = [](int bits) { return fmt::format("[{},{},{}]", bits & 1, bits >> 1 & 1, bits >> 2); };
    const char* names[] = {"v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"};
    std::string text = std::string(names[kind]) + " v8";
    for (int k = 0; k < 3; ++k) {
      std::string source = fmt::format("v{}", k + 1);
      if (magnitude >> k & 1) source = "|" + source + "|";
      text += (negate >> k & 1 ? ", -" : ", ") + source;
    }
    text += fmt::format(" op_sel:{} op_sel_hi:{}{}", list(high), list(is_half), clamp ? " clamp" : "");
    check_.add({text,
                [=](const Before& b, u32 lane, const Put& put) {
                  double x[3];
                  for (int k = 0; k < 3; ++k) {
                    u32 word = b.v(1 + k, lane);
                    x[k] =
                        is_half >> k & 1 ? half_value(high >> k & 1 ? word >> 16 : word & 0xffff) : double(f32(word));
                    if (magnitude >> k & 1) x[k] = std::fabs(x[k]);
                    if (negate >> k & 1) x[k] = -x[k];
                  }
                  float r = std::fma(float(x[0]), float(x[1]), float(x[2]));
                  if (clamp) r = std::isnan(r) || r <= 0 ? 0.0f : std::min(r, 1.0f);
                  if (kind == 0) return put(8, u32(bits(r)));
                  u64 half = std::isnan(r) ? 0x7e00 : std::isinf(r) ? (r < 0 ? 0xfc00 : 0x7c00) : nearest_half(r);
                  if (r == 0) half = std::signbit(r) ? 0x8000 : 0;
                  u32 old = b.v(8, lane);
                  put(8, kind == 1 ? (old & 0xffff0000) | u32(half) : (old & 0xffff) | u32(half) << 16);
                },
                form % 3 == 0 ? Same::kFloat : Same::kHalfPair, 1280});
  }
  EXPECT_EQ(check_.run(random_word), 24);
}

TEST_P(SpecialValu, WideMultiplyAdd) {
  std::string carry = GetParam().lanes == 64 ? "s[4:5]" : "s4";
  for (bool is_signed : {false, true})
    check_.add({fmt::format("v_mad_{} v[8:9], {}, v1, v2, v[4:5]", is_signed ? "i64_i32" : "u64_u32", carry),
                [=](const Before& b, u32 lane, const Put& put) {
                  u32 x = b.v(1, lane), y = b.v(2, lane);
                  u64 r = (is_signed ? u64(i64(int32_t(x)) * int32_t(y)) : u64(x) * y) + b.v64(4, lane);
                  put(8, u32(r));
                  put(9, u32(r >> 32));
                },
                Same::kExact, 10240});
  EXPECT_EQ(check_.run(random_word), 2);
}

TEST_P(SpecialValu, AbsoluteDifferences) {
  auto window = [](u64 a, u32 b, int k, bool masked) {
    u64 sum = 0;
    for (int j = 0; j < 4; ++j) {
      int x = int(a >> 8 * (k + j) & 255), y = int(b >> 8 * j & 255);
      if (!masked || y) sum += u64(std::abs(x - y));
    }
    return sum;
  };
  for (bool masked : {false, true})
    for (bool clamp : {false, true})
      check_.add(
          {fmt::format("v_{}qsad_pk_u16_u8 v[8:9], v[2:3], v4, v[6:7]{}", masked ? "m" : "", clamp ? " clamp" : ""),
           [=](const Before& b, u32 lane, const Put& put) {
             u64 r = 0;
             for (int k = 0; k < 4; ++k) {
               u64 sum = (b.v64(6, lane) >> 16 * k & 0xffff) + window(b.v64(2, lane), b.v(4, lane), k, masked);
               r |= (clamp ? std::min<u64>(sum, 65535) : sum & 65535) << 16 * k;
             }
             put(8, u32(r));
             put(9, u32(r >> 32));
           },
           Same::kExact, 10240});
  check_.add({"v_mqsad_u32_u8 v[12:15], v[2:3], v4, v[8:11]",
              [=](const Before& b, u32 lane, const Put& put) {
                for (int k = 0; k < 4; ++k)
                  put(12 + k, b.v(8 + k, lane) + u32(window(b.v64(2, lane), b.v(4, lane), k, true)));
              },
              Same::kExact, 10240});
  EXPECT_EQ(check_.run(random_word), 5);
}

TEST_P(SpecialValu, CubeCoordinates) {
  // Faces in the order +x -x +y -y +z -z; ties go to z, then y.
  auto face = [](float x, float y, float z) {
    float a = std::fabs(x), b = std::fabs(y), c = std::fabs(z);
    if (c >= a && c >= b) return z < 0 ? 5 : 4;
    if (b >= a) return y < 0 ? 3 : 2;
    return x < 0 ? 1 : 0;
  };
  auto add = [&](const char* name, auto op) {
    check_.add({std::string(name) + " v8, v1, v2, v3",
                [=](const Before& b, u32 lane, const Put& put) {
                  float x = f32(b.v(1, lane)), y = f32(b.v(2, lane)), z = f32(b.v(3, lane));
                  put(8, u32(bits(float(op(face(x, y, z), x, y, z)))));
                },
                Same::kFloat, 10240});
  };
  add("v_cubeid_f32", [](int f, float, float, float) { return float(f); });
  add("v_cubema_f32", [](int f, float x, float y, float z) { return 2 * (f >= 4 ? z : f >= 2 ? y : x); });
  add("v_cubesc_f32", [](int f, float x, float, float z) {
    const float by_face[] = {-z, z, x, x, x, -x};
    return by_face[f];
  });
  add("v_cubetc_f32", [](int f, float, float y, float z) {
    const float by_face[] = {-y, -y, z, -z, -y, -y};
    return by_face[f];
  });
  EXPECT_EQ(check_.run([](std::mt19937_64& r) { return u32(bits(float(int(r() % 9)) - 4)); }), 4);
}

TEST_P(SpecialValu, Interpolation) {
  if (cdna()) GTEST_SKIP() << "RDNA3 only";
  auto quad = [](const Before& b, int reg, u32 lane, u32 from) { return f32(b.v(reg, (lane & ~3u) + from)); };
  check_.add({"v_interp_p10_f32 v8, v1, v2, v3",
              [=](const Before& b, u32 lane, const Put& put) {
                put(8, u32(bits(std::fma(quad(b, 1, lane, 1), f32(b.v(2, lane)), quad(b, 3, lane, 0)))));
              },
              Same::kFloat, 10240});
  check_.add({"v_interp_p2_f32 v8, v1, v2, v3",
              [=](const Before& b, u32 lane, const Put& put) {
                put(8, u32(bits(std::fma(quad(b, 1, lane, 2), f32(b.v(2, lane)), f32(b.v(3, lane))))));
              },
              Same::kFloat, 10240});
  EXPECT_EQ(check_.run(random_word), 2);
}

/// 2/π to 1220 bits by long division of a fixed-point π (Machin's formula), independent of the table in the simulator.
class TwoOverPi {
 public:
  TwoOverPi() {
    Number pi = machin(), two{};
    two[0] = 2;
    // Restoring division, bit by bit: quotient = 2 / π.
    Number remainder = two;
    bits_.reserve(kBits);
    for (int k = 0; k < kBits; ++k) {
      shift_left(remainder);
      bool one = !less(remainder, pi);
      if (one) subtract(remainder, pi);
      bits_.push_back(one);
    }
  }
  bool bit(int at) const { return at < kBits && bits_[size_t(at)]; }

 private:
  static constexpr int kWords = 45, kBits = 1300;
  using Number = std::array<u32, kWords>;  // one integer word, then the fraction
  static void shift_left(Number& x) {
    for (int k = 0; k < kWords; ++k) x[k] = x[k] << 1 | (k + 1 < kWords ? x[k + 1] >> 31 : 0);
  }
  static bool less(const Number& a, const Number& b) { return a < b; }
  static void subtract(Number& a, const Number& b) {
    i64 borrow = 0;
    for (int k = kWords - 1; k >= 0; --k) {
      i64 d = i64(a[k]) - b[k] - borrow;
      borrow = d < 0;
      a[k] = u32(d);
    }
  }
  static void add(Number& a, const Number& b) {
    u64 carry = 0;
    for (int k = kWords - 1; k >= 0; --k) {
      carry += u64(a[k]) + b[k];
      a[k] = u32(carry);
      carry >>= 32;
    }
  }
  static bool divide(Number& a, u32 by) {  // false when it became zero
    u64 rest = 0;
    bool any = false;
    for (u32& word : a) {
      u64 x = rest << 32 | word;
      word = u32(x / by);
      rest = x % by;
      any = any || word;
    }
    return any;
  }
  /// factor · atan(1/n)
  static Number arctangent(u32 factor, u32 n) {
    Number power{}, sum{};
    power[0] = factor;
    divide(power, n);
    bool negative = false;
    for (u32 k = 1;; k += 2) {
      Number term = power;
      divide(term, k);
      negative ? subtract(sum, term) : add(sum, term);
      negative = !negative;
      if (!divide(power, n * n)) return sum;
    }
  }
  static Number machin() {  // π = 16 atan(1/5) - 4 atan(1/239)
    Number pi = arctangent(16, 5);
    subtract(pi, arctangent(4, 239));
    return pi;
  }
  std::vector<bool> bits_;
};

TEST_P(SpecialValu, ArgumentReductionBits) {
  static const TwoOverPi digits;
  check_.add({"v_trig_preop_f64 v[8:9], v[2:3], v4",
              [](const Before& b, u32 lane, const Put& put) {
                int exponent = int(b.v(3, lane) >> 20 & 0x7ff), shift = int(b.v(4, lane) & 31) * 53;
                if (exponent > 1077) shift += exponent - 1077;
                double value = 0;
                for (int k = 0; k < 53; ++k)
                  if (digits.bit(shift + k) && shift + k < 1201) value += std::ldexp(1.0, 52 - k);
                value = std::ldexp(value, -53 - shift + (exponent >= 1968 ? 128 : 0));
                u64 r = bits(value);
                put(8, u32(r));
                put(9, u32(r >> 32));
              },
              Same::kExact, 10240});
  EXPECT_EQ(check_.run([](std::mt19937_64& r) { return u32(r()); }), 1);
}

/// A division as compilers build it must round correctly; this ties v_div_scale, v_div_fmas and v_div_fixup together.
TEST_P(SpecialValu, DivisionInDouble) {
  std::vector<std::string> program{"v_div_scale_f64 v[4:5], " + mask() + ", v[2:3], v[2:3], v[0:1]",
                                   "v_rcp_f64 v[6:7], v[4:5]",
                                   "v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0",
                                   "v_fma_f64 v[6:7], v[6:7], v[8:9], v[6:7]",
                                   "v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0",
                                   "v_fma_f64 v[6:7], v[6:7], v[8:9], v[6:7]",
                                   "v_div_scale_f64 v[8:9], " + mask() + ", v[0:1], v[2:3], v[0:1]",
                                   "v_mul_f64 v[10:11], v[8:9], v[6:7]",
                                   "v_fma_f64 v[4:5], -v[4:5], v[10:11], v[8:9]",
                                   "v_div_fmas_f64 v[4:5], v[4:5], v[6:7], v[10:11]",
                                   "v_div_fixup_f64 v[4:5], v[4:5], v[2:3], v[0:1]"};
  auto assembled = assemble(std::string(target_info(GetParam().arch).name), GetParam().lanes, program);
  std::vector<Decoded> decoded;
  for (const Assembled& a : assembled) {
    decoded.push_back(decode_one(target_info(GetParam().arch), GetParam().lanes, a.bytes));
    ASSERT_TRUE(decoded.back().ok) << a.text << decoded.back().problem;
  }
  Machine m(GetParam().arch, GetParam().lanes);
  for (int compared = 0; compared < 10240;) {
    for (u32 l = 0; l < GetParam().lanes; ++l)
      for (int reg : {0, 2}) m.set_v64(reg, int(l), random_value(check_.random, 'd'));
    auto before = m.snapshot();
    for (Decoded& d : decoded) m.run(d);
    for (u32 l = 0; l < GetParam().lanes; ++l, ++compared) {
      auto operand = [&](u32 reg) {
        return f64(u64(before[(reg + 1) * GetParam().lanes + l]) << 32 | before[reg * GetParam().lanes + l]);
      };
      double want = operand(0) / operand(2), got = f64(m.v64(4, int(l)));
      // Quotients below the normal range may be rounded twice.
      double slack = std::fabs(want) < 0x1p-1020 ? 0x1p-1074 : 0;
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(got)) << operand(0) << " / " << operand(2);
      } else if (std::isinf(want)) {
        ASSERT_EQ(got, want) << operand(0) << " / " << operand(2);
      } else {
        ASSERT_LE(std::fabs(got - want), slack)
            << operand(0) << " / " << operand(2) << " = " << got << ", not " << want;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, SpecialValu, ::testing::ValuesIn(kMachines), machine_name);

}  // namespace
}  // namespace crest_sim::test
