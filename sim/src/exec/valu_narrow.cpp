// Conversions to and from bf16 and the 8-bit formats, and floating-point dot products.
#include "exec/float_rules.h"
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;

inline u32 to_bf16(float x) {
  u32 bits = as_bits(x);
  u32 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return is_nan(bits) ? (bits >> 16 | 0x40) & 0xffff : rounded;
}

}  // namespace

void register_valu_narrow(Registry& r) {
  add_valu<Type::kU32, Type::kF32, Type::kF32>(r, "v_cvt_pk_bf16_f32", [](float a, float b) { return to_bf16(a) | to_bf16(b) << 16; });
}

}  // namespace crest_sim::CREST_SIM_LEVEL
