// Scalar floating point of RDNA3.5 (gfx1151).
#include "exec/float_rules.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;

template <class F>
void binary32(Wave& w, const Instruction& i) {
  w.s[i.dst[0].reg] = as_bits(F{}(as_float(scalar(w, i.src[0])), as_float(scalar(w, i.src[1]))));
}
template <class F>
void binary16(Wave& w, const Instruction& i) {
  WideMode mode(w);
  w.s[i.dst[0].reg] =
      float_to_half(F{}(half_to_float(scalar(w, i.src[0]) & 0xffff), half_to_float(scalar(w, i.src[1]) & 0xffff)));
}
template <class F>
void bits(Wave& w, const Instruction& i) {
  w.s[i.dst[0].reg] = F{}(scalar(w, i.src[0]), scalar(w, i.src[1]));
}
template <class F>
void convert(Wave& w, const Instruction& i) {
  w.s[i.dst[0].reg] = F{}(scalar(w, i.src[0]));
}
template <class F>
void compare(Wave& w, const Instruction& i, float a, float b) {
  w.s[cell::kScc] = F{}(a, b);
  static_cast<void>(i);
}
template <class F>
void compare32(Wave& w, const Instruction& i) {
  compare<F>(w, i, as_float(scalar(w, i.src[0])), as_float(scalar(w, i.src[1])));
}
template <class F>
void compare16(Wave& w, const Instruction& i) {
  compare<F>(w, i, half_to_float(scalar(w, i.src[0]) & 0xffff), half_to_float(scalar(w, i.src[1]) & 0xffff));
}

template <class F>
void add_binary(Registry& r, const std::string& name, F) {
  r.add<binary32<F>>(name + "_f32");
  r.add<binary16<F>>(name + "_f16");
}
template <class F>
void add_convert(Registry& r, const char* name, F) {
  r.add<convert<F>>(name);
}
template <class F>
void add_compare(Registry& r, const std::string& op, F) {
  r.add<compare32<F>>("s_cmp_" + op + "_f32");
  r.add<compare16<F>>("s_cmp_" + op + "_f16");
}

u32 to_i32(float a) {
  return a != a               ? 0
         : a >= 2147483648.0f ? 0x7fffffffu
         : a < -2147483648.0f ? 0x80000000u
                              : static_cast<u32>(static_cast<int32_t>(a));
}
u32 to_u32(float a) { return !(a > 0) ? 0 : a >= 4294967296.0f ? ~0u : static_cast<u32>(a); }

void fma32(Wave& w, const Instruction& i, u32 a, u32 b, u32 c) {
  w.s[i.dst[0].reg] = as_bits(__builtin_fmaf(as_float(a), as_float(b), as_float(c)));
}

}  // namespace

void register_scalar_float(Registry& r) {
  add_binary(r, "s_add", [](float a, float b) { return a + b; });
  add_binary(r, "s_sub", [](float a, float b) { return a - b; });
  add_binary(r, "s_mul", [](float a, float b) { return a * b; });
  r.add<bits<decltype([](u32 a, u32 b) { return pick32<true, true>(a, b); })>>("s_max_f32");
  r.add<bits<decltype([](u32 a, u32 b) { return pick32<false, true>(a, b); })>>("s_min_f32");
  r.add<bits<decltype([](u32 a, u32 b) { return pick16<true, true>(a & 0xffff, b & 0xffff); })>>("s_max_f16");
  r.add<bits<decltype([](u32 a, u32 b) { return pick16<false, true>(a & 0xffff, b & 0xffff); })>>("s_min_f16");
  r.add<[](Wave& w, const Instruction& i) {
    fma32(w, i, scalar(w, i.src[0]), scalar(w, i.src[1]), w.s[i.dst[0].reg]);
  }>("s_fmac_f32");
  r.add<[](Wave& w, const Instruction& i) {
    fma32(w, i, scalar(w, i.src[0]), scalar(w, i.src[1]), scalar(w, i.src[2]));
  }>("s_fmaak_f32");
  r.add<[](Wave& w, const Instruction& i) {
    fma32(w, i, scalar(w, i.src[0]), scalar(w, i.src[1]), scalar(w, i.src[2]));
  }>("s_fmamk_f32");
  r.add<[](Wave& w, const Instruction& i) {
    WideMode mode(w);
    double p = static_cast<double>(half_to_float(scalar(w, i.src[0]) & 0xffff)) *
               static_cast<double>(half_to_float(scalar(w, i.src[1]) & 0xffff));
    w.s[i.dst[0].reg] = double_to_half(p + static_cast<double>(half_to_float(w.s[i.dst[0].reg] & 0xffff)));
  }>("s_fmac_f16");
  add_convert(r, "s_cvt_f32_i32", [](u32 a) { return as_bits(static_cast<float>(static_cast<int32_t>(a))); });
  add_convert(r, "s_cvt_f32_u32", [](u32 a) { return as_bits(static_cast<float>(a)); });
  add_convert(r, "s_cvt_i32_f32", [](u32 a) { return to_i32(as_float(a)); });
  add_convert(r, "s_cvt_u32_f32", [](u32 a) { return to_u32(as_float(a)); });
  add_convert(r, "s_cvt_f16_f32", [](u32 a) { return float_to_half(as_float(a)); });
  add_convert(r, "s_cvt_f32_f16", [](u32 a) { return as_bits(half_to_float(a & 0xffff)); });
  add_convert(r, "s_cvt_hi_f32_f16", [](u32 a) { return as_bits(half_to_float(a >> 16)); });
  r.add<[](Wave& w, const Instruction& i) {
    auto rtz = [](float x) {
      u32 saved = _mm_getcsr();
      _mm_setcsr(saved | 0x6000);
      u32 h = float_to_half(x);
      _mm_setcsr(saved);
      return h;
    };
    w.s[i.dst[0].reg] = rtz(as_float(scalar(w, i.src[0]))) | rtz(as_float(scalar(w, i.src[1]))) << 16;
  }>("s_cvt_pk_rtz_f16_f32");
  auto rounding = [&]<class F>(const std::string& name, F) {
    r.add<convert<decltype([](u32 a) { return as_bits(F{}(as_float(a))); })>>(name + "_f32");
    r.add<convert<decltype([](u32 a) { return float_to_half(F{}(half_to_float(a & 0xffff))); })>>(name + "_f16");
  };
  rounding("s_floor", [](float a) { return __builtin_floorf(a); });
  rounding("s_ceil", [](float a) { return __builtin_ceilf(a); });
  rounding("s_trunc", [](float a) { return __builtin_truncf(a); });
  rounding("s_rndne", [](float a) { return __builtin_roundevenf(a); });
  add_compare(r, "lt", [](float a, float b) { return a < b; });
  add_compare(r, "le", [](float a, float b) { return a <= b; });
  add_compare(r, "gt", [](float a, float b) { return a > b; });
  add_compare(r, "ge", [](float a, float b) { return a >= b; });
  add_compare(r, "eq", [](float a, float b) { return a == b; });
  add_compare(r, "lg", [](float a, float b) { return a < b || a > b; });
  add_compare(r, "o", [](float a, float b) { return a == a && b == b; });
  add_compare(r, "u", [](float a, float b) { return a != a || b != b; });
  add_compare(r, "nlt", [](float a, float b) { return !(a < b); });
  add_compare(r, "nle", [](float a, float b) { return !(a <= b); });
  add_compare(r, "ngt", [](float a, float b) { return !(a > b); });
  add_compare(r, "nge", [](float a, float b) { return !(a >= b); });
  add_compare(r, "neq", [](float a, float b) { return !(a == b); });
  add_compare(r, "nlg", [](float a, float b) { return !(a < b || a > b); });
}

}  // namespace crest_sim::CREST_SIM_LEVEL
