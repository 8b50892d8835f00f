// f32 arithmetic.
#include "exec/float_rules.h"
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
constexpr Type F = Type::kF32, B = Type::kB32, U = Type::kU32;

/// Runs the handler for MODE.ieee = 1 (inner) or 0 (data).
void by_ieee(Wave& w, const Instruction& i) {
  ExecuteFn fn = mode_ieee(w) ? i.inner : reinterpret_cast<ExecuteFn>(const_cast<void*>(i.data));
  fn(w, i);
}

/// minNum/maxNum of numbers.
template <bool Max>
inline u32 pick32_numbers(u32 a, u32 b) {
  float x = as_float(a), y = as_float(b);
  return (Max ? x > y : x < y) ? a : x == y ? (Max ? a & b : a | b) : b;
}

/// True if any lane holds a NaN.
inline bool any_nan(const u32* a, u32 lanes) {
  u32 any = 0;
  for (u32 base = 0; base < lanes; base += 32) {
#pragma clang loop vectorize(enable) interleave_count(2) unroll(disable)
    for (u32 l = 0; l < 32; ++l) any |= static_cast<u32>((a[base + l] & 0x7fffffff) > 0x7f800000);
  }
  return any != 0;
}

/// v_max_f32, v_min3_f32 …: rows without NaNs, which is nearly always, take a short way. `First` is max for the first
/// pair, `Second` for the third operand; the other cases go to the full rules.
template <bool First, bool Second, int N>
void pick_rows(Wave& w, const Instruction& i) {
  Row buffers[N];
  const u32* a[N];
  uint64_t exec = w.exec();
  bool nan = false;
  for (int k = 0; k < N; ++k) {
    a[k] = stage(w, i, k, B, buffers[k], exec);
    nan = nan || any_nan(a[k], w.lanes);
  }
  if (exec != w.full_exec || nan) return by_ieee(w, i);
  u32* d = row(w, i.dst[0]);
  for_lanes(w.lanes, [&](u32 l) {
    u32 r = pick32_numbers<First>(a[0][l], a[1][l]);
    if constexpr (N == 3) r = pick32_numbers<Second>(r, a[2][l]);
    d[l] = r;
  });
}

template <class Ieee, class Plain, Type D, Type... S>
ExecuteFn bind_by_ieee(Instruction& i, const BindContext& c) {
  i.inner = bind_valu<Ieee, D, S...>(i, c);
  i.data = reinterpret_cast<const void*>(bind_valu<Plain, D, S...>(i, c));
  return i.inner ? by_ieee : nullptr;
}

template <bool Max, class Ieee, class Plain>
void add_pick(Registry& r, const char* name, Ieee, Plain) {
  r.add(name, [](Instruction& i, const BindContext& c) -> ExecuteFn {
    ExecuteFn full = bind_by_ieee<Ieee, Plain, B, B, B>(i, c);
    return full && i.dpp == Dpp::kNone && !i.sdwa && !i.clamp && !i.omod ? pick_rows<Max, Max, 2> : full;
  });
}
template <bool First, bool Second, class Ieee, class Plain>
void add_pick3(Registry& r, const char* name, Ieee, Plain) {
  r.add(name, [](Instruction& i, const BindContext& c) -> ExecuteFn {
    ExecuteFn full = bind_by_ieee<Ieee, Plain, B, B, B, B>(i, c);
    return full && !i.dst[0].mods && i.dpp == Dpp::kNone && !i.clamp && !i.omod ? pick_rows<First, Second, 3> : full;
  });
}
template <class Ieee, class Plain>
void add_median(Registry& r, const char* name, Ieee, Plain) {
  r.add(name, bind_by_ieee<Ieee, Plain, B, B, B, B>);
}

inline float legacy_mul(float a, float b) { return a == 0 || b == 0 ? 0.0f : a * b; }

void register_arithmetic(Registry& r) {
  add_valu<F, F, F>(r, "v_add_f32", [](float a, float b) { return a + b; });
  add_valu<F, F, F>(r, "v_sub_f32", [](float a, float b) { return a - b; });
  add_valu<F, F, F>(r, "v_subrev_f32", [](float a, float b) { return b - a; });
  add_valu<F, F, F>(r, "v_mul_f32", [](float a, float b) { return a * b; });
  add_general<F, F, F>(r, "v_mul_legacy_f32", [](float a, float b) { return legacy_mul(a, b); });
  r.alias("v_mul_dx9_zero_f32", "v_mul_legacy_f32");
  add_valu<F, F, F, F>(r, "v_fma_f32", [](float a, float b, float c) { return __builtin_fmaf(a, b, c); });
  r.alias("v_fmaak_f32", "v_fma_f32");
  r.alias("v_fmamk_f32", "v_fma_f32");
  add_accumulate<F, F, F, F>(r, "v_fmac_f32", [](float a, float b, float c) { return __builtin_fmaf(a, b, c); });
  add_general<F, F, F, F>(r, "v_fma_dx9_zero_f32", [](float a, float b, float c) {
    return a == 0 || b == 0 ? 0.0f + c : __builtin_fmaf(a, b, c);
  });
  r.alias("v_fma_legacy_f32", "v_fma_dx9_zero_f32");
  r.add("v_fmac_dx9_zero_f32", bind_accumulate<decltype([](float a, float b, float c) {
                                                 return a == 0 || b == 0 ? 0.0f + c : __builtin_fmaf(a, b, c);
                                               }),
                                               F, F, F, F>);
  r.alias("v_fmac_legacy_f32", "v_fmac_dx9_zero_f32");
  // Unfused multiply-add of older gfx9 parts: denormals are always flushed there.
  add_general<F, F, F, F>(r, "v_mad_f32", [](float a, float b, float c) { return a * b + c; });
  add_accumulate<F, F, F, F>(r, "v_mac_f32", [](float a, float b, float c) { return a * b + c; });
  r.alias("v_madak_f32", "v_mad_f32");
  r.alias("v_madmk_f32", "v_mad_f32");
}

void register_select(Registry& r) {
  add_pick<true>(
      r, "v_max_f32", [](u32 a, u32 b) { return pick32<true, true>(a, b); },
      [](u32 a, u32 b) { return pick32<true, false>(a, b); });
  add_pick<false>(
      r, "v_min_f32", [](u32 a, u32 b) { return pick32<false, true>(a, b); },
      [](u32 a, u32 b) { return pick32<false, false>(a, b); });
  add_pick3<true, true>(
      r, "v_max3_f32", [](u32 a, u32 b, u32 c) { return pick32<true, true>(pick32<true, true>(a, b), c); },
      [](u32 a, u32 b, u32 c) { return pick32<true, false>(pick32<true, false>(a, b), c); });
  add_pick3<false, false>(
      r, "v_min3_f32", [](u32 a, u32 b, u32 c) { return pick32<false, true>(pick32<false, true>(a, b), c); },
      [](u32 a, u32 b, u32 c) { return pick32<false, false>(pick32<false, false>(a, b), c); });
  add_median(
      r, "v_med3_f32", [](u32 a, u32 b, u32 c) { return median32<true>(a, b, c); },
      [](u32 a, u32 b, u32 c) { return median32<false>(a, b, c); });
  add_pick3<true, false>(
      r, "v_maxmin_f32", [](u32 a, u32 b, u32 c) { return pick32<false, true>(pick32<true, true>(a, b), c); },
      [](u32 a, u32 b, u32 c) { return pick32<false, false>(pick32<true, false>(a, b), c); });
  add_pick3<false, true>(
      r, "v_minmax_f32", [](u32 a, u32 b, u32 c) { return pick32<true, true>(pick32<false, true>(a, b), c); },
      [](u32 a, u32 b, u32 c) { return pick32<true, false>(pick32<false, false>(a, b), c); });
  // gfx950: IEEE-754-2019 minimum and maximum of three; a NaN wins.
  auto nan_or = [](u32 a, u32 b, u32 c, u32 number) {
    return is_nan(a) ? a | 0x400000 : is_nan(b) ? b | 0x400000 : is_nan(c) ? c | 0x400000 : number;
  };
  using Nan = decltype(nan_or);
  r.add("v_maximum3_f32", bind_general<decltype([](u32 a, u32 b, u32 c) {
                                         return Nan{}(a, b, c, pick32<true, false>(pick32<true, false>(a, b), c));
                                       }),
                                       B, B, B, B>);
  r.add("v_minimum3_f32", bind_general<decltype([](u32 a, u32 b, u32 c) {
                                         return Nan{}(a, b, c, pick32<false, false>(pick32<false, false>(a, b), c));
                                       }),
                                       B, B, B, B>);
}

void register_rounding(Registry& r) {
  add_valu<F, F>(r, "v_floor_f32", [](float a) { return __builtin_floorf(a); });
  add_valu<F, F>(r, "v_ceil_f32", [](float a) { return __builtin_ceilf(a); });
  add_valu<F, F>(r, "v_trunc_f32", [](float a) { return __builtin_truncf(a); });
  add_valu<F, F>(r, "v_rndne_f32", [](float a) { return __builtin_roundevenf(a); });
  add_valu<F, F>(r, "v_fract_f32", [](float a) { return fract(a); });
  add_valu<F, F, U>(r, "v_ldexp_f32", [](float a, u32 b) { return scale(a, static_cast<int32_t>(b)); });
  add_general<U, B>(r, "v_frexp_exp_i32_f32", [](u32 a) -> u32 {
    u32 e = (a >> 23) & 255, m = a & 0x7fffff;
    if (e == 255 || (e == 0 && m == 0)) return 0;
    return static_cast<u32>(e ? static_cast<int>(e) - 126 : -117 - __builtin_clz(m));
  });
  add_general<F, B>(r, "v_frexp_mant_f32", [](u32 a) -> float {
    u32 e = (a >> 23) & 255, m = a & 0x7fffff;
    if (e == 255 || (e == 0 && m == 0)) return as_float(a);
    if (e == 0) m = (m << (__builtin_clz(m) - 8)) & 0x7fffff;
    return as_float((a & 0x80000000) | 126u << 23 | m);
  });
}

}  // namespace

void register_valu_float(Registry& r) {
  register_arithmetic(r);
  register_select(r);
  register_rounding(r);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
