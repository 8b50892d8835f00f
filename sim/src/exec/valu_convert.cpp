// Conversions between 32- and 16-bit types.
#include "exec/float_rules.h"
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using i32 = int32_t;
constexpr Type F = Type::kF32, U = Type::kU32, H = Type::kF16, S = Type::kU16;

/// Towards zero, saturating, NaN → 0.
inline u32 to_i32(float a) {
  float bounded = a >= 2147483648.0f ? 0.0f : a < -2147483648.0f ? 0.0f : a;
  i32 inside = static_cast<i32>(a != a ? 0.0f : bounded);
  return a >= 2147483648.0f ? 0x7fffffffu : a < -2147483648.0f ? 0x80000000u : static_cast<u32>(inside);
}
inline u32 to_u32(float a) {
  float bounded = a > 0.0f ? a : 0.0f;
  bool big = bounded >= 4294967296.0f;
  u32 inside = static_cast<u32>(static_cast<int64_t>(big ? 0.0f : bounded));
  return big ? ~0u : inside;
}
inline u32 to_i16(float a) {
  return a != a ? 0 : a >= 32767.0f ? 0x7fff : a <= -32768.0f ? 0x8000 : static_cast<u32>(static_cast<i32>(a)) & 0xffff;
}
inline u32 to_u16(float a) { return !(a > 0) ? 0 : a >= 65535.0f ? 0xffff : static_cast<u32>(static_cast<i32>(a)); }

/// f32 → f16 towards zero whatever MODE says.
inline u32 half_rtz(float x) {
  u32 bits = as_bits(x), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00 | ((bits >> 13) & 0x1ff);
  if (magnitude == 0x7f800000) return sign | 0x7c00;
  if (magnitude >= 0x47800000) return sign | 0x7bff;
  if (magnitude >= 0x38800000) return sign | ((magnitude - 0x38000000) >> 13);
  u32 shift = 126 - (magnitude >> 23);
  return sign | (shift > 24 ? 0 : ((magnitude & 0x7fffff) | 0x800000) >> shift);
}

inline i32 snorm16(float x) {
  return x != x ? 0 : static_cast<i32>(__builtin_roundevenf((x > 1 ? 1.0f : x < -1 ? -1.0f : x) * 32767.0f));
}
inline u32 unorm16(float x) {
  return x != x ? 0 : static_cast<u32>(__builtin_roundevenf((x > 1 ? 1.0f : x < 0 ? 0.0f : x) * 65535.0f));
}
inline u32 pair(u32 lo, u32 hi) { return (lo & 0xffff) | hi << 16; }

void register_float_integer(Registry& r) {
  add_valu<F, U>(r, "v_cvt_f32_i32", [](u32 a) { return static_cast<float>(static_cast<i32>(a)); });
  add_valu<F, U>(r, "v_cvt_f32_u32", [](u32 a) { return static_cast<float>(a); });
  add_valu<F, U>(r, "v_cvt_f32_ubyte0", [](u32 a) { return static_cast<float>(static_cast<i32>(a & 255)); });
  add_valu<F, U>(r, "v_cvt_f32_ubyte1", [](u32 a) { return static_cast<float>(static_cast<i32>(a >> 8 & 255)); });
  add_valu<F, U>(r, "v_cvt_f32_ubyte2", [](u32 a) { return static_cast<float>(static_cast<i32>(a >> 16 & 255)); });
  add_valu<F, U>(r, "v_cvt_f32_ubyte3", [](u32 a) { return static_cast<float>(static_cast<i32>(a >> 24)); });
  add_valu<U, F>(r, "v_cvt_i32_f32", [](float a) { return to_i32(a); });
  add_valu<U, F>(r, "v_cvt_u32_f32", [](float a) { return to_u32(a); });
  add_general<U, F>(r, "v_cvt_flr_i32_f32", [](float a) { return to_i32(__builtin_floorf(a)); });
  add_general<U, F>(r, "v_cvt_rpi_i32_f32", [](float a) { return to_i32(__builtin_floorf(a + 0.5f)); });
  r.alias("v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32");
  r.alias("v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32");
  add_general<F, U>(r, "v_cvt_off_f32_i4",
                    [](u32 a) { return static_cast<float>(static_cast<i32>(a << 28) >> 28) * 0.0625f; });
  add_general<U, F, U, U>(r, "v_cvt_pk_u8_f32", [](float a, u32 at, u32 c) {
    u32 v = !(a > 0) ? 0 : a >= 255.0f ? 255 : static_cast<u32>(__builtin_truncf(a)), shift = 8 * (at & 3);
    return (c & ~(255u << shift)) | v << shift;
  });
}

void register_half(Registry& r) {
  add_valu<F, H>(r, "v_cvt_f32_f16", [](float a) { return a; });
  add_valu<H, F>(r, "v_cvt_f16_f32", [](float a) { return a; });
  add_general<H, S>(r, "v_cvt_f16_u16", [](u32 a) { return static_cast<float>(a); });
  add_general<H, S>(r, "v_cvt_f16_i16", [](u32 a) { return static_cast<float>(static_cast<int16_t>(a)); });
  add_general<S, H>(r, "v_cvt_u16_f16", [](float a) { return to_u16(a); });
  add_general<S, H>(r, "v_cvt_i16_f16", [](float a) { return to_i16(a); });
  add_general<S, H>(r, "v_cvt_norm_i16_f16", [](float a) { return static_cast<u32>(snorm16(a)); }, Fidelity::kModelled);
  add_general<S, H>(r, "v_cvt_norm_u16_f16", [](float a) { return unorm16(a); }, Fidelity::kModelled);
  add_general<U, S>(r, "v_cvt_u32_u16", [](u32 a) { return a; });
  add_general<U, S>(r, "v_cvt_i32_i16",
                    [](u32 a) { return static_cast<u32>(static_cast<i32>(static_cast<int16_t>(a))); });
  add_valu<U, F, F>(r, "v_cvt_pkrtz_f16_f32", [](float a, float b) { return pair(half_rtz(a), half_rtz(b)); });
  r.alias("v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32");
  add_general<U, F, F>(r, "v_cvt_pk_f16_f32",
                       [](float a, float b) { return pair(float_to_half(a), float_to_half(b)); });
  add_general<U, F, F>(
      r, "v_cvt_pknorm_i16_f32",
      [](float a, float b) { return pair(static_cast<u32>(snorm16(a)), static_cast<u32>(snorm16(b))); },
      Fidelity::kModelled);
  add_general<U, F, F>(
      r, "v_cvt_pknorm_u16_f32", [](float a, float b) { return pair(unorm16(a), unorm16(b)); }, Fidelity::kModelled);
  add_general<U, H, H>(
      r, "v_cvt_pknorm_i16_f16",
      [](float a, float b) { return pair(static_cast<u32>(snorm16(a)), static_cast<u32>(snorm16(b))); },
      Fidelity::kModelled);
  add_general<U, H, H>(
      r, "v_cvt_pknorm_u16_f16", [](float a, float b) { return pair(unorm16(a), unorm16(b)); }, Fidelity::kModelled);
  for (auto [name, same] : {std::pair{"v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_i16_f32"},
                            {"v_cvt_pk_norm_u16_f32", "v_cvt_pknorm_u16_f32"},
                            {"v_cvt_pk_norm_i16_f16", "v_cvt_pknorm_i16_f16"},
                            {"v_cvt_pk_norm_u16_f16", "v_cvt_pknorm_u16_f16"}})
    r.alias(name, same);
  add_general<U, F, F>(r, "v_cvt_pk_i16_f32", [](float a, float b) { return pair(to_i16(a), to_i16(b)); });
  add_general<U, F, F>(r, "v_cvt_pk_u16_f32", [](float a, float b) { return pair(to_u16(a), to_u16(b)); });
  add_general<U, U, U>(r, "v_cvt_pk_u16_u32",
                       [](u32 a, u32 b) { return pair(a > 0xffff ? 0xffff : a, b > 0xffff ? 0xffff : b); });
  add_general<U, U, U>(r, "v_cvt_pk_i16_i32", [](u32 a, u32 b) {
    auto sat = [](i32 x) { return static_cast<u32>(x > 32767 ? 32767 : x < -32768 ? -32768 : x); };
    return pair(sat(static_cast<i32>(a)), sat(static_cast<i32>(b)));
  });
}

}  // namespace

void register_valu_convert(Registry& r) {
  register_float_integer(r);
  register_half(r);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
