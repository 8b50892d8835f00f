#include "exec/valu_wide_fast.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
using i64 = int64_t;
constexpr Wide U = Wide::kU32, D = Wide::kF64, Q = Wide::kU64;

inline int exponent64(u64 x) { return static_cast<int>(x >> 52) & 0x7ff; }
inline u64 fraction64(u64 x) { return x & 0xfffffffffffffull; }

inline double fract64(double x) {
  double r = x - __builtin_floor(x);
  return r > 0x1.fffffffffffffp-1 ? 0x1.fffffffffffffp-1 : r;
}

/// x · 2^e with one rounding: two exact steps and a last one that may round.
inline double scale64(double x, u32 e32) {
  int e = static_cast<int>(e32);
  e = e > 4500 ? 4500 : e < -4500 ? -4500 : e;
  return std::scalbn(x, e);
}

/// A shift whose amount is not a vector register has a faster way.
template <Shift Kind, class F>
void add_shift(Registry& r, const char* name, F) {
  r.add(name, [](Instruction& i, const BindContext& c) -> ExecuteFn {
    constexpr ExecuteFn full = wide<F, Q, U, Q>;
    ExecuteFn fn = bind_wide<F, Q, U, Q>(i, c);
    if (!fn || !is_unmodified(i, 2) || i.src[0].is_vector()) return fn;
    return i.src[1].is_vector() ? shift_fast<full, Kind, true> : shift_fast<full, Kind, false>;
  });
}

void register_integer(Registry& r) {
  add_shift<Shift::kLeft>(r, "v_lshlrev_b64", [](u32 a, u64 b) { return b << (a & 63); });
  add_shift<Shift::kRight>(r, "v_lshrrev_b64", [](u32 a, u64 b) { return b >> (a & 63); });
  add_shift<Shift::kRightSigned>(r, "v_ashrrev_i64",
                                 [](u32 a, u64 b) { return static_cast<u64>(static_cast<i64>(b) >> (a & 63)); });
  r.add("v_lshl_add_u64", [](Instruction& i, const BindContext& c) -> ExecuteFn {
    using Op = decltype([](u64 a, u32 b, u64 x) { return (a << (b & 7)) + x; });
    constexpr ExecuteFn full = wide<Op, Q, Q, U, Q>;
    ExecuteFn fn = bind_wide<Op, Q, Q, U, Q>(i, c);
    if (!fn || !is_unmodified(i, 3) || i.src[1].is_vector()) return fn;
    if (i.src[0].is_vector())
      return i.src[2].is_vector() ? shift_add_fast<full, true, true> : shift_add_fast<full, true, false>;
    return i.src[2].is_vector() ? shift_add_fast<full, false, true> : fn;
  });
  r.add("v_mov_b64", [](Instruction& i, const BindContext& c) -> ExecuteFn {
    using Op = decltype([](u64 a) { return a; });
    constexpr ExecuteFn full = wide<Op, Q, Q>;
    ExecuteFn fn = bind_wide<Op, Q, Q>(i, c);
    if (!fn || !is_unmodified(i, 1)) return fn;
    return i.src[0].is_vector() ? move_fast<full, true> : move_fast<full, false>;
  });
}

void register_float(Registry& r) {
  add_wide<D, D, D>(r, "v_add_f64", [](double a, double b) { return a + b; });
  add_wide<D, D, D>(r, "v_mul_f64", [](double a, double b) { return a * b; });
  add_wide<D, D, D, D>(r, "v_fma_f64", [](double a, double b, double c) { return __builtin_fma(a, b, c); });
  r.add("v_fmac_f64", [](Instruction& i, const BindContext& c) -> ExecuteFn {
    if (i.src_count != 2) return nullptr;
    i.src[2] = i.dst[0];
    i.src_count = 3;
    return bind_wide<decltype([](double a, double b, double acc) { return __builtin_fma(a, b, acc); }), D, D, D, D>(i,
                                                                                                                    c);
  });
  add_wide<D, D, D>(r, "v_max_f64",
                    [](double a, double b) { return as_double(pick64<true, true>(as_bits(a), as_bits(b))); });
  add_wide<D, D, D>(r, "v_min_f64",
                    [](double a, double b) { return as_double(pick64<false, true>(as_bits(a), as_bits(b))); });
  add_wide<D, D>(r, "v_floor_f64", [](double a) { return __builtin_floor(a); });
  add_wide<D, D>(r, "v_ceil_f64", [](double a) { return __builtin_ceil(a); });
  add_wide<D, D>(r, "v_trunc_f64", [](double a) { return __builtin_trunc(a); });
  add_wide<D, D>(r, "v_rndne_f64", [](double a) { return __builtin_roundeven(a); });
  add_wide<D, D>(r, "v_fract_f64", [](double a) { return fract64(a); });
  add_wide<D, D, U>(r, "v_ldexp_f64", [](double a, u32 b) { return scale64(a, b); });
  // The hardware gives about 29 good bits for the first three; refined by the compiler's sequences.
  add_wide<D, D>(r, "v_rcp_f64", [](double a) { return 1.0 / a; }, Fidelity::kApproximate);
  add_wide<D, D>(r, "v_rsq_f64", [](double a) { return 1.0 / __builtin_sqrt(a); }, Fidelity::kApproximate);
  add_wide<D, D>(r, "v_sqrt_f64", [](double a) { return __builtin_sqrt(a); }, Fidelity::kApproximate);
  add_wide<U, D>(r, "v_frexp_exp_i32_f64", [](double value) -> u32 {
    u64 a = as_bits(value);
    int e = exponent64(a);
    u64 m = fraction64(a);
    if (e == 0x7ff || (e == 0 && m == 0)) return 0;
    return static_cast<u32>(e ? e - 1022 : -1010 - __builtin_clzll(m));
  });
  add_wide<D, D>(r, "v_frexp_mant_f64", [](double value) -> double {
    u64 a = as_bits(value);
    int e = exponent64(a);
    u64 m = fraction64(a);
    if (e == 0x7ff || (e == 0 && m == 0)) return value;
    if (e == 0) m = fraction64(m << (__builtin_clzll(m) - 11));
    return as_double((a & 0x8000000000000000ull) | 1022ull << 52 | m);
  });
}

void register_convert(Registry& r) {
  constexpr Wide F = Wide::kF32;
  add_wide<D, F>(r, "v_cvt_f64_f32", [](float a) { return static_cast<double>(a); });
  add_wide<F, D>(r, "v_cvt_f32_f64", [](double a) { return static_cast<float>(a); });
  add_wide<D, U>(r, "v_cvt_f64_i32", [](u32 a) { return static_cast<double>(static_cast<int32_t>(a)); });
  add_wide<D, U>(r, "v_cvt_f64_u32", [](u32 a) { return static_cast<double>(a); });
  add_wide<U, D>(r, "v_cvt_i32_f64", [](double a) -> u32 {
    if (a != a) return 0;
    return a >= 2147483647.0    ? 0x7fffffffu
           : a <= -2147483648.0 ? 0x80000000u
                                : static_cast<u32>(static_cast<int32_t>(a));
  });
  add_wide<U, D>(r, "v_cvt_u32_f64", [](double a) -> u32 {
    return !(a > 0) ? 0 : a >= 4294967295.0 ? ~0u : static_cast<u32>(a);
  });
}

/// D = S0 · S1 + S2 (64 bits) with carry out.
template <bool Signed>
void multiply_add(Wave& w, const Instruction& i) {
  uint64_t exec = w.exec(), carry = 0;
  WideSource a, b, c;
  stage_wide(w, i, 0, Wide::kU32, a, exec);
  stage_wide(w, i, 1, Wide::kU32, b, exec);
  stage_wide(w, i, 2, Wide::kU64, c, exec);
  Row lo, hi, over;
  bool clamp = i.clamp;
  for_lanes(w.lanes, [&](u32 l) {
    u64 product = Signed ? static_cast<u64>(i64(static_cast<int32_t>(a.lo[l])) * static_cast<int32_t>(b.lo[l]))
                         : u64(a.lo[l]) * b.lo[l];
    u64 addend = u64(c.hi[l]) << 32 | c.lo[l], sum = product + addend;
    // Signed: carry out of the 65-bit sum of the sign-extended terms.
    u64 unsigned_over = sum < product ? 1 : 0;
    u64 signed_over = (unsigned_over + (product >> 63) + (addend >> 63)) & 1;
    bool out = Signed ? signed_over != 0 : unsigned_over != 0;
    u64 result = clamp && !Signed && out ? ~u64(0) : sum;
    over.lane[l] = out ? 0x80000000u : 0;
    lo.lane[l] = static_cast<u32>(result);
    hi.lane[l] = static_cast<u32>(result >> 32);
  });
  carry = collect_signs(over.lane, w.lanes) & exec;
  merge_row(w, row(w, i.dst[0]), lo.lane, exec);
  merge_row(w, row(w, i.dst[0]) + w.lanes, hi.lane, exec);
  if (i.dst_count > 1) set_lane_mask(w, i.dst[1].reg, carry);
}

/// 2/π bits for argument reduction: 1201 bits of 2/π, selected by the exponent of S0 and the segment S1.
void trig_preop(Wave& w, const Instruction& i) {
  static constexpr u64 kTwoOverPi[20] = {
      // first bits behind the binary point, most significant first
      0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
      0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
      0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
      0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
      0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull, 0xf0cfbc209af4361dull};
  uint64_t exec = w.exec();
  WideSource a, b;
  stage_wide(w, i, 0, Wide::kU64, a, exec);
  stage_wide(w, i, 1, Wide::kU32, b, exec);
  Row lo, hi;
  for (u32 l = 0; l < w.lanes; ++l) {
    int e = static_cast<int>(a.hi[l] >> 20) & 0x7ff, shift = static_cast<int>(b.lo[l] & 31) * 53;
    if (e > 1077) shift += e - 1077;
    // 53 bits of 2/π from bit `shift` on.
    u64 bits = 0;
    for (int k = 0; k < 53; ++k) {
      int at = shift + k;
      u64 bit = at < 1201 && at / 64 < 20 ? kTwoOverPi[at / 64] >> (63 - at % 64) & 1 : 0;
      bits = bits << 1 | bit;
    }
    int scale = -53 - shift + (e >= 1968 ? 128 : 0);
    u64 r = as_bits(std::scalbn(static_cast<double>(bits), scale));
    lo.lane[l] = static_cast<u32>(r);
    hi.lane[l] = static_cast<u32>(r >> 32);
  }
  finish_wide(w, i, Wide::kF64, lo, hi, exec);
}

/// v_pk_mov_b32: two dwords chosen by op_sel.
void packed_move(Wave& w, const Instruction& i) {
  uint64_t exec = w.exec();
  WideSource a, b;
  stage_wide(w, i, 0, Wide::kU64, a, exec);
  stage_wide(w, i, 1, Wide::kU64, b, exec);
  Row lo, hi;
  std::memcpy(lo.lane, i.src[0].mods & kHigh ? a.hi : a.lo, w.lanes * 4);
  std::memcpy(hi.lane, i.src[1].mods & kHigh ? b.hi : b.lo, w.lanes * 4);
  finish_wide(w, i, Wide::kU64, lo, hi, exec);
}

}  // namespace

void stage_wide(Wave& w, const Instruction& i, int index, Wide type, WideSource& out, uint64_t& exec) {
  if (type == Wide::kF32) {
    out.lo = stage(w, i, index, Type::kF32, out.lo_buffer, exec);
    return;
  }
  out.lo = stage_part(w, i, index, 0, out.lo_buffer, exec);
  if (type == Wide::kU32) return;
  out.hi = stage_part(w, i, index, 1, out.hi_buffer, exec);
  uint8_t mods = i.src[index].mods & (kNeg | kAbs);
  if (type != Wide::kF64 || !mods) return;
  uint32_t clear = mods & kAbs ? 0x7fffffffu : ~0u, flip = mods & kNeg ? 0x80000000u : 0;
  const uint32_t* in = out.hi;
  for_lanes(w.lanes, [&](uint32_t l) { out.hi_buffer.lane[l] = (in[l] & clear) ^ flip; });
  out.hi = out.hi_buffer.lane;
}

void finish_wide(Wave& w, const Instruction& i, Wide type, Row& lo, Row& hi, uint64_t exec) {
  if (type == Wide::kU32 || type == Wide::kF32)
    return finish(w, i, type == Wide::kF32 ? Type::kF32 : Type::kU32, lo, exec);
  bool omod = i.omod && !(w.mode & 0x80);
  if (type == Wide::kF64 && (omod || i.clamp)) {
    double factor = !omod ? 1.0 : i.omod == 1 ? 2.0 : i.omod == 2 ? 4.0 : 0.5;
    for (uint32_t l = 0; l < w.lanes; ++l) {
      double x = as_double(u64(hi.lane[l]) << 32 | lo.lane[l]);
      if (omod) x = x * factor + 0.0;
      if (i.clamp && !(x != x && !mode_dx10_clamp(w))) x = x > 1.0 ? 1.0 : x > 0.0 ? x : 0.0;
      lo.lane[l] = static_cast<u32>(as_bits(x));
      hi.lane[l] = static_cast<u32>(as_bits(x) >> 32);
    }
  }
  uint32_t* d = row(w, i.dst[0]);
  merge_row(w, d, lo.lane, exec);
  merge_row(w, d + w.lanes, hi.lane, exec);
}

void register_valu_64(Registry& r) {
  register_integer(r);
  register_float(r);
  register_convert(r);
  r.add<multiply_add<false>>("v_mad_u64_u32");
  r.add<multiply_add<true>>("v_mad_i64_i32");
  r.add<trig_preop>("v_trig_preop_f64");
  r.add<packed_move>("v_pk_mov_b32");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
