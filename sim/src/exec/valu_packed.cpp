// Packed operations: two 16-bit halves or two f32 per lane, and the mixed-precision fma.
#include "exec/float_rules.h"
#include "exec/valu_wide.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;

inline u32 fma16(u32 a, u32 b, u32 c) {
  double p = static_cast<double>(half_to_float(a)) * static_cast<double>(half_to_float(b));
  return double_to_half(p + static_cast<double>(half_to_float(c)));
}
inline int32_t s16(u32 x) { return static_cast<int16_t>(x); }
inline u32 sat_s16(int64_t x) { return static_cast<u32>(x > 32767 ? 32767 : x < -32768 ? -32768 : x) & 0xffff; }
inline u32 sat_u16(int64_t x) { return static_cast<u32>(x > 65535 ? 65535 : x < 0 ? 0 : x); }

inline u32 clamp16(u32 x, bool zero_nan) {
  if (is_nan16(x)) return zero_nan ? 0 : x;
  float v = half_to_float(x);
  return v > 1.0f ? 0x3c00 : v > 0.0f ? x : 0;
}

/// The half of a source that result half `part` (0 low, 1 high) reads, with neg_lo/neg_hi.
template <bool Float>
void stage_half(Wave& w, const Instruction& i, int index, int part, Row& out) {
  const Operand& o = i.src[index];
  u64 exec = ~u64(0);
  Row buffer;
  const u32* a = stage_part(w, i, index, 0, buffer, exec);
  u32 shift = o.mods & (part ? kHighHi : kHigh) ? 16 : 0;
  u32 flip = Float && (o.mods & (part ? kNegHi : kNeg)) ? 0x8000 : 0;
  for_lanes(w.lanes, [&](u32 l) { out.lane[l] = ((a[l] >> shift) & 0xffff) ^ flip; });
}

/// F: raw 16 bits → raw 16 bits.
template <class F, bool Float, int N>
void packed(Wave& w, const Instruction& i) {
  Row result, a[N];
  WideMode mode(w);
  for (int part = 0; part < 2; ++part) {
    for (int k = 0; k < N; ++k) stage_half<Float>(w, i, k, part, a[k]);
    bool clamp = Float && i.clamp, zero_nan = mode_dx10_clamp(w);
    for_lanes(w.lanes, [&](u32 l) {
      u32 x;
      if constexpr (N == 2)
        x = F{}(a[0].lane[l], a[1].lane[l]) & 0xffff;
      else
        x = F{}(a[0].lane[l], a[1].lane[l], a[2].lane[l]) & 0xffff;
      if (clamp) x = clamp16(x, zero_nan);
      result.lane[l] = part ? result.lane[l] | x << 16 : x;
    });
  }
  merge_row(w, row(w, i.dst[0]), result.lane, w.exec());
}

template <class F, class Saturating, bool Float, int N>
ExecuteFn bind_packed(Instruction& i, const BindContext&) {
  if (i.src_count < N || i.dpp != Dpp::kNone || i.sdwa) return nullptr;
  if (Float || !i.clamp) return packed<F, Float, N>;
  return packed<Saturating, Float, N>;
}
template <int N, class F>
void add_float(Registry& r, const char* name, F) {
  r.add(name, bind_packed<F, F, true, N>);
}
template <int N, class F, class G>
void add_integer(Registry& r, const char* name, F, G) {
  r.add(name, bind_packed<F, G, false, N>);
}

void register_half(Registry& r) {
  add_float<2>(r, "v_pk_add_f16", [](u32 a, u32 b) { return float_to_half(half_to_float(a) + half_to_float(b)); });
  add_float<2>(r, "v_pk_mul_f16", [](u32 a, u32 b) { return float_to_half(half_to_float(a) * half_to_float(b)); });
  add_float<3>(r, "v_pk_fma_f16", [](u32 a, u32 b, u32 c) { return fma16(a, b, c); });
  add_float<2>(r, "v_pk_max_f16", [](u32 a, u32 b) { return pick16<true, true>(a, b); });
  add_float<2>(r, "v_pk_min_f16", [](u32 a, u32 b) { return pick16<false, true>(a, b); });
  auto nan3 = [](u32 a, u32 b, u32 c, u32 number) {
    return is_nan16(a) ? a | 0x200 : is_nan16(b) ? b | 0x200 : is_nan16(c) ? c | 0x200 : number;
  };
  using Nan = decltype(nan3);
  add_float<3>(r, "v_pk_maximum3_f16",
               [](u32 a, u32 b, u32 c) { return Nan{}(a, b, c, pick16<true, false>(pick16<true, false>(a, b), c)); });
  add_float<3>(r, "v_pk_minimum3_f16",
               [](u32 a, u32 b, u32 c) { return Nan{}(a, b, c, pick16<false, false>(pick16<false, false>(a, b), c)); });
  // VOP2: accumulates into the destination, no op_sel.
  r.add("v_pk_fmac_f16", [](Instruction& i, const BindContext&) -> ExecuteFn {
    if (i.src_count != 2) return nullptr;
    i.src[2] = i.dst[0];
    i.src_count = 3;
    for (int k = 0; k < 3; ++k) i.src[k].mods |= kHighHi;
    return packed<decltype([](u32 a, u32 b, u32 c) { return fma16(a, b, c); }), true, 3>;
  });
}

void register_integer(Registry& r) {
  add_integer<2>(
      r, "v_pk_add_u16", [](u32 a, u32 b) { return a + b; }, [](u32 a, u32 b) { return sat_u16(int64_t(a) + b); });
  add_integer<2>(
      r, "v_pk_sub_u16", [](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b) { return sat_u16(int64_t(a) - b); });
  add_integer<2>(
      r, "v_pk_add_i16", [](u32 a, u32 b) { return a + b; },
      [](u32 a, u32 b) { return sat_s16(int64_t(s16(a)) + s16(b)); });
  add_integer<2>(
      r, "v_pk_sub_i16", [](u32 a, u32 b) { return a - b; },
      [](u32 a, u32 b) { return sat_s16(int64_t(s16(a)) - s16(b)); });
  auto same = [&]<class F>(const char* name, F f) { add_integer<2>(r, name, f, f); };
  same("v_pk_mul_lo_u16", [](u32 a, u32 b) { return a * b; });
  same("v_pk_lshlrev_b16", [](u32 a, u32 b) { return b << (a & 15); });
  same("v_pk_lshrrev_b16", [](u32 a, u32 b) { return b >> (a & 15); });
  same("v_pk_ashrrev_i16", [](u32 a, u32 b) { return static_cast<u32>(s16(b) >> (a & 15)); });
  same("v_pk_max_u16", [](u32 a, u32 b) { return a > b ? a : b; });
  same("v_pk_min_u16", [](u32 a, u32 b) { return a < b ? a : b; });
  same("v_pk_max_i16", [](u32 a, u32 b) { return s16(a) > s16(b) ? a : b; });
  same("v_pk_min_i16", [](u32 a, u32 b) { return s16(a) < s16(b) ? a : b; });
  add_integer<3>(
      r, "v_pk_mad_u16", [](u32 a, u32 b, u32 c) { return a * b + c; },
      [](u32 a, u32 b, u32 c) { return sat_u16(int64_t(a) * b + c); });
  add_integer<3>(
      r, "v_pk_mad_i16", [](u32 a, u32 b, u32 c) { return a * b + c; },
      [](u32 a, u32 b, u32 c) { return sat_s16(int64_t(s16(a)) * s16(b) + s16(c)); });
}

/// Row of the f32 that half `part` of a packed result reads, negated if asked for.
const u32* stage_single(Wave& w, const Instruction& i, int index, int part, Row& buffer) {
  const Operand& o = i.src[index];
  u64 exec = ~u64(0);
  const u32* a = stage_part(w, i, index, o.mods & (part ? kHighHi : kHigh) ? 1 : 0, buffer, exec);
  if (!(o.mods & (part ? kNegHi : kNeg))) return a;
  for_lanes(w.lanes, [&](u32 l) { buffer.lane[l] = a[l] ^ 0x80000000; });
  return buffer.lane;
}

template <class F, int N>
void packed_single(Wave& w, const Instruction& i) {
  Row result[2], buffers[3];
  for (int part = 0; part < 2; ++part) {
    const u32* a[3] = {};
    for (int k = 0; k < N; ++k) a[k] = stage_single(w, i, k, part, buffers[k]);
    for_lanes(w.lanes, [&](u32 l) {
      float c = 0;
      if constexpr (N == 3) c = as_float(a[2][l]);
      result[part].lane[l] = as_bits(F{}(as_float(a[0][l]), as_float(a[1][l]), c));
    });
    if (i.clamp) {
      bool zero_nan = mode_dx10_clamp(w);
      for_lanes(w.lanes, [&](u32 l) {
        float x = as_float(result[part].lane[l]), y = x > 1.0f ? 1.0f : x > 0.0f ? x : 0.0f;
        result[part].lane[l] = x != x && !zero_nan ? result[part].lane[l] : as_bits(y);
      });
    }
  }
  u32* d = row(w, i.dst[0]);
  merge_row(w, d, result[0].lane, w.exec());
  merge_row(w, d + w.lanes, result[1].lane, w.exec());
}

/// The usual case: all operands are register pairs in order, nothing negated, all lanes active, and no overlap that is
/// off by one register.
template <class F, int N>
void packed_single_plain(Wave& w, const Instruction& i) {
  if (w.exec() != w.full_exec) [[unlikely]]
    return packed_single<F, N>(w, i);
  u32* d = row(w, i.dst[0]);
  const u32 *a = row(w, i.src[0]), *b = row(w, i.src[1]), *c = N == 3 ? row(w, i.src[2]) : a;
  u32 lanes = w.lanes;
  for (int part = 0; part < 2; ++part, d += lanes, a += lanes, b += lanes, c += lanes)
    for_lanes(lanes,
              [&](u32 l) { d[l] = as_bits(F{}(as_float(a[l]), as_float(b[l]), N == 3 ? as_float(c[l]) : 0.0f)); });
}

template <class F, int N>
ExecuteFn bind_packed_single(Instruction& i, const BindContext&) {
  if (i.src_count < N) return nullptr;
  bool simple = !i.clamp;
  for (int k = 0; k < N; ++k)
    simple = simple && i.src[k].is_vector() && i.src[k].mods == kHighHi && i.src[k].reg + 1 != i.dst[0].reg &&
             i.dst[0].reg + 1 != i.src[k].reg;
  return simple ? packed_single_plain<F, N> : packed_single<F, N>;
}

/// Sources are f32, or halves where op_sel_hi says so.
const u32* stage_mixed(Wave& w, const Instruction& i, int index, Row& buffer) {
  const Operand& o = i.src[index];
  u64 exec = ~u64(0);
  if (!(o.mods & kHighHi)) {
    Instruction plain_source = i;
    plain_source.src[index].mods &= kNeg | kAbs;
    return stage(w, plain_source, index, Type::kF32, buffer, exec);
  }
  const u32* a = stage_part(w, i, index, 0, buffer, exec);
  u32 shift = o.mods & kHigh ? 16 : 0;
  bool absolute = o.mods & kAbs, negative = o.mods & kNeg;
  for_lanes(w.lanes, [&](u32 l) {
    u32 bits = as_bits(half_to_float((a[l] >> shift) & 0xffff));
    bits = absolute ? bits & 0x7fffffff : bits;
    buffer.lane[l] = negative ? bits ^ 0x80000000 : bits;
  });
  return buffer.lane;
}

/// Part: 0 whole f32, 1 low half, 2 high half.
template <int Part>
void fma_mix(Wave& w, const Instruction& i) {
  Row buffers[3], result;
  const u32* a[3];
  for (int k = 0; k < 3; ++k) a[k] = stage_mixed(w, i, k, buffers[k]);
  for_lanes(w.lanes, [&](u32 l) {
    result.lane[l] = as_bits(__builtin_fmaf(as_float(a[0][l]), as_float(a[1][l]), as_float(a[2][l])));
  });
  Instruction whole = i;
  whole.dst[0].mods = Part == 2 ? kHigh : 0;
  if (Part != 0) {
    WideMode mode(w);
    for_lanes(w.lanes, [&](u32 l) { result.lane[l] = float_to_half(as_float(result.lane[l])); });
    whole.flags |= kFlagKeepHalf;
  }
  finish(w, whole, Part == 0 ? Type::kF32 : Type::kF16, result, w.exec());
}

}  // namespace

void register_valu_packed(Registry& r) {
  register_half(r);
  register_integer(r);
  r.add("v_pk_add_f32", bind_packed_single<decltype([](float a, float b, float) { return a + b; }), 2>);
  r.add("v_pk_mul_f32", bind_packed_single<decltype([](float a, float b, float) { return a * b; }), 2>);
  r.add("v_pk_fma_f32",
        bind_packed_single<decltype([](float a, float b, float c) { return __builtin_fmaf(a, b, c); }), 3>);
  r.add<fma_mix<0>>("v_fma_mix_f32");
  r.add<fma_mix<1>>("v_fma_mixlo_f16");
  r.add<fma_mix<2>>("v_fma_mixhi_f16");
  r.add<fma_mix<0>>("v_mad_mix_f32");
  r.add<fma_mix<1>>("v_mad_mixlo_f16");
  r.add<fma_mix<2>>("v_mad_mixhi_f16");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
