// Vector operations against references that were written from the ISA's text, bit by bit and in wider arithmetic.
#include <cmath>

#include "valu_support.h"

namespace crest_sim::test {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;
using wide = __float128;
using In = const u64*;

constexpr int kCases = 10240;

i64 sx(u64 x, int bits) { return static_cast<i64>(x << (64 - bits)) >> (64 - bits); }
u64 sat(wide x, wide low, wide high) { return static_cast<u64>(static_cast<i64>(x < low ? low : x > high ? high : x)); }
u64 saturate_s32(i64 x) { return sat(x, INT32_MIN, INT32_MAX); }
u64 saturate_u32(i64 x) { return sat(x, 0, 4294967295.0); }
bool nan32(u64 x) { return std::isnan(f32(x)); }
bool snan32(u64 x) { return nan32(x) && !(x & 0x400000); }
bool nan16(u64 x) { return (x & 0x7fff) > 0x7c00; }
bool snan16(u64 x) { return nan16(x) && !(x & 0x200); }

/// IEEE-mode minNum/maxNum by cases.
u64 pick32(u64 a, u64 b, bool max) {
  if (snan32(a)) return a | 0x400000;
  if (snan32(b)) return b | 0x400000;
  if (nan32(a)) return b;
  if (nan32(b)) return a;
  if (f32(a) == 0 && f32(b) == 0) return max ? ((a >> 31) ? b : a) : ((a >> 31) ? a : b);
  return (f32(a) < f32(b)) != max ? a : b;
}
u64 pick16(u64 a, u64 b, bool max) {
  if (snan16(a)) return a | 0x200;
  if (snan16(b)) return b | 0x200;
  if (nan16(a)) return b;
  if (nan16(b)) return a;
  double x = half_value(a), y = half_value(b);
  if (x == 0 && y == 0) return max ? ((a >> 15) ? b : a) : ((a >> 15) ? a : b);
  return (x < y) != max ? a : b;
}
u64 median32(In s) {
  if (nan32(s[0]) || nan32(s[1]) || nan32(s[2])) return pick32(pick32(s[0], s[1], false), s[2], false);
  u64 top = pick32(pick32(s[0], s[1], true), s[2], true);
  if (top == s[0]) return pick32(s[1], s[2], true);
  if (top == s[1]) return pick32(s[0], s[2], true);
  return pick32(s[0], s[1], true);
}

void integer_ops(ValuTester& t) {
  t.add({"v_mov_b32", "ii", [](In s) { return s[0]; }});
  t.add({"v_not_b32", "ii", [](In s) { return ~s[0]; }});
  t.add({"v_bfrev_b32", "ii", [](In s) { u64 r = 0; for (int b = 0; b < 32; ++b) r |= (s[0] >> b & 1) << (31 - b); return r; }});
  auto first_high = [](In s) -> u64 { for (int b = 31; b >= 0; --b) if (s[0] >> b & 1) return u64(31 - b); return ~u64(0); };
  auto first_low = [](In s) -> u64 { for (int b = 0; b < 32; ++b) if (s[0] >> b & 1) return u64(b); return ~u64(0); };
  auto first_other = [](In s) -> u64 { for (int b = 30; b >= 0; --b) if ((s[0] >> b & 1) != (s[0] >> 31 & 1)) return u64(31 - b); return ~u64(0); };
  t.add({"v_ffbh_u32", "ii", first_high});
  t.add({"v_clz_i32_u32", "ii", first_high});
  t.add({"v_ffbl_b32", "ii", first_low});
  t.add({"v_ctz_i32_b32", "ii", first_low});
  t.add({"v_ffbh_i32", "ii", first_other});
  t.add({"v_cls_i32", "ii", first_other});
  for (const char* n : {"v_add_u32", "v_add_nc_u32"}) t.add({n, "iii", [](In s) { return s[0] + s[1]; }, [](In s) { return saturate_u32(i64(s[0]) + i64(s[1])); }});
  for (const char* n : {"v_sub_u32", "v_sub_nc_u32"}) t.add({n, "iii", [](In s) { return s[0] - s[1]; }, [](In s) { return saturate_u32(i64(s[0]) - i64(s[1])); }});
  for (const char* n : {"v_subrev_u32", "v_subrev_nc_u32"}) t.add({n, "iii", [](In s) { return s[1] - s[0]; }, [](In s) { return saturate_u32(i64(s[1]) - i64(s[0])); }});
  for (const char* n : {"v_add_i32", "v_add_nc_i32"}) t.add({n, "iii", [](In s) { return s[0] + s[1]; }, [](In s) { return saturate_s32(sx(s[0], 32) + sx(s[1], 32)); }});
  for (const char* n : {"v_sub_i32", "v_sub_nc_i32"}) t.add({n, "iii", [](In s) { return s[0] - s[1]; }, [](In s) { return saturate_s32(sx(s[0], 32) - sx(s[1], 32)); }});
  t.add({"v_and_b32", "iii", [](In s) { return s[0] & s[1]; }});
  t.add({"v_or_b32", "iii", [](In s) { return s[0] | s[1]; }});
  t.add({"v_xor_b32", "iii", [](In s) { return s[0] ^ s[1]; }});
  t.add({"v_xnor_b32", "iii", [](In s) { return ~(s[0] ^ s[1]); }});
  t.add({"v_lshlrev_b32", "iii", [](In s) { u64 x = s[1]; for (u64 k = 0; k < s[0] % 32; ++k) x *= 2; return x; }});
  t.add({"v_lshrrev_b32", "iii", [](In s) { u64 x = s[1]; for (u64 k = 0; k < s[0] % 32; ++k) x /= 2; return x; }});
  t.add({"v_ashrrev_i32", "iii", [](In s) { return static_cast<u64>(sx(s[1], 32) >> (s[0] % 32)); }});
  t.add({"v_min_u32", "iii", [](In s) { return std::min(s[0], s[1]); }});
  t.add({"v_max_u32", "iii", [](In s) { return std::max(s[0], s[1]); }});
  t.add({"v_min_i32", "iii", [](In s) { return static_cast<u64>(std::min(sx(s[0], 32), sx(s[1], 32))); }});
  t.add({"v_max_i32", "iii", [](In s) { return static_cast<u64>(std::max(sx(s[0], 32), sx(s[1], 32))); }});
  t.add({"v_mul_lo_u32", "iii", [](In s) { return s[0] * s[1]; }});
  t.add({"v_mul_hi_u32", "iii", [](In s) { return s[0] * s[1] >> 32; }});
  t.add({"v_mul_hi_i32", "iii", [](In s) { return static_cast<u64>(sx(s[0], 32) * sx(s[1], 32) >> 32); }});
  t.add({"v_mul_u32_u24", "iii", [](In s) { return (s[0] % 16777216) * (s[1] % 16777216); }, [](In s) { return sat(wide(s[0] % 16777216) * (s[1] % 16777216), 0, 4294967295.0); }});
  t.add({"v_mul_i32_i24", "iii", [](In s) { return static_cast<u64>(sx(s[0], 24) * sx(s[1], 24)); }, [](In s) { return saturate_s32(sx(s[0], 24) * sx(s[1], 24)); }});
  t.add({"v_mul_hi_u32_u24", "iii", [](In s) { return (s[0] % 16777216) * (s[1] % 16777216) >> 32; }});
  t.add({"v_mul_hi_i32_i24", "iii", [](In s) { return static_cast<u64>(sx(s[0], 24) * sx(s[1], 24) >> 32); }});
  t.add({"v_bfm_b32", "iii", [](In s) { u64 r = 0; for (u64 k = 0; k < s[0] % 32; ++k) r |= u64(1) << (k + s[1] % 32); return r; }});
  t.add({"v_bcnt_u32_b32", "iii", [](In s) { u64 n = s[1]; for (int b = 0; b < 32; ++b) n += s[0] >> b & 1; return n; }});
}

void ternary_ops(ValuTester& t) {
  t.add({"v_lshl_or_b32", "iiii", [](In s) { return s[0] << (s[1] & 31) | s[2]; }});
  t.add({"v_lshl_add_u32", "iiii", [](In s) { return (s[0] << (s[1] & 31)) + s[2]; }});
  t.add({"v_add_lshl_u32", "iiii", [](In s) { return (s[0] + s[1]) << (s[2] & 31); }});
  t.add({"v_add3_u32", "iiii", [](In s) { return s[0] + s[1] + s[2]; }});
  t.add({"v_or3_b32", "iiii", [](In s) { return s[0] | s[1] | s[2]; }});
  t.add({"v_xor3_b32", "iiii", [](In s) { return s[0] ^ s[1] ^ s[2]; }});
  t.add({"v_and_or_b32", "iiii", [](In s) { return (s[0] & s[1]) | s[2]; }});
  t.add({"v_xad_u32", "iiii", [](In s) { return (s[0] ^ s[1]) + s[2]; }});
  t.add({"v_bfi_b32", "iiii", [](In s) { u64 r = 0; for (int b = 0; b < 32; ++b) r |= ((s[0] >> b & 1 ? s[1] : s[2]) >> b & 1) << b; return r; }});
  t.add({"v_bfe_u32", "iiii", [](In s) { u64 r = 0; for (u64 b = 0; b < s[2] % 32; ++b) r |= (s[1] % 32 + b < 32 ? s[0] >> (s[1] % 32 + b) & 1 : 0) << b; return r; }});
  t.add({"v_bfe_i32", "iiii", [](In s) -> u64 { int w = s[2] & 31, o = s[1] & 31; if (!w) return 0; i64 x = sx(s[0], 32) >> o; return static_cast<u64>(sx(static_cast<u64>(x), w)); }});
  t.add({"v_alignbit_b32", "iiii", [](In s) { return (s[0] << 32 | s[1]) >> (s[2] & 31); }});
  t.add({"v_alignbyte_b32", "iiii", [](In s) { return (s[0] << 32 | s[1]) >> (8 * (s[2] & 3)); }});
  t.add({"v_perm_b32", "iiii", [](In s) {
           u64 in = s[0] << 32 | s[1], r = 0;
           for (int k = 0; k < 4; ++k) {
             u64 sel = s[2] >> 8 * k & 255, byte;
             if (sel < 8) byte = in >> 8 * sel & 255;
             else if (sel < 12) byte = in >> (16 * (sel - 8) + 15) & 1 ? 255 : 0;
             else byte = sel == 12 ? 0 : 255;
             r |= byte << 8 * k;
           }
           return r;
         }});
  t.add({"v_mad_u32_u24", "iiii", [](In s) { return (s[0] & 0xffffff) * (s[1] & 0xffffff) + s[2]; }, [](In s) { return sat(wide(s[0] & 0xffffff) * (s[1] & 0xffffff) + s[2], 0, 4294967295.0); }});
  t.add({"v_mad_i32_i24", "iiii", [](In s) { return static_cast<u64>(sx(s[0], 24) * sx(s[1], 24)) + s[2]; }, [](In s) { return saturate_s32(sx(s[0], 24) * sx(s[1], 24) + sx(s[2], 32)); }});
  auto three = [](auto f) { return [f](In s) { return static_cast<u64>(f(f(s[0], s[1]), s[2])); }; };
  t.add({"v_min3_u32", "iiii", three([](u64 a, u64 b) { return std::min(a, b); })});
  t.add({"v_max3_u32", "iiii", three([](u64 a, u64 b) { return std::max(a, b); })});
  t.add({"v_min3_i32", "iiii", three([](u64 a, u64 b) { return static_cast<u64>(std::min(sx(a, 32), sx(b, 32))); })});
  t.add({"v_max3_i32", "iiii", three([](u64 a, u64 b) { return static_cast<u64>(std::max(sx(a, 32), sx(b, 32))); })});
  auto middle = [](int width, bool is_signed) {
    return [=](In s) {
      i64 v[3];
      for (int k = 0; k < 3; ++k) v[k] = is_signed ? sx(s[k], width) : static_cast<i64>(s[k]);
      std::sort(v, v + 3);
      return static_cast<u64>(v[1]);
    };
  };
  t.add({"v_med3_u32", "iiii", middle(32, false)});
  t.add({"v_med3_i32", "iiii", middle(32, true)});
  t.add({"v_med3_u16", "ssss", middle(16, false)});
  t.add({"v_med3_i16", "ssss", middle(16, true)});
  t.add({"v_maxmin_u32", "iiii", [](In s) { return std::min(std::max(s[0], s[1]), s[2]); }});
  t.add({"v_minmax_u32", "iiii", [](In s) { return std::max(std::min(s[0], s[1]), s[2]); }});
  t.add({"v_maxmin_i32", "iiii", [](In s) { return static_cast<u64>(std::min(std::max(sx(s[0], 32), sx(s[1], 32)), sx(s[2], 32))); }});
  t.add({"v_minmax_i32", "iiii", [](In s) { return static_cast<u64>(std::max(std::min(sx(s[0], 32), sx(s[1], 32)), sx(s[2], 32))); }});
  auto difference = [](u64 a, u64 b) { return a > b ? a - b : b - a; };
  t.add({"v_sad_u8", "iiii", [=](In s) { u64 r = s[2]; for (int k = 0; k < 32; k += 8) r += difference(s[0] >> k & 255, s[1] >> k & 255); return r; }});
  t.add({"v_sad_hi_u8", "iiii", [=](In s) { u64 r = 0; for (int k = 0; k < 32; k += 8) r += difference(s[0] >> k & 255, s[1] >> k & 255); return (r << 16) + s[2]; }});
  t.add({"v_msad_u8", "iiii", [=](In s) { u64 r = s[2]; for (int k = 0; k < 32; k += 8) if (s[1] >> k & 255) r += difference(s[0] >> k & 255, s[1] >> k & 255); return r; }});
  t.add({"v_sad_u16", "iiii", [=](In s) { u64 r = s[2]; for (int k = 0; k < 32; k += 16) r += difference(s[0] >> k & 0xffff, s[1] >> k & 0xffff); return r; }});
  t.add({"v_sad_u32", "iiii", [=](In s) { return difference(s[0], s[1]) + s[2]; }});
  t.add({"v_lerp_u8", "iiii", [](In s) { u64 r = 0; for (int k = 0; k < 32; k += 8) r |= (((s[0] >> k & 255) + (s[1] >> k & 255) + (s[2] >> k & 1)) / 2) << k; return r; }});
}

void float_ops(ValuTester& t) {
  auto binary = [&](const char* n, auto f) { t.add({n, "fff", [f](In s) { return bits(static_cast<float>(f(wide(f32(s[0])), wide(f32(s[1]))))); }}); };
  binary("v_add_f32", [](wide a, wide b) { return a + b; });
  binary("v_sub_f32", [](wide a, wide b) { return a - b; });
  binary("v_subrev_f32", [](wide a, wide b) { return b - a; });
  binary("v_mul_f32", [](wide a, wide b) { return a * b; });
  for (const char* n : {"v_mul_legacy_f32", "v_mul_dx9_zero_f32"}) binary(n, [](wide a, wide b) { return a == 0 || b == 0 ? wide(0) : a * b; });
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
  unary("v_fract_f32", [](float a) { float r = static_cast<float>(double(a) - std::floor(double(a))); return r >= 1 ? std::nextafterf(1, 0) : r; });
  t.add({"v_ldexp_f32", "ffi", [](In s) { return bits(static_cast<float>(std::ldexp(double(f32(s[0])), static_cast<int>(std::clamp<i64>(sx(s[1], 32), -600, 600))))); }});
  t.add({"v_frexp_exp_i32_f32", "if", [](In s) -> u64 { float x = f32(s[0]); int e = 0; if (std::isfinite(x)) std::frexp(x, &e); return static_cast<u64>(e); }});
  t.add({"v_frexp_mant_f32", "ff", [](In s) { float x = f32(s[0]); int e; return std::isfinite(x) ? bits(std::frexp(x, &e)) : s[0]; }});
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
  auto binary = [&](const char* n, auto f) { t.add({n, "hhh", [f](In s) { return nearest_half(f(wide(half_value(s[0])), wide(half_value(s[1])))); }}); };
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
  t.add({"v_ldexp_f16", "hhs", [](In s) { return nearest_half(std::ldexp(half_value(s[0]), static_cast<int>(sx(s[1], 16)))); }});
  t.add({"v_frexp_mant_f16", "hh", [](In s) { double x = half_value(s[0]); int e; return std::isfinite(x) ? nearest_half(std::frexp(x, &e)) : s[0]; }});
  t.add({"v_frexp_exp_i16_f16", "sh", [](In s) -> u64 { double x = half_value(s[0]); int e = 0; if (std::isfinite(x)) std::frexp(x, &e); return static_cast<u64>(e) & 0xffff; }});
  const double ulp = 0x1p-10;
  t.add({"v_rcp_f16", "hh", [](In s) { return nearest_half(1 / half_value(s[0])); }, nullptr, ulp});
  t.add({"v_sqrt_f16", "hh", [](In s) { return nearest_half(half_value(s[0]) < 0 ? NAN : std::sqrt(half_value(s[0]))); }, nullptr, ulp});
  t.add({"v_rsq_f16", "hh", [](In s) { return nearest_half(half_value(s[0]) < 0 ? NAN : 1 / std::sqrt(half_value(s[0]))); }, nullptr, ulp});
  t.add({"v_exp_f16", "hh", [](In s) { return nearest_half(std::exp2(half_value(s[0]))); }, nullptr, ulp});
  t.add({"v_log_f16", "hh", [](In s) { return nearest_half(half_value(s[0]) < 0 ? NAN : std::log2(half_value(s[0]))); }, nullptr, ulp});
}

void short_ops(ValuTester& t) {
  for (const char* n : {"v_add_u16", "v_add_nc_u16"}) t.add({n, "sss", [](In s) { return s[0] + s[1]; }, [](In s) { return std::min<u64>(s[0] + s[1], 65535); }});
  for (const char* n : {"v_sub_u16", "v_sub_nc_u16"}) t.add({n, "sss", [](In s) { return s[0] - s[1]; }, [](In s) { return s[0] > s[1] ? s[0] - s[1] : 0; }});
  for (const char* n : {"v_add_i16", "v_add_nc_i16"}) t.add({n, "sss", [](In s) { return s[0] + s[1]; }, [](In s) { return sat(sx(s[0], 16) + sx(s[1], 16), -32768, 32767); }});
  for (const char* n : {"v_sub_i16", "v_sub_nc_i16"}) t.add({n, "sss", [](In s) { return s[0] - s[1]; }, [](In s) { return sat(sx(s[0], 16) - sx(s[1], 16), -32768, 32767); }});
  t.add({"v_subrev_u16", "sss", [](In s) { return s[1] - s[0]; }, [](In s) { return s[1] > s[0] ? s[1] - s[0] : 0; }});
  t.add({"v_mul_lo_u16", "sss", [](In s) { return s[0] * s[1]; }});
  t.add({"v_lshlrev_b16", "sss", [](In s) { return s[1] << (s[0] & 15); }});
  t.add({"v_lshrrev_b16", "sss", [](In s) { return s[1] >> (s[0] & 15); }});
  t.add({"v_ashrrev_i16", "sss", [](In s) { return static_cast<u64>(sx(s[1], 16) >> (s[0] & 15)); }});
  t.add({"v_min_u16", "sss", [](In s) { return std::min(s[0], s[1]); }});
  t.add({"v_max_u16", "sss", [](In s) { return std::max(s[0], s[1]); }});
  t.add({"v_min_i16", "sss", [](In s) { return static_cast<u64>(std::min(sx(s[0], 16), sx(s[1], 16))); }});
  t.add({"v_max_i16", "sss", [](In s) { return static_cast<u64>(std::max(sx(s[0], 16), sx(s[1], 16))); }});
  t.add({"v_and_b16", "sss", [](In s) { return s[0] & s[1]; }});
  t.add({"v_or_b16", "sss", [](In s) { return s[0] | s[1]; }});
  t.add({"v_xor_b16", "sss", [](In s) { return s[0] ^ s[1]; }});
  t.add({"v_not_b16", "ss", [](In s) { return ~s[0]; }});
  t.add({"v_mov_b16", "ss", [](In s) { return s[0]; }});
  t.add({"v_mad_u32_u16", "issi", [](In s) { return s[0] * s[1] + s[2]; }});
  t.add({"v_mad_i32_i16", "issi", [](In s) { return static_cast<u64>(sx(s[0], 16) * sx(s[1], 16)) + s[2]; }});
  t.add({"v_pack_b32_f16", "ihh", [](In s) { return s[0] | s[1] << 16; }});
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
  t.add({"v_frexp_exp_i32_f64", "id", [](In s) -> u64 { double x = f64(s[0]); int e = 0; if (std::isfinite(x)) std::frexp(x, &e); return static_cast<u64>(e); }});
  t.add({"v_frexp_mant_f64", "dd", [](In s) { double x = f64(s[0]); int e; return std::isfinite(x) ? bits(std::frexp(x, &e)) : s[0]; }});
  t.add({"v_rcp_f64", "dd", [](In s) { return bits(1 / f64(s[0])); }, nullptr, 0x1p-28});
}

void conversions(ValuTester& t) {
  auto clip = [](double x, double low, double high) { return static_cast<u64>(static_cast<i64>(std::isnan(x) ? 0 : std::trunc(x) < low ? low : std::trunc(x) > high ? high : std::trunc(x))); };
  t.add({"v_cvt_f32_i32", "fi", [](In s) { return bits(static_cast<float>(sx(s[0], 32))); }});
  t.add({"v_cvt_f32_u32", "fi", [](In s) { return bits(static_cast<float>(s[0])); }});
  t.add({"v_cvt_i32_f32", "if", [=](In s) { return clip(f32(s[0]), INT32_MIN, INT32_MAX); }});
  t.add({"v_cvt_u32_f32", "if", [=](In s) { return clip(f32(s[0]), 0, UINT32_MAX); }});
  t.add({"v_cvt_i32_f64", "id", [=](In s) { return clip(f64(s[0]), INT32_MIN, INT32_MAX); }});
  t.add({"v_cvt_u32_f64", "id", [=](In s) { return clip(f64(s[0]), 0, UINT32_MAX); }});
  for (const char* n : {"v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"}) t.add({n, "if", [=](In s) { return clip(std::floor(f32(s[0])), INT32_MIN, INT32_MAX); }});
  t.add({"v_cvt_f64_f32", "df", [](In s) { return bits(static_cast<double>(f32(s[0]))); }});
  t.add({"v_cvt_f32_f64", "fd", [](In s) { return bits(static_cast<float>(f64(s[0]))); }});
  t.add({"v_cvt_f64_i32", "di", [](In s) { return bits(static_cast<double>(sx(s[0], 32))); }});
  t.add({"v_cvt_f64_u32", "di", [](In s) { return bits(static_cast<double>(s[0])); }});
  for (int k = 0; k < 4; ++k) t.add({"v_cvt_f32_ubyte" + std::to_string(k), "fi", [k](In s) { return bits(static_cast<float>(s[0] >> 8 * k & 255)); }});
  t.add({"v_cvt_off_f32_i4", "fi", [](In s) { return bits(static_cast<float>(static_cast<double>(sx(s[0], 4)) / 16)); }});
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
             auto one = [&](u64 x) { return std::isnan(f32(x)) ? (x >> 16 & 0x8000) | 0x7e00 | (x >> 13 & 0x1ff) : toward_zero(x); };
             return one(s[0]) | one(s[1]) << 16;
           }});
  t.add({"v_cvt_pk_u16_u32", "iii", [](In s) { return std::min<u64>(s[0], 65535) | std::min<u64>(s[1], 65535) << 16; }});
  t.add({"v_cvt_pk_i16_i32", "iii", [](In s) { return (sat(sx(s[0], 32), -32768, 32767) & 0xffff) | (sat(sx(s[1], 32), -32768, 32767) & 0xffff) << 16; }});
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

class Valu : public ::testing::TestWithParam<Case> {};

TEST_P(Valu, MatchesReference) {
  ValuTester tester(GetParam().arch, GetParam().lanes);
  GetParam().group.add(tester);
  tester.run(kCases);
}

std::vector<Case> all_cases() {
  const Group groups[] = {{"Integer", integer_ops}, {"Ternary", ternary_ops}, {"Float", float_ops},         {"Half", half_ops},
                          {"Short", short_ops},     {"Wide", wide_ops},       {"Conversions", conversions}};
  std::vector<Case> out;
  for (const Group& g : groups)
    for (auto [arch, lanes] : {std::pair{Arch::kGfx942, 64u}, {Arch::kGfx950, 64u}, {Arch::kGfx1100, 32u}, {Arch::kGfx1100, 64u}, {Arch::kGfx1151, 32u}})
      out.push_back({g, arch, lanes});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Groups, Valu, ::testing::ValuesIn(all_cases()), [](const auto& info) {
  const Case& c = info.param;
  return std::string(c.group.name) + "_" + std::string(target_info(c.arch).name) + "_w" + std::to_string(c.lanes);
});

}  // namespace
}  // namespace crest_sim::test
