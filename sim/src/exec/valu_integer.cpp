// 32-bit integer and bit operations.
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;
constexpr Type U = Type::kU32;

inline i32 s(u32 x) { return static_cast<i32>(x); }
inline u32 u(i32 x) { return static_cast<u32>(x); }
inline u32 u24(u32 x) { return x & 0xffffff; }
inline i32 s24(u32 x) { return static_cast<i32>(x << 8) >> 8; }
inline u32 min_s(u32 a, u32 b) { return s(a) < s(b) ? a : b; }
inline u32 max_s(u32 a, u32 b) { return s(a) > s(b) ? a : b; }
inline u32 min_u(u32 a, u32 b) { return a < b ? a : b; }
inline u32 max_u(u32 a, u32 b) { return a > b ? a : b; }
inline u32 saturate_s(i64 x) {
  return x > INT32_MAX ? u(INT32_MAX) : x < INT32_MIN ? u(INT32_MIN) : static_cast<u32>(x);
}
inline u32 saturate_u(u64 x) { return x > UINT32_MAX ? UINT32_MAX : static_cast<u32>(x); }

inline u32 bfe_u(u32 a, u32 offset, u32 width) {
  width &= 31;
  return (a >> (offset & 31)) & ((1u << width) - 1);
}
inline u32 bfe_s(u32 a, u32 offset, u32 width) {
  width &= 31;
  u32 left = (32 - width) & 31;
  u32 x = u(s(a) >> (offset & 31)) << left;
  return width ? u(s(x) >> left) : 0;
}

inline u32 perm(u32 a, u32 b, u32 selector) {
  u64 bytes = static_cast<u64>(a) << 32 | b;
  u32 out = 0;
  for (int k = 0; k < 4; ++k) {
    u32 sel = (selector >> (8 * k)) & 255;
    u32 plain_byte = static_cast<u32>(bytes >> (8 * (sel & 7))) & 255;
    u32 sign_byte = (bytes >> ((sel & 3) * 16 + 15)) & 1 ? 255 : 0;  // 8…11: sign of 16-bit parts
    u32 v = sel >= 13 ? 255 : sel == 12 ? 0 : sel >= 8 ? sign_byte : plain_byte;
    out |= v << (8 * k);
  }
  return out;
}

inline u32 sad_u8(u32 a, u32 b, u32 c, bool masked) {
  for (int k = 0; k < 4; ++k) {
    u32 x = (a >> 8 * k) & 255, y = (b >> 8 * k) & 255;
    c += masked && y == 0 ? 0 : x > y ? x - y : y - x;
  }
  return c;
}

/// Byte-average: lane-wise interpolation of four bytes with rounding bits in c.
inline u32 lerp(u32 a, u32 b, u32 c) {
  u32 out = 0;
  for (int k = 0; k < 4; ++k) out |= (((a >> 8 * k & 255) + (b >> 8 * k & 255) + (c >> 8 * k & 1)) >> 1) << 8 * k;
  return out;
}

/// gfx950: two shifted values saturated to bytes.
template <bool Signed>
inline u32 shift_pack(u32 a, u32 b, u32 shift) {
  auto one = [&](u32 x) {
    i32 v = s(x) >> (shift & 31), low = Signed ? -128 : 0, high = Signed ? 127 : 255;
    return static_cast<u32>(v < low ? low : v > high ? high : v) & 255;
  };
  return one(a) | one(b) << 8;
}

/// gfx950: one step of the pseudo-random generator (a 32-bit linear feedback shift register).
inline u32 prng(u32 x) { return (x << 1) ^ (x & 0x80000000 ? 0xc5u : 0u); }

void register_unary(Registry& r) {
  add_valu<U, U>(r, "v_mov_b32", [](u32 a) { return a; });
  r.alias("v_accvgpr_read_b32", "v_mov_b32");
  r.alias("v_accvgpr_write_b32", "v_mov_b32");
  r.alias("v_accvgpr_mov_b32", "v_mov_b32");
  add_valu<U, U>(r, "v_not_b32", [](u32 a) { return ~a; });
  add_valu<U, U>(r, "v_bfrev_b32", [](u32 a) { return __builtin_bitreverse32(a); });
  add_general<U, U>(r, "v_ffbh_u32", [](u32 a) { return a ? u(__builtin_clz(a)) : ~0u; });
  add_general<U, U>(r, "v_ffbl_b32", [](u32 a) { return a ? u(__builtin_ctz(a)) : ~0u; });
  add_general<U, U>(r, "v_ffbh_i32", [](u32 a) {
    u32 x = s(a) < 0 ? ~a : a;
    return x ? u(__builtin_clz(x)) : ~0u;
  });
  r.alias("v_clz_i32_u32", "v_ffbh_u32");
  r.alias("v_ctz_i32_b32", "v_ffbl_b32");
  r.alias("v_cls_i32", "v_ffbh_i32");
  // The feedback polynomial is not in a published document.
  add_general<U, U>(r, "v_prng_b32", [](u32 a) { return prng(a); }, Fidelity::kModelled);
  add_general<Type::kU16, U>(r, "v_sat_pk_u8_i16", [](u32 a) {
    auto sat = [](i32 x) { return static_cast<u32>(x < 0 ? 0 : x > 255 ? 255 : x); };
    return sat(static_cast<int16_t>(a)) | sat(static_cast<int16_t>(a >> 16)) << 8;
  });
}

void register_binary(Registry& r) {
  add_saturating<U, U, U>(
      r, "v_add_u32", [](u32 a, u32 b) { return a + b; }, [](u32 a, u32 b) { return saturate_u(u64(a) + b); });
  add_saturating<U, U, U>(
      r, "v_sub_u32", [](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b) { return a > b ? a - b : 0; });
  add_saturating<U, U, U>(
      r, "v_subrev_u32", [](u32 a, u32 b) { return b - a; }, [](u32 a, u32 b) { return b > a ? b - a : 0; });
  add_saturating<U, U, U>(
      r, "v_add_i32", [](u32 a, u32 b) { return a + b; }, [](u32 a, u32 b) { return saturate_s(i64(s(a)) + s(b)); });
  add_saturating<U, U, U>(
      r, "v_sub_i32", [](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b) { return saturate_s(i64(s(a)) - s(b)); });
  for (auto [name, same] : {std::pair{"v_add_nc_u32", "v_add_u32"},
                            {"v_sub_nc_u32", "v_sub_u32"},
                            {"v_subrev_nc_u32", "v_subrev_u32"},
                            {"v_add_nc_i32", "v_add_i32"},
                            {"v_sub_nc_i32", "v_sub_i32"}})
    r.alias(name, same);
  add_valu<U, U, U>(r, "v_and_b32", [](u32 a, u32 b) { return a & b; });
  add_valu<U, U, U>(r, "v_or_b32", [](u32 a, u32 b) { return a | b; });
  add_valu<U, U, U>(r, "v_xor_b32", [](u32 a, u32 b) { return a ^ b; });
  add_valu<U, U, U>(r, "v_xnor_b32", [](u32 a, u32 b) { return ~(a ^ b); });
  add_valu<U, U, U>(r, "v_lshlrev_b32", [](u32 a, u32 b) { return b << (a & 31); });
  add_valu<U, U, U>(r, "v_lshrrev_b32", [](u32 a, u32 b) { return b >> (a & 31); });
  add_valu<U, U, U>(r, "v_ashrrev_i32", [](u32 a, u32 b) { return u(s(b) >> (a & 31)); });
  add_valu<U, U, U>(r, "v_min_u32", [](u32 a, u32 b) { return min_u(a, b); });
  add_valu<U, U, U>(r, "v_max_u32", [](u32 a, u32 b) { return max_u(a, b); });
  add_valu<U, U, U>(r, "v_min_i32", [](u32 a, u32 b) { return min_s(a, b); });
  add_valu<U, U, U>(r, "v_max_i32", [](u32 a, u32 b) { return max_s(a, b); });
  add_valu<U, U, U>(r, "v_mul_lo_u32", [](u32 a, u32 b) { return a * b; });
  add_valu<U, U, U>(r, "v_mul_hi_u32", [](u32 a, u32 b) { return static_cast<u32>(u64(a) * b >> 32); });
  add_valu<U, U, U>(r, "v_mul_hi_i32", [](u32 a, u32 b) { return static_cast<u32>(i64(s(a)) * s(b) >> 32); });
  add_saturating<U, U, U>(
      r, "v_mul_u32_u24", [](u32 a, u32 b) { return u24(a) * u24(b); },
      [](u32 a, u32 b) { return saturate_u(u64(u24(a)) * u24(b)); });
  add_saturating<U, U, U>(
      r, "v_mul_i32_i24", [](u32 a, u32 b) { return u(s24(a)) * u(s24(b)); },
      [](u32 a, u32 b) { return saturate_s(i64(s24(a)) * s24(b)); });
  add_general<U, U, U>(r, "v_mul_hi_u32_u24",
                       [](u32 a, u32 b) { return static_cast<u32>(u64(u24(a)) * u24(b) >> 32); });
  add_general<U, U, U>(r, "v_mul_hi_i32_i24",
                       [](u32 a, u32 b) { return static_cast<u32>(i64(s24(a)) * s24(b) >> 32); });
  add_valu<U, U, U>(r, "v_bfm_b32", [](u32 a, u32 b) { return ((1u << (a & 31)) - 1) << (b & 31); });
  add_general<U, U, U>(r, "v_bcnt_u32_b32", [](u32 a, u32 b) { return u(__builtin_popcount(a)) + b; });
}

void register_ternary(Registry& r) {
  add_valu<U, U, U, U>(r, "v_lshl_or_b32", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; });
  add_valu<U, U, U, U>(r, "v_lshl_add_u32", [](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; });
  add_valu<U, U, U, U>(r, "v_add_lshl_u32", [](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); });
  add_valu<U, U, U, U>(r, "v_add3_u32", [](u32 a, u32 b, u32 c) { return a + b + c; });
  add_valu<U, U, U, U>(r, "v_or3_b32", [](u32 a, u32 b, u32 c) { return a | b | c; });
  add_valu<U, U, U, U>(r, "v_and_or_b32", [](u32 a, u32 b, u32 c) { return (a & b) | c; });
  add_valu<U, U, U, U>(r, "v_xor3_b32", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; });
  add_valu<U, U, U, U>(r, "v_xad_u32", [](u32 a, u32 b, u32 c) { return (a ^ b) + c; });
  add_valu<U, U, U, U>(r, "v_bfi_b32", [](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); });
  add_valu<U, U, U, U>(r, "v_bfe_u32", [](u32 a, u32 b, u32 c) { return bfe_u(a, b, c); });
  add_valu<U, U, U, U>(r, "v_bfe_i32", [](u32 a, u32 b, u32 c) { return bfe_s(a, b, c); });
  add_valu<U, U, U, U>(r, "v_alignbit_b32",
                       [](u32 a, u32 b, u32 c) { return static_cast<u32>((u64(a) << 32 | b) >> (c & 31)); });
  add_valu<U, U, U, U>(r, "v_alignbyte_b32",
                       [](u32 a, u32 b, u32 c) { return static_cast<u32>((u64(a) << 32 | b) >> 8 * (c & 3)); });
  add_valu<U, U, U, U>(r, "v_perm_b32", [](u32 a, u32 b, u32 c) { return perm(a, b, c); });
  add_saturating<U, U, U, U>(
      r, "v_mad_u32_u24", [](u32 a, u32 b, u32 c) { return u24(a) * u24(b) + c; },
      [](u32 a, u32 b, u32 c) { return saturate_u(u64(u24(a)) * u24(b) + c); });
  add_saturating<U, U, U, U>(
      r, "v_mad_i32_i24", [](u32 a, u32 b, u32 c) { return u(s24(a)) * u(s24(b)) + c; },
      [](u32 a, u32 b, u32 c) { return saturate_s(i64(s24(a)) * s24(b) + s(c)); });
  add_general<U, U, U, U>(r, "v_min3_u32", [](u32 a, u32 b, u32 c) { return min_u(min_u(a, b), c); });
  add_general<U, U, U, U>(r, "v_max3_u32", [](u32 a, u32 b, u32 c) { return max_u(max_u(a, b), c); });
  add_general<U, U, U, U>(r, "v_med3_u32",
                          [](u32 a, u32 b, u32 c) { return max_u(min_u(a, b), min_u(max_u(a, b), c)); });
  add_general<U, U, U, U>(r, "v_min3_i32", [](u32 a, u32 b, u32 c) { return min_s(min_s(a, b), c); });
  add_general<U, U, U, U>(r, "v_max3_i32", [](u32 a, u32 b, u32 c) { return max_s(max_s(a, b), c); });
  add_general<U, U, U, U>(r, "v_med3_i32",
                          [](u32 a, u32 b, u32 c) { return max_s(min_s(a, b), min_s(max_s(a, b), c)); });
  add_general<U, U, U, U>(r, "v_maxmin_u32", [](u32 a, u32 b, u32 c) { return min_u(max_u(a, b), c); });
  add_general<U, U, U, U>(r, "v_minmax_u32", [](u32 a, u32 b, u32 c) { return max_u(min_u(a, b), c); });
  add_general<U, U, U, U>(r, "v_maxmin_i32", [](u32 a, u32 b, u32 c) { return min_s(max_s(a, b), c); });
  add_general<U, U, U, U>(r, "v_minmax_i32", [](u32 a, u32 b, u32 c) { return max_s(min_s(a, b), c); });
  add_general<U, U, U, U>(r, "v_sad_u8", [](u32 a, u32 b, u32 c) { return sad_u8(a, b, c, false); });
  add_general<U, U, U, U>(r, "v_msad_u8", [](u32 a, u32 b, u32 c) { return sad_u8(a, b, c, true); });
  add_general<U, U, U, U>(r, "v_sad_hi_u8", [](u32 a, u32 b, u32 c) { return (sad_u8(a, b, 0, false) << 16) + c; });
  add_general<U, U, U, U>(r, "v_sad_u16", [](u32 a, u32 b, u32 c) {
    auto d = [](u32 x, u32 y) { return x > y ? x - y : y - x; };
    return d(a & 0xffff, b & 0xffff) + d(a >> 16, b >> 16) + c;
  });
  add_general<U, U, U, U>(r, "v_sad_u32", [](u32 a, u32 b, u32 c) { return (a > b ? a - b : b - a) + c; });
  add_general<Type::kU16, U, U, U>(r, "v_ashr_pk_i8_i32",
                                   [](u32 a, u32 b, u32 c) { return shift_pack<true>(a, b, c); });
  add_general<Type::kU16, U, U, U>(r, "v_ashr_pk_u8_i32",
                                   [](u32 a, u32 b, u32 c) { return shift_pack<false>(a, b, c); });
  add_general<U, U, U, U>(r, "v_lerp_u8", [](u32 a, u32 b, u32 c) { return lerp(a, b, c); });
}

/// Any function of three bits; the truth table is an immediate, so the handler reads it itself.
void bitop3(Wave& w, const Instruction& i) {
  uint64_t exec = w.exec();
  Row b0, b1, b2, result;
  bool half = i.flags & kFlagKeepHalf || i.data;
  Type type = i.data ? Type::kU16 : Type::kU32;
  const u32* a = stage(w, i, 0, type, b0, exec);
  const u32* b = stage(w, i, 1, type, b1, exec);
  const u32* c = stage(w, i, 2, type, b2, exec);
  u32 m[8];
  for (int k = 0; k < 8; ++k) m[k] = (i.offset >> k) & 1 ? ~0u : 0;
  for_lanes(w.lanes, [&](u32 l) {
    u32 lo = (~a[l] & ~b[l] & ~c[l] & m[0]) | (~a[l] & ~b[l] & c[l] & m[1]) | (~a[l] & b[l] & ~c[l] & m[2]) |
             (~a[l] & b[l] & c[l] & m[3]);
    u32 hi = (a[l] & ~b[l] & ~c[l] & m[4]) | (a[l] & ~b[l] & c[l] & m[5]) | (a[l] & b[l] & ~c[l] & m[6]) |
             (a[l] & b[l] & c[l] & m[7]);
    u32 x = lo | hi;
    result.lane[l] = half ? x & 0xffff : x;
  });
  finish(w, i, type, result, exec);
}

}  // namespace

void register_valu_integer(Registry& r) {
  register_unary(r);
  register_binary(r);
  register_ternary(r);
  r.add<bitop3>("v_bitop3_b32");
  r.add("v_bitop3_b16", [](Instruction& i, const BindContext& c) -> ExecuteFn {
    static const char is_half = 1;
    i.data = &is_half;
    choose_half(i, c, true);
    return bitop3;
  });
}

}  // namespace crest_sim::CREST_SIM_LEVEL
