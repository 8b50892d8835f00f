// Sums of absolute differences over 64 bits, cube map coordinates, parameter interpolation, and other operations that
// compute kernels rarely use.
#include "exec/float_rules.h"
#include "exec/valu_wide.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
constexpr Type F = Type::kF32, U = Type::kU32;

/// Four sums: window k of S0 (bytes k … k + 3) against the bytes of S1. Masked: bytes of S1 that are 0 do not count.
template <bool Masked>
u32 window_sum(u64 a, u32 b, int window) {
  u32 sum = 0, part = static_cast<u32>(a >> 8 * window);
  for (int k = 0; k < 4; ++k) {
    u32 x = (part >> 8 * k) & 255, y = (b >> 8 * k) & 255;
    sum += Masked && y == 0 ? 0 : x > y ? x - y : y - x;
  }
  return sum;
}

/// v_qsad_pk_u16_u8, v_mqsad_pk_u16_u8: sums added to the four 16-bit parts of S2.
template <bool Masked>
void sad_packed(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  WideSource a, b, c;
  stage_wide(w, i, 0, Wide::kU64, a, exec);
  stage_wide(w, i, 1, Wide::kU32, b, exec);
  stage_wide(w, i, 2, Wide::kU64, c, exec);
  Row lo, hi;
  for (u32 l = 0; l < w.lanes; ++l) {
    u64 x = load_wide<Wide::kU64>(a, l), addend = load_wide<Wide::kU64>(c, l), r = 0;
    for (int k = 0; k < 4; ++k) {
      u32 sum = window_sum<Masked>(x, b.lo[l], k) + (static_cast<u32>(addend >> 16 * k) & 0xffff);
      if (i.clamp && sum > 0xffff) sum = 0xffff;
      r |= static_cast<u64>(sum & 0xffff) << 16 * k;
    }
    lo.lane[l] = static_cast<u32>(r);
    hi.lane[l] = static_cast<u32>(r >> 32);
  }
  merge_row(w, row(w, i.dst[0]), lo.lane, exec);
  merge_row(w, row(w, i.dst[0]) + w.lanes, hi.lane, exec);
}

/// v_mqsad_u32_u8: the same with 32-bit sums in four registers.
void sad_wide(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  WideSource a, b;
  stage_wide(w, i, 0, Wide::kU64, a, exec);
  stage_wide(w, i, 1, Wide::kU32, b, exec);
  Row sums[4];
  for (u32 k = 0; k < 4; ++k) {
    const Operand& c = i.src[2];
    u32 literal = c.is_literal() && k ? static_cast<u32>(k == 1 ? c.literal >> 32 : 0) : scalar(w, c);
    for (u32 l = 0; l < w.lanes; ++l) {
      u64 sum = u64(window_sum<true>(load_wide<Wide::kU64>(a, l), b.lo[l], static_cast<int>(k))) +
                (c.is_vector()   ? row(w, c)[k * w.lanes + l]
                 : c.is_scalar() ? w.s[c.reg + k]
                                 : literal);
      sums[k].lane[l] = i.clamp && sum >> 32 ? ~0u : static_cast<u32>(sum);
    }
  }
  for (u32 k = 0; k < 4; ++k) merge_row(w, row(w, i.dst[0]) + k * w.lanes, sums[k].lane, exec);
}

/// Which axis is largest in magnitude: 2 z, 1 y, 0 x.
int major_axis(float x, float y, float z) {
  float ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  return az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;
}

void register_cube(Registry& r) {
  add_general<F, F, F, F>(r, "v_cubeid_f32", [](float x, float y, float z) {
    int axis = major_axis(x, y, z);
    float value = axis == 2 ? z : axis == 1 ? y : x;
    return static_cast<float>(2 * axis + (value < 0 ? 1 : 0));
  });
  add_general<F, F, F, F>(r, "v_cubema_f32", [](float x, float y, float z) {
    int axis = major_axis(x, y, z);
    return 2 * (axis == 2 ? z : axis == 1 ? y : x);
  });
  add_general<F, F, F, F>(r, "v_cubesc_f32", [](float x, float y, float z) {
    int axis = major_axis(x, y, z);
    return axis == 2 ? (z < 0 ? -x : x) : axis == 1 ? x : x < 0 ? z : -z;
  });
  add_general<F, F, F, F>(r, "v_cubetc_f32",
                          [](float x, float y, float z) { return major_axis(x, y, z) == 1 ? (y < 0 ? -z : z) : -y; });
}

/// Lane `from` of every group of four.
void broadcast_in_quad(Row& out, const u32* in, u32 from, u32 lanes) {
  Row copy;
  std::memcpy(copy.lane, in, lanes * 4);
  for (u32 l = 0; l < lanes; ++l) out.lane[l] = copy.lane[(l & ~3u) + from];
}

/// v_interp_p10: P10 (lane 1 of a quad) · I + P0 (lane 0); v_interp_p2: P20 (lane 2) · J + the first step. `Half`: the
/// parameters are f16. `HalfResult`: the result is.
template <u32 From, bool AddsLane0, bool Half, bool HalfResult, bool TowardsZero>
void interpolate(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  constexpr Type parameter = Half ? Type::kB16 : Type::kB32;
  constexpr Type addend = Half && AddsLane0 ? Type::kB16 : Type::kB32;
  Row b0, b1, b2, first, base, result;
  broadcast_in_quad(first, stage(w, i, 0, parameter, b0, exec), From, w.lanes);
  const u32* weight = stage(w, i, 1, Type::kB32, b1, exec);
  const u32* c = stage(w, i, 2, addend, b2, exec);
  if (AddsLane0)
    broadcast_in_quad(base, c, 0, w.lanes);
  else
    std::memcpy(base.lane, c, w.lanes * 4);
  u32 saved = _mm_getcsr();
  if (TowardsZero) _mm_setcsr(saved | 0x6000);
  for (u32 l = 0; l < w.lanes; ++l) {
    float p = Half ? half_to_float(first.lane[l] & 0xffff) : as_float(first.lane[l]);
    float q = addend == Type::kB16 ? half_to_float(base.lane[l] & 0xffff) : as_float(base.lane[l]);
    float x = __builtin_fmaf(p, as_float(weight[l]), q);
    result.lane[l] = HalfResult ? float_to_half(x) : as_bits(x);
  }
  if (TowardsZero) _mm_setcsr(saved);
  finish(w, i, HalfResult ? Type::kF16 : Type::kF32, result, exec);
}

void register_interpolation(Registry& r) {
  constexpr Fidelity kModelled = Fidelity::kModelled;
  r.add<interpolate<1, true, false, false, false>>("v_interp_p10_f32", kModelled);
  r.add<interpolate<2, false, false, false, false>>("v_interp_p2_f32", kModelled);
  r.add<interpolate<1, true, true, false, false>>("v_interp_p10_f16_f32", kModelled);
  r.add<interpolate<1, true, true, false, true>>("v_interp_p10_rtz_f16_f32", kModelled);
  r.add(
      "v_interp_p2_f16_f32",
      [](Instruction& i, const BindContext& c) -> ExecuteFn {
        choose_half(i, c, true);
        return interpolate<2, false, true, true, false>;
      },
      kModelled);
  r.add(
      "v_interp_p2_rtz_f16_f32",
      [](Instruction& i, const BindContext& c) -> ExecuteFn {
        choose_half(i, c, true);
        return interpolate<2, false, true, true, true>;
      },
      kModelled);
}

/// Lighting: the product, or -FLT_MAX where the other factors say "unlit".
float mullit(float a, float b, float c) {
  constexpr float kLargest = 0x1.fffffep127f;
  if (b == -kLargest || b == -__builtin_inff() || b != b || !(c > 0)) return -kLargest;
  return a == 0 || b == 0 ? 0.0f : a * b;
}

/// Byte S1[1:0] of the destination becomes S0; the others stay.
void convert_into_byte(Wave& w, const Instruction& i) {
  u64 exec = w.exec();
  Row b0, b1, result;
  const u32* a = stage(w, i, 0, F, b0, exec);
  const u32* at = stage(w, i, 1, U, b1, exec);
  u32* d = row(w, i.dst[0]);
  for (u32 l = 0; l < w.lanes; ++l) {
    float x = as_float(a[l]);
    u32 v = !(x > 0) ? 0 : x >= 255.0f ? 255 : static_cast<u32>(__builtin_truncf(x)), shift = 8 * (at[l] & 3);
    result.lane[l] = (d[l] & ~(255u << shift)) | v << shift;
  }
  merge_row(w, d, result.lane, exec);
}

}  // namespace

void register_valu_special(Registry& r) {
  r.add<sad_packed<false>>("v_qsad_pk_u16_u8");
  r.add<sad_packed<true>>("v_mqsad_pk_u16_u8");
  r.add<sad_wide>("v_mqsad_u32_u8");
  register_cube(r);
  register_interpolation(r);
  add_general<F, F, F, F>(r, "v_mullit_f32", [](float a, float b, float c) { return mullit(a, b, c); });
  r.add<convert_into_byte>("v_cvt_pkaccum_u8_f32");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
