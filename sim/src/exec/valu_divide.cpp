// The steps of IEEE division: v_div_scale, v_div_fmas, v_div_fixup. Rules: AMD's ISA documents with the corrections
// that tinygrad found on hardware (a denormal reciprocal with a denormal quotient scales the denominator down).
#include "exec/valu_wide.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

/// What the rules need to know of a format.
struct Single {
  static constexpr int kGap = 96, kShift = 64, kTiny = 23, kMinExponent = -126, kBias = 127, kFull = 255,
                       kUnderflow = -150;
  using Bits = u32;
  static int exponent(u32 x) { return static_cast<int>(x >> 23) & 255; }
  static u32 fraction(u32 x) { return x & 0x7fffff; }
  static double value(u32 x) { return as_float(x); }
  static u32 scaled(u32 x, int e) { return as_bits(scale(as_float(x), e)); }
  static constexpr u32 kSign = 0x80000000, kInf = 0x7f800000, kNan = 0xffc00000, kQuiet = 0x400000;
};
struct Double {
  static constexpr int kGap = 768, kShift = 128, kTiny = 53, kMinExponent = -1022, kBias = 1023, kFull = 0x7ff,
                       kUnderflow = -1075;
  using Bits = u64;
  static int exponent(u64 x) { return static_cast<int>(x >> 52) & 0x7ff; }
  static u64 fraction(u64 x) { return x & 0xfffffffffffffull; }
  static double value(u64 x) { return as_double(x); }
  static u64 scaled(u64 x, int e) { return as_bits(std::scalbn(as_double(x), e)); }
  static constexpr u64 kSign = 0x8000000000000000ull, kInf = 0x7ff0000000000000ull, kNan = 0xfff8000000000000ull,
                       kQuiet = 0x8000000000000ull;
};

/// |1/x| or |n/d| below the normal range. Exponents decide, so that f64 needs no wider type.
template <class T>
bool quotient_is_denormal(typename T::Bits n, typename T::Bits d) {
  int en = T::exponent(n), ed = T::exponent(d);
  if (en == T::kFull || ed == T::kFull) return false;
  auto normalise = [](typename T::Bits x, int& e) -> double {
    double m = T::value(x & ~T::kSign);
    if (e == 0) {  // denormal: find its exponent
      int k = 0;
      m = std::frexp(m, &k);
      e = k + T::kBias - 1;
      return m * 2;
    }
    return std::scalbn(m, T::kBias - e);
  };
  double mn = normalise(n, en), md = normalise(d, ed);
  if (mn == 0 || md == 0) return false;
  int e = en - ed;
  if (mn < md) --e;
  return e < T::kMinExponent;
}

template <class T>
typename T::Bits div_scale(typename T::Bits s0, typename T::Bits s1, typename T::Bits s2, bool& vcc) {
  using Bits = typename T::Bits;
  Bits one = static_cast<Bits>(T::kBias) << (sizeof(Bits) == 4 ? 23 : 52);
  vcc = false;
  if ((s1 & ~T::kSign) == 0 || (s2 & ~T::kSign) == 0) return T::kNan;
  int e1 = T::exponent(s1), e2 = T::exponent(s2);
  bool is_denominator = s0 == s1, is_numerator = s0 == s2;
  if (e2 - e1 >= T::kGap) {
    vcc = true;
    return is_denominator ? T::scaled(s0, T::kShift) : s0;
  }
  if (e1 == 0) return T::scaled(s0, T::kShift);
  bool reciprocal = quotient_is_denormal<T>(one, s1), quotient = quotient_is_denormal<T>(s2, s1);
  if (reciprocal && quotient) {
    vcc = true;
    return is_denominator ? T::scaled(s0, -T::kShift) : s0;
  }
  if (reciprocal) return T::scaled(s0, -T::kShift);
  if (quotient) {
    vcc = true;
    return is_numerator && !is_denominator ? T::scaled(s0, T::kShift) : s0;
  }
  if (e2 <= T::kTiny) return T::scaled(s0, T::kShift);
  return s0;
}

/// The f64 form; f32 has its own below.
template <class T>
typename T::Bits div_fixup(typename T::Bits s0, typename T::Bits s1, typename T::Bits s2) {
  using Bits = typename T::Bits;
  Bits sign = (s1 ^ s2) & T::kSign, d = s1 & ~T::kSign, n = s2 & ~T::kSign, q = s0 & ~T::kSign;
  if (n > T::kInf) return s2 | T::kQuiet;
  if (d > T::kInf) return s1 | T::kQuiet;
  if ((d == 0 && n == 0) || (d == T::kInf && n == T::kInf)) return T::kNan;
  if (d == 0 || n == T::kInf) return sign | T::kInf;
  if (d == T::kInf || n == 0) return sign;
  if (T::exponent(s2) - T::exponent(s1) < T::kUnderflow) return sign;
  if (q > T::kInf) return sign | T::kInf;
  return sign | q;
}

/// Lanes that may need scaling: all but ordinary numbers whose reciprocal and quotient are in the normal range, with a
/// margin.
u64 lanes_to_scale(const u32* denominator, const u32* numerator, u32 lanes) {
  Row special;
  for_lanes(lanes, [&](u32 l) {
    int e1 = static_cast<int>(denominator[l] >> 23) & 255, e2 = static_cast<int>(numerator[l] >> 23) & 255;
    bool yes =
        (e1 < 1) | (e1 > 252) | (e2 <= Single::kTiny) | (e2 > 254) | (e2 - e1 >= Single::kGap) | (e2 - e1 < -124);
    special.lane[l] = yes ? ~0u : 0u;
  });
  return collect_signs(special.lane, lanes);
}

void div_scale32(Wave& w, const Instruction& i) {
  u64 exec = w.exec(), mask = 0;
  Row b0, b1, b2, result;
  const u32* a = stage(w, i, 0, Type::kF32, b0, exec);
  const u32* b = stage(w, i, 1, Type::kF32, b1, exec);
  const u32* c = stage(w, i, 2, Type::kF32, b2, exec);
  std::memcpy(result.lane, a, w.lanes * 4);
  if (u64 special = lanes_to_scale(b, c, w.lanes) & exec) {
    uint32_t saved = _mm_getcsr();
    _mm_setcsr(w.mxcsr & ~0x8040u);  // the scaling itself handles denormals whatever MODE says
    for_active(special, [&](int l) {
      bool vcc;
      result.lane[l] = div_scale<Single>(a[l], b[l], c[l], vcc);
      mask |= static_cast<u64>(vcc) << l;
    });
    _mm_setcsr(saved);
  }
  finish(w, i, Type::kF32, result, exec);
  if (i.dst_count > 1) set_lane_mask(w, i.dst[1].reg, mask & exec);
}

void div_scale64(Wave& w, const Instruction& i) {
  u64 exec = w.exec(), mask = 0;
  WideSource a, b, c;
  stage_wide(w, i, 0, Wide::kF64, a, exec);
  stage_wide(w, i, 1, Wide::kF64, b, exec);
  stage_wide(w, i, 2, Wide::kF64, c, exec);
  Row lo, hi;
  WideMode mode(w);
  for (u32 l = 0; l < w.lanes; ++l) {
    bool vcc;
    u64 r =
        div_scale<Double>(load_wide<Wide::kU64>(a, l), load_wide<Wide::kU64>(b, l), load_wide<Wide::kU64>(c, l), vcc);
    lo.lane[l] = static_cast<u32>(r);
    hi.lane[l] = static_cast<u32>(r >> 32);
    mask |= static_cast<u64>(vcc) << l;
  }
  finish_wide(w, i, Wide::kF64, lo, hi, exec);
  if (i.dst_count > 1) set_lane_mask(w, i.dst[1].reg, mask & exec);
}

/// fma, scaled by a power of two in the lanes of VCC; the f32 form rounds once.
void div_fmas32(Wave& w, const Instruction& i) {
  u64 exec = w.exec(), vcc = w.vcc();
  Row b0, b1, b2, result;
  const u32* a = stage(w, i, 0, Type::kF32, b0, exec);
  const u32* b = stage(w, i, 1, Type::kF32, b1, exec);
  const u32* c = stage(w, i, 2, Type::kF32, b2, exec);
  for_lanes(w.lanes,
            [&](u32 l) { result.lane[l] = as_bits(__builtin_fmaf(as_float(a[l]), as_float(b[l]), as_float(c[l]))); });
  for_active(vcc & exec, [&](int l) {
    double wide = __builtin_fma(static_cast<double>(as_float(a[l])), static_cast<double>(as_float(b[l])),
                                static_cast<double>(as_float(c[l])));
    result.lane[l] = as_bits(static_cast<float>(wide * (Single::exponent(c[l]) > 127 ? 0x1p64 : 0x1p-64)));
  });
  finish(w, i, Type::kF32, result, exec);
}

void div_fmas64(Wave& w, const Instruction& i) {
  u64 exec = w.exec(), vcc = w.vcc();
  WideSource a, b, c;
  stage_wide(w, i, 0, Wide::kF64, a, exec);
  stage_wide(w, i, 1, Wide::kF64, b, exec);
  stage_wide(w, i, 2, Wide::kF64, c, exec);
  Row lo, hi;
  WideMode mode(w);
  for (u32 l = 0; l < w.lanes; ++l) {
    double r = __builtin_fma(load_wide<Wide::kF64>(a, l), load_wide<Wide::kF64>(b, l), load_wide<Wide::kF64>(c, l));
    if ((vcc >> l) & 1) r = std::scalbn(r, Double::exponent(load_wide<Wide::kU64>(c, l)) > 1023 ? 128 : -128);
    lo.lane[l] = static_cast<u32>(as_bits(r));
    hi.lane[l] = static_cast<u32>(as_bits(r) >> 32);
  }
  finish_wide(w, i, Wide::kF64, lo, hi, exec);
}

/// The rules of div_fixup as selections, the strongest rule last, so that the loop vectorises.
inline u32 div_fixup32(u32 s0, u32 s1, u32 s2) {
  u32 sign = (s1 ^ s2) & Single::kSign, d = s1 & ~Single::kSign, n = s2 & ~Single::kSign, q = s0 & ~Single::kSign;
  constexpr u32 inf = Single::kInf;
  int gap = static_cast<int>(n >> 23) - static_cast<int>(d >> 23);
  u32 r = q > inf ? sign | inf : sign | q;
  r = gap < Single::kUnderflow ? sign : r;
  r = ((d == inf) | (n == 0)) ? sign : r;
  r = ((d == 0) | (n == inf)) ? sign | inf : r;
  r = (((d == 0) & (n == 0)) | ((d == inf) & (n == inf))) ? Single::kNan : r;
  r = d > inf ? s1 | Single::kQuiet : r;
  return n > inf ? s2 | Single::kQuiet : r;
}

inline u32 div_fixup16(u32 s0, u32 s1, u32 s2) {
  u32 sign = (s1 ^ s2) & 0x8000, d = s1 & 0x7fff, n = s2 & 0x7fff;
  if (n > 0x7c00) return s2 | 0x200;
  if (d > 0x7c00) return s1 | 0x200;
  if ((d == 0 && n == 0) || (d == 0x7c00 && n == 0x7c00)) return 0xfe00;
  if (d == 0 || n == 0x7c00) return sign | 0x7c00;
  if (d == 0x7c00 || n == 0) return sign;
  return sign | (s0 & 0x7fff);
}

}  // namespace

void register_valu_divide(Registry& r) {
  r.add<div_scale32>("v_div_scale_f32");
  r.add<div_scale64>("v_div_scale_f64");
  r.add<div_fmas32>("v_div_fmas_f32");
  r.add<div_fmas64>("v_div_fmas_f64");
  add_general<Type::kB32, Type::kB32, Type::kB32, Type::kB32>(r, "v_div_fixup_f32",
                                                              [](u32 a, u32 b, u32 c) { return div_fixup32(a, b, c); });
  add_general<Type::kB16, Type::kB16, Type::kB16, Type::kB16>(r, "v_div_fixup_f16",
                                                              [](u32 a, u32 b, u32 c) { return div_fixup16(a, b, c); });
  add_wide<Wide::kU64, Wide::kF64, Wide::kF64, Wide::kF64>(r, "v_div_fixup_f64", [](double a, double b, double c) {
    return div_fixup<Double>(as_bits(a), as_bits(b), as_bits(c));
  });
}

}  // namespace crest_sim::CREST_SIM_LEVEL
