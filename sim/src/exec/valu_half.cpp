// f16 and 16-bit integer operations.
#include "exec/float_rules.h"
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
constexpr Type H = Type::kF16, B = Type::kB16, U = Type::kU16, W = Type::kU32;

inline int32_t s16(u32 x) { return static_cast<int16_t>(x); }
inline u32 sat_s16(int32_t x) { return static_cast<u32>(x > 32767 ? 32767 : x < -32768 ? -32768 : x); }

/// One rounding: the product is exact in f64 and the sum keeps its sticky bits (see narrow_to_odd).
inline u32 fma16(u32 a, u32 b, u32 c) {
  double p = static_cast<double>(half_to_float(a)) * static_cast<double>(half_to_float(b));
  return double_to_half(p + static_cast<double>(half_to_float(c)));
}

void by_ieee16(Wave& w, const Instruction& i) {
  ExecuteFn fn = mode_ieee(w) ? i.inner : reinterpret_cast<ExecuteFn>(const_cast<void*>(i.data));
  fn(w, i);
}

template <class Ieee, class Plain, Type... S>
ExecuteFn bind_pick16(Instruction& i, const BindContext& c) {
  i.inner = bind_general<Ieee, B, S...>(i, c);
  i.data = reinterpret_cast<const void*>(bind_general<Plain, B, S...>(i, c));
  return i.inner ? by_ieee16 : nullptr;
}
template <class Ieee, class Plain>
void add_pick(Registry& r, const char* name, Ieee, Plain) {
  r.add(name, bind_pick16<Ieee, Plain, B, B>);
}
template <class Ieee, class Plain>
void add_pick3(Registry& r, const char* name, Ieee, Plain) {
  r.add(name, bind_pick16<Ieee, Plain, B, B, B>);
}

void register_half(Registry& r) {
  add_valu<H, H, H>(r, "v_add_f16", [](float a, float b) { return a + b; });
  add_valu<H, H, H>(r, "v_sub_f16", [](float a, float b) { return a - b; });
  add_valu<H, H, H>(r, "v_subrev_f16", [](float a, float b) { return b - a; });
  add_valu<H, H, H>(r, "v_mul_f16", [](float a, float b) { return a * b; });
  add_general<B, B, B, B>(r, "v_fma_f16", [](u32 a, u32 b, u32 c) { return fma16(a, b, c); });
  r.alias("v_fmaak_f16", "v_fma_f16");
  r.alias("v_fmamk_f16", "v_fma_f16");
  r.add("v_fmac_f16", [](Instruction& i, const BindContext& c) -> ExecuteFn {
    if (i.src_count != 2) return nullptr;
    i.src[2] = i.dst[0];  // with op_sel (true16) the same half as the result
    i.src_count = 3;
    choose_half(i, c, false);
    return general<decltype([](u32 a, u32 b, u32 acc) { return fma16(a, b, acc); }), B, B, B, B>;
  });
  add_general<H, H, H, H>(r, "v_mad_f16",
                          [](float a, float b, float c) { return half_to_float(float_to_half(a * b)) + c; });
  add_pick(
      r, "v_max_f16", [](u32 a, u32 b) { return pick16<true, true>(a, b); },
      [](u32 a, u32 b) { return pick16<true, false>(a, b); });
  add_pick(
      r, "v_min_f16", [](u32 a, u32 b) { return pick16<false, true>(a, b); },
      [](u32 a, u32 b) { return pick16<false, false>(a, b); });
  add_pick3(
      r, "v_max3_f16", [](u32 a, u32 b, u32 c) { return pick16<true, true>(pick16<true, true>(a, b), c); },
      [](u32 a, u32 b, u32 c) { return pick16<true, false>(pick16<true, false>(a, b), c); });
  add_pick3(
      r, "v_min3_f16", [](u32 a, u32 b, u32 c) { return pick16<false, true>(pick16<false, true>(a, b), c); },
      [](u32 a, u32 b, u32 c) { return pick16<false, false>(pick16<false, false>(a, b), c); });
  add_pick3(
      r, "v_med3_f16", [](u32 a, u32 b, u32 c) { return median16<true>(a, b, c); },
      [](u32 a, u32 b, u32 c) { return median16<false>(a, b, c); });
  add_pick3(
      r, "v_maxmin_f16", [](u32 a, u32 b, u32 c) { return pick16<false, true>(pick16<true, true>(a, b), c); },
      [](u32 a, u32 b, u32 c) { return pick16<false, false>(pick16<true, false>(a, b), c); });
  add_pick3(
      r, "v_minmax_f16", [](u32 a, u32 b, u32 c) { return pick16<true, true>(pick16<false, true>(a, b), c); },
      [](u32 a, u32 b, u32 c) { return pick16<true, false>(pick16<false, false>(a, b), c); });
  add_general<H, H>(r, "v_floor_f16", [](float a) { return __builtin_floorf(a); });
  add_general<H, H>(r, "v_ceil_f16", [](float a) { return __builtin_ceilf(a); });
  add_general<H, H>(r, "v_trunc_f16", [](float a) { return __builtin_truncf(a); });
  add_general<H, H>(r, "v_rndne_f16", [](float a) { return __builtin_roundevenf(a); });
  add_general<H, H>(r, "v_fract_f16", [](float a) {
    float f = a - __builtin_floorf(a);
    return f > 0x1.ffcp-1f ? 0x1.ffcp-1f : f;
  });
  add_general<H, H, U>(r, "v_ldexp_f16", [](float a, u32 b) { return scale(a, s16(b)); });
  add_general<U, B>(r, "v_frexp_exp_i16_f16", [](u32 a) -> u32 {
    u32 e = (a >> 10) & 31, m = a & 0x3ff;
    if (e == 31 || (e == 0 && m == 0)) return 0;
    return static_cast<u32>(e ? static_cast<int>(e) - 14 : 8 - __builtin_clz(m));
  });
  add_general<H, B>(r, "v_frexp_mant_f16", [](u32 a) -> float {
    u32 e = (a >> 10) & 31, m = a & 0x3ff;
    if (e == 31 || (e == 0 && m == 0)) return half_to_float(a);
    if (e == 0) m = (m << (__builtin_clz(m) - 21)) & 0x3ff;
    return half_to_float((a & 0x8000) | 14u << 10 | m);
  });
}

void register_integer(Registry& r) {
  add_saturating<U, U, U>(
      r, "v_add_u16", [](u32 a, u32 b) { return a + b; },
      [](u32 a, u32 b) { return a + b > 0xffff ? 0xffffu : a + b; });
  add_saturating<U, U, U>(
      r, "v_sub_u16", [](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b) { return a > b ? a - b : 0u; });
  add_saturating<U, U, U>(
      r, "v_subrev_u16", [](u32 a, u32 b) { return b - a; }, [](u32 a, u32 b) { return b > a ? b - a : 0u; });
  add_saturating<U, U, U>(
      r, "v_add_i16", [](u32 a, u32 b) { return a + b; }, [](u32 a, u32 b) { return sat_s16(s16(a) + s16(b)); });
  add_saturating<U, U, U>(
      r, "v_sub_i16", [](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b) { return sat_s16(s16(a) - s16(b)); });
  add_valu<U, U, U>(r, "v_mul_lo_u16", [](u32 a, u32 b) { return a * b; });
  add_valu<U, U, U>(r, "v_lshlrev_b16", [](u32 a, u32 b) { return b << (a & 15); });
  add_valu<U, U, U>(r, "v_lshrrev_b16", [](u32 a, u32 b) { return b >> (a & 15); });
  add_valu<U, U, U>(r, "v_ashrrev_i16", [](u32 a, u32 b) { return static_cast<u32>(s16(b) >> (a & 15)); });
  add_valu<U, U, U>(r, "v_min_u16", [](u32 a, u32 b) { return a < b ? a : b; });
  add_valu<U, U, U>(r, "v_max_u16", [](u32 a, u32 b) { return a > b ? a : b; });
  add_valu<U, U, U>(r, "v_min_i16", [](u32 a, u32 b) { return s16(a) < s16(b) ? a : b; });
  add_valu<U, U, U>(r, "v_max_i16", [](u32 a, u32 b) { return s16(a) > s16(b) ? a : b; });
  add_general<U, U, U>(r, "v_and_b16", [](u32 a, u32 b) { return a & b; });
  add_general<U, U, U>(r, "v_or_b16", [](u32 a, u32 b) { return a | b; });
  add_general<U, U, U>(r, "v_xor_b16", [](u32 a, u32 b) { return a ^ b; });
  add_general<U, U>(r, "v_not_b16", [](u32 a) { return ~a; });
  add_general<U, U>(r, "v_mov_b16", [](u32 a) { return a; });
  for (auto [name, same] : {std::pair{"v_add_nc_u16", "v_add_u16"},
                            {"v_sub_nc_u16", "v_sub_u16"},
                            {"v_add_nc_i16", "v_add_i16"},
                            {"v_sub_nc_i16", "v_sub_i16"}})
    r.alias(name, same);
  add_saturating<U, U, U, U>(
      r, "v_mad_u16", [](u32 a, u32 b, u32 c) { return a * b + c; },
      [](u32 a, u32 b, u32 c) {
        uint64_t x = uint64_t(a) * b + c;
        return static_cast<u32>(x > 0xffff ? 0xffff : x);
      });
  add_saturating<U, U, U, U>(
      r, "v_mad_i16", [](u32 a, u32 b, u32 c) { return a * b + c; },
      [](u32 a, u32 b, u32 c) {
        int64_t x = int64_t(s16(a)) * s16(b) + s16(c);
        return static_cast<u32>(x > 32767 ? 32767 : x < -32768 ? -32768 : x);
      });
  auto lo = [](u32 a, u32 b) { return a < b ? a : b; };
  auto hi = [](u32 a, u32 b) { return a > b ? a : b; };
  using Lo = decltype(lo);
  using Hi = decltype(hi);
  add_general<U, U, U, U>(r, "v_min3_u16", [](u32 a, u32 b, u32 c) { return Lo{}(Lo{}(a, b), c); });
  add_general<U, U, U, U>(r, "v_max3_u16", [](u32 a, u32 b, u32 c) { return Hi{}(Hi{}(a, b), c); });
  add_general<U, U, U, U>(r, "v_med3_u16", [](u32 a, u32 b, u32 c) { return Hi{}(Lo{}(a, b), Lo{}(Hi{}(a, b), c)); });
  auto los = [](u32 a, u32 b) { return s16(a) < s16(b) ? a : b; };
  auto his = [](u32 a, u32 b) { return s16(a) > s16(b) ? a : b; };
  using Los = decltype(los);
  using His = decltype(his);
  add_general<U, U, U, U>(r, "v_min3_i16", [](u32 a, u32 b, u32 c) { return Los{}(Los{}(a, b), c); });
  add_general<U, U, U, U>(r, "v_max3_i16", [](u32 a, u32 b, u32 c) { return His{}(His{}(a, b), c); });
  add_general<U, U, U, U>(r, "v_med3_i16",
                          [](u32 a, u32 b, u32 c) { return His{}(Los{}(a, b), Los{}(His{}(a, b), c)); });
}

}  // namespace

void register_valu_half(Registry& r) { register_half(r); }

void register_valu_16(Registry& r) {
  register_integer(r);
  add_general<W, U, U, W>(r, "v_mad_u32_u16", [](u32 a, u32 b, u32 c) { return a * b + c; });
  add_general<W, U, U, W>(r, "v_mad_i32_i16",
                          [](u32 a, u32 b, u32 c) { return static_cast<u32>(s16(a) * s16(b)) + c; });
  add_general<W, B, B>(r, "v_pack_b32_f16", [](u32 a, u32 b) { return a | b << 16; });
}

}  // namespace crest_sim::CREST_SIM_LEVEL
