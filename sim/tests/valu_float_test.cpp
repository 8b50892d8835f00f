// Floating-point and 64-bit vector operations and conversions against references in wider arithmetic.
#include "valu_reference.h"

namespace crest_sim::test {
namespace {

void float_ops(ValuTester& t) {
  auto binary = [&](const char* n, auto f) {
    t.add({n, "fff", [f](In s) { return bits(static_cast<float>(f(wide(f32(s[0])), wide(f32(s[1]))))); }});
  };
  binary("v_add_f32", [](wide a, wide b) { return a + b; });
  binary("v_sub_f32", [](wide a, wide b) { return a - b; });
  binary("v_subrev_f32", [](wide a, wide b) { return b - a; });
  binary("v_mul_f32", [](wide a, wide b) { return a * b; });
  for (const char* n : {"v_mul_legacy_f32", "v_mul_dx9_zero_f32"})
    binary(n, [](wide a, wide b) { return a == 0 || b == 0 ? wide(0) : a * b; });
  auto fma = [](In s) { return bits(static_cast<float>(wide(f32(s[0])) * wide(f32(s[1])) + wide(f32(s[2])))); };
  t.add({"v_fma_f32", "ffff", fma});
  t.add({"v_fmac_f32", "ffff", fma, nullptr, 0, true});
  t.add({"v_max_f32", "fff", [](In s) { return pick32(s[0], s[1], true); }});
  t.add({"v_min_f32", "fff", [](In s) { return pick32(s[0], s[1], false); }});
  t.add({"v_max3_f32", "ffff", [](In s) { return pick32(pick32(s[0], s[1], true), s[2], true); }});
  t.add({"v_min3_f32", "ffff", [](In s) { return pick32(pick32(s[0], s[1], false), s[2], false); }});
  t.add({"v_med3_f32", "ffff", median32});
  t.add({"v_maxmin_f32", "ffff", [](In s) { return pick32(pick32(s[0], s[1], true), s[2], false); }});
  t.add({"v_minmax_f32", "ffff", [](In s) { return pick32(pick32(s[0], s[1], false), s[2], true); }});
  auto unary = [&](const char* n, float (*f)(float)) { t.add({n, "ff", [f](In s) { return bits(f(f32(s[0]))); }}); };
  unary("v_floor_f32", [](float a) { return std::floor(a); });
  unary("v_ceil_f32", [](float a) { return std::ceil(a); });
  unary("v_trunc_f32", [](float a) { return std::trunc(a); });
  unary("v_rndne_f32", [](float a) { return std::nearbyint(a); });
  unary("v_fract_f32", [](float a) {
    float r = static_cast<float>(double(a) - std::floor(double(a)));
    return r >= 1 ? std::nextafterf(1, 0) : r;
  });
  t.add({"v_ldexp_f32", "ffi", [](In s) {
           return bits(static_cast<float>(
               std::ldexp(double(f32(s[0])), static_cast<int>(std::clamp<i64>(sx(s[1], 32), -600, 600)))));
         }});
  t.add({"v_frexp_exp_i32_f32", "if", [](In s) -> u64 {
           float x = f32(s[0]);
           int e = 0;
           if (std::isfinite(x)) std::frexp(x, &e);
           return static_cast<u64>(e);
         }});
  t.add({"v_frexp_mant_f32", "ff", [](In s) {
           float x = f32(s[0]);
           int e;
           return std::isfinite(x) ? bits(std::frexp(x, &e)) : s[0];
         }});
  const double ulp = 0x1p-23;
  auto flush = [](float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; };
  auto about = [&](const char* n, double (*f)(double)) {
    t.add({n, "ff", [f, flush](In s) { return bits(flush(static_cast<float>(f(flush(f32(s[0])))))); }, nullptr, ulp});
  };
  about("v_exp_f32", [](double x) { return std::exp2(x); });
  about("v_log_f32", [](double x) { return x < 0 ? NAN : std::log2(x); });
  for (const char* n : {"v_rcp_f32", "v_rcp_iflag_f32"}) about(n, [](double x) { return 1 / x; });
  about("v_rsq_f32", [](double x) { return x < 0 ? NAN : 1 / std::sqrt(x); });
  about("v_sqrt_f32", [](double x) { return x < 0 ? NAN : std::sqrt(x); });
}

void half_ops(ValuTester& t) {
  auto binary = [&](const char* n, auto f) {
    t.add({n, "hhh", [f](In s) { return nearest_half(f(wide(half_value(s[0])), wide(half_value(s[1])))); }});
  };
  binary("v_add_f16", [](wide a, wide b) { return a + b; });
  binary("v_sub_f16", [](wide a, wide b) { return a - b; });
  binary("v_subrev_f16", [](wide a, wide b) { return b - a; });
  binary("v_mul_f16", [](wide a, wide b) { return a * b; });
  auto fma = [](In s) { return nearest_half(wide(half_value(s[0])) * half_value(s[1]) + half_value(s[2])); };
  t.add({"v_fma_f16", "hhhh", fma});
  t.add({"v_fmac_f16", "hhhh", fma, nullptr, 0, true});
  t.add({"v_max_f16", "hhh", [](In s) { return pick16(s[0], s[1], true); }});
  t.add({"v_min_f16", "hhh", [](In s) { return pick16(s[0], s[1], false); }});
  t.add({"v_max3_f16", "hhhh", [](In s) { return pick16(pick16(s[0], s[1], true), s[2], true); }});
  t.add({"v_min3_f16", "hhhh", [](In s) { return pick16(pick16(s[0], s[1], false), s[2], false); }});
  t.add({"v_maxmin_f16", "hhhh", [](In s) { return pick16(pick16(s[0], s[1], true), s[2], false); }});
  t.add({"v_floor_f16", "hh", [](In s) { return nearest_half(std::floor(half_value(s[0]))); }});
  t.add({"v_ceil_f16", "hh", [](In s) { return nearest_half(std::ceil(half_value(s[0]))); }});
  t.add({"v_trunc_f16", "hh", [](In s) { return nearest_half(std::trunc(half_value(s[0]))); }});
  t.add({"v_rndne_f16", "hh", [](In s) { return nearest_half(std::nearbyint(half_value(s[0]))); }});
  t.add({"v_ldexp_f16", "hhs",
         [](In s) { return nearest_half(std::ldexp(half_value(s[0]), static_cast<int>(sx(s[1], 16)))); }});
  t.add({"v_frexp_mant_f16", "hh", [](In s) {
           double x = half_value(s[0]);
           int e;
           return std::isfinite(x) ? nearest_half(std::frexp(x, &e)) : s[0];
         }});
  t.add({"v_frexp_exp_i16_f16", "sh", [](In s) -> u64 {
           double x = half_value(s[0]);
           int e = 0;
           if (std::isfinite(x)) std::frexp(x, &e);
           return static_cast<u64>(e) & 0xffff;
         }});
  const double ulp = 0x1p-10;
  t.add({"v_rcp_f16", "hh", [](In s) { return nearest_half(1 / half_value(s[0])); }, nullptr, ulp});
  t.add({"v_sqrt_f16", "hh",
         [](In s) { return nearest_half(half_value(s[0]) < 0 ? NAN : std::sqrt(half_value(s[0]))); }, nullptr, ulp});
  t.add({"v_rsq_f16", "hh",
         [](In s) { return nearest_half(half_value(s[0]) < 0 ? NAN : 1 / std::sqrt(half_value(s[0]))); }, nullptr,
         ulp});
  t.add({"v_exp_f16", "hh", [](In s) { return nearest_half(std::exp2(half_value(s[0]))); }, nullptr, ulp});
  t.add({"v_log_f16", "hh", [](In s) { return nearest_half(half_value(s[0]) < 0 ? NAN : std::log2(half_value(s[0]))); },
         nullptr, ulp});
}

void wide_ops(ValuTester& t) {
  t.add({"v_lshlrev_b64", "qiq", [](In s) { return s[1] << (s[0] % 64); }});
  t.add({"v_lshrrev_b64", "qiq", [](In s) { return s[1] >> (s[0] % 64); }});
  t.add({"v_ashrrev_i64", "qiq", [](In s) { return static_cast<u64>(static_cast<i64>(s[1]) >> (s[0] % 64)); }});
  t.add({"v_lshl_add_u64", "qqiq", [](In s) { return (s[0] << (s[1] % 8)) + s[2]; }});
  t.add({"v_mov_b64", "qq", [](In s) { return s[0]; }});
  t.add({"v_add_f64", "ddd", [](In s) { return bits(static_cast<double>(wide(f64(s[0])) + wide(f64(s[1])))); }});
  t.add({"v_mul_f64", "ddd", [](In s) { return bits(static_cast<double>(wide(f64(s[0])) * wide(f64(s[1])))); }});
  t.add({"v_fma_f64", "dddd", [](In s) { return bits(std::fma(f64(s[0]), f64(s[1]), f64(s[2]))); }});
  auto pick = [](u64 a, u64 b, bool max) {
    constexpr u64 quiet = u64(1) << 51;
    if (std::isnan(f64(a)) && !(a & quiet)) return a | quiet;
    if (std::isnan(f64(b)) && !(b & quiet)) return b | quiet;
    if (std::isnan(f64(a))) return b;
    if (std::isnan(f64(b))) return a;
    if (f64(a) == 0 && f64(b) == 0) return (a >> 63) != 0 ? (max ? b : a) : (max ? a : b);
    return (f64(a) < f64(b)) != max ? a : b;
  };
  t.add({"v_max_f64", "ddd", [pick](In s) { return pick(s[0], s[1], true); }});
  t.add({"v_min_f64", "ddd", [pick](In s) { return pick(s[0], s[1], false); }});
  t.add({"v_floor_f64", "dd", [](In s) { return bits(std::floor(f64(s[0]))); }});
  t.add({"v_ceil_f64", "dd", [](In s) { return bits(std::ceil(f64(s[0]))); }});
  t.add({"v_trunc_f64", "dd", [](In s) { return bits(std::trunc(f64(s[0]))); }});
  t.add({"v_rndne_f64", "dd", [](In s) { return bits(std::nearbyint(f64(s[0]))); }});
  t.add({"v_frexp_exp_i32_f64", "id", [](In s) -> u64 {
           double x = f64(s[0]);
           int e = 0;
           if (std::isfinite(x)) std::frexp(x, &e);
           return static_cast<u64>(e);
         }});
  t.add({"v_frexp_mant_f64", "dd", [](In s) {
           double x = f64(s[0]);
           int e;
           return std::isfinite(x) ? bits(std::frexp(x, &e)) : s[0];
         }});
  t.add({"v_rcp_f64", "dd", [](In s) { return bits(1 / f64(s[0])); }, nullptr, 0x1p-28});
}

void conversions(ValuTester& t) {
  auto clip = [](double x, double low, double high) {
    return static_cast<u64>(static_cast<i64>(std::isnan(x)          ? 0
                                             : std::trunc(x) < low  ? low
                                             : std::trunc(x) > high ? high
                                                                    : std::trunc(x)));
  };
  t.add({"v_cvt_f32_i32", "fi", [](In s) { return bits(static_cast<float>(sx(s[0], 32))); }});
  t.add({"v_cvt_f32_u32", "fi", [](In s) { return bits(static_cast<float>(s[0])); }});
  t.add({"v_cvt_i32_f32", "if", [=](In s) { return clip(f32(s[0]), INT32_MIN, INT32_MAX); }});
  t.add({"v_cvt_u32_f32", "if", [=](In s) { return clip(f32(s[0]), 0, UINT32_MAX); }});
  t.add({"v_cvt_i32_f64", "id", [=](In s) { return clip(f64(s[0]), INT32_MIN, INT32_MAX); }});
  t.add({"v_cvt_u32_f64", "id", [=](In s) { return clip(f64(s[0]), 0, UINT32_MAX); }});
  for (const char* n : {"v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"})
    t.add({n, "if", [=](In s) { return clip(std::floor(f32(s[0])), INT32_MIN, INT32_MAX); }});
  t.add({"v_cvt_f64_f32", "df", [](In s) { return bits(static_cast<double>(f32(s[0]))); }});
  t.add({"v_cvt_f32_f64", "fd", [](In s) { return bits(static_cast<float>(f64(s[0]))); }});
  t.add({"v_cvt_f64_i32", "di", [](In s) { return bits(static_cast<double>(sx(s[0], 32))); }});
  t.add({"v_cvt_f64_u32", "di", [](In s) { return bits(static_cast<double>(s[0])); }});
  for (int k = 0; k < 4; ++k)
    t.add({"v_cvt_f32_ubyte" + std::to_string(k), "fi",
           [k](In s) { return bits(static_cast<float>(s[0] >> 8 * k & 255)); }});
  t.add(
      {"v_cvt_off_f32_i4", "fi", [](In s) { return bits(static_cast<float>(static_cast<double>(sx(s[0], 4)) / 16)); }});
  t.add({"v_cvt_f32_f16", "fh", [](In s) { return bits(static_cast<float>(half_value(s[0]))); }});
  t.add({"v_cvt_f16_f32", "hf", [](In s) { return nearest_half(f32(s[0])); }});
  t.add({"v_cvt_f16_u16", "hs", [](In s) { return nearest_half(static_cast<double>(s[0])); }});
  t.add({"v_cvt_f16_i16", "hs", [](In s) { return nearest_half(static_cast<double>(sx(s[0], 16))); }});
  t.add({"v_cvt_u16_f16", "sh", [=](In s) { return clip(half_value(s[0]), 0, 65535); }});
  t.add({"v_cvt_i16_f16", "sh", [=](In s) { return clip(half_value(s[0]), -32768, 32767); }});
  t.add({"v_cvt_u32_u16", "is", [](In s) { return s[0]; }});
  t.add({"v_cvt_i32_i16", "is", [](In s) { return static_cast<u64>(sx(s[0], 16)); }});
  auto toward_zero = [](u64 x) -> u64 {
    float v = f32(x);
    if (std::isnan(v)) return 0x7e00;
    u64 sign = x >> 31 << 15;
    double a = std::fabs(v);
    if (std::isinf(a)) return sign | 0x7c00;
    u64 best = 0;
    for (u64 step = 0x4000; step; step /= 2)
      if (best + step <= 0x7bff && half_value(best + step) <= a) best += step;
    return sign | best;
  };
  for (const char* n : {"v_cvt_pkrtz_f16_f32", "v_cvt_pk_rtz_f16_f32"})
    t.add({n, "iff", [=](In s) {
             // NaN payloads are free: keep the upper bits of the source as the hardware does.
             auto one = [&](u64 x) {
               return std::isnan(f32(x)) ? (x >> 16 & 0x8000) | 0x7e00 | (x >> 13 & 0x1ff) : toward_zero(x);
             };
             return one(s[0]) | one(s[1]) << 16;
           }});
  t.add(
      {"v_cvt_pk_u16_u32", "iii", [](In s) { return std::min<u64>(s[0], 65535) | std::min<u64>(s[1], 65535) << 16; }});
  t.add({"v_cvt_pk_i16_i32", "iii", [](In s) {
           return (sat(sx(s[0], 32), -32768, 32767) & 0xffff) | (sat(sx(s[1], 32), -32768, 32767) & 0xffff) << 16;
         }});
}

class FloatValu : public ::testing::TestWithParam<Case> {};
TEST_P(FloatValu, MatchesReference) { run_group(GetParam()); }
INSTANTIATE_TEST_SUITE_P(Groups, FloatValu,
                         ::testing::ValuesIn(on_all_targets({{"Float", float_ops},
                                                             {"Half", half_ops},
                                                             {"Wide", wide_ops},
                                                             {"Conversions", conversions}})),
                         case_name);

}  // namespace
}  // namespace crest_sim::test
