// Integer dot products. Sums are exact; clamp saturates the final one.
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

using u32 = uint32_t;
using u64 = uint64_t;
constexpr Type U = Type::kU32;

/// Sum of products of Bits-wide fields, exact.
template <int Bits, bool SignedA, bool SignedB>
inline int64_t dot(u32 a, u32 b) {
  int64_t sum = 0;
  for (int at = 0; at < 32; at += Bits) {
    u32 ua = a << (32 - Bits - at), ub = b << (32 - Bits - at);
    int64_t x = SignedA ? static_cast<int64_t>(static_cast<int32_t>(ua) >> (32 - Bits))
                        : static_cast<int64_t>(ua >> (32 - Bits));
    int64_t y = SignedB ? static_cast<int64_t>(static_cast<int32_t>(ub) >> (32 - Bits))
                        : static_cast<int64_t>(ub >> (32 - Bits));
    sum += x * y;
  }
  return sum;
}

template <int Bits, bool Signed>
struct Dot {
  u32 operator()(u32 a, u32 b, u32 c) const { return static_cast<u32>(dot<Bits, Signed, Signed>(a, b)) + c; }
};
template <int Bits, bool Signed>
struct SaturatingDot {
  u32 operator()(u32 a, u32 b, u32 c) const {
    int64_t x = dot<Bits, Signed, Signed>(a, b) +
                (Signed ? static_cast<int64_t>(static_cast<int32_t>(c)) : static_cast<int64_t>(c));
    int64_t low = Signed ? INT32_MIN : 0, high = Signed ? INT32_MAX : UINT32_MAX;
    return static_cast<u32>(x < low ? low : x > high ? high : x);
  }
};

/// The 32-bit forms have op_sel bits without meaning for 8- and 4-bit fields; drop them so that the plain loop serves.
void drop_selection(Instruction& i) {
  for (int k = 0; k < i.src_count; ++k) i.src[k].mods &= static_cast<uint8_t>(~(kHigh | kHighHi));
}

template <int Bits, bool Signed>
ExecuteFn bind_dot(Instruction& i, const BindContext& c) {
  drop_selection(i);
  if (!i.clamp) return bind_valu<Dot<Bits, Signed>, U, U, U, U>(i, c);
  i.clamp = false;
  return bind_valu<SaturatingDot<Bits, Signed>, U, U, U, U>(i, c);
}

template <int Bits>
ExecuteFn bind_dot_accumulate(Instruction& i, const BindContext& c) {
  if (i.src_count != 2) return nullptr;
  i.src[2] = i.dst[0];
  i.src_count = 3;
  return bind_dot<Bits, true>(i, c);
}

/// RDNA3: neg_lo of each factor says whether it is signed; the accumulator is signed.
template <int Bits, bool SignedA, bool SignedB>
struct MixedDot {
  u32 operator()(u32 a, u32 b, u32 c) const { return static_cast<u32>(dot<Bits, SignedA, SignedB>(a, b)) + c; }
};
template <int Bits, bool SignedA, bool SignedB>
struct SaturatingMixedDot {
  u32 operator()(u32 a, u32 b, u32 c) const {
    int64_t x = dot<Bits, SignedA, SignedB>(a, b) + static_cast<int32_t>(c);
    return static_cast<u32>(x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : x);
  }
};

template <int Bits, bool SignedA, bool SignedB>
ExecuteFn bind_signs(Instruction& i, const BindContext& c) {
  for (int k = 0; k < i.src_count; ++k) i.src[k].mods = 0;
  if (!i.clamp) return bind_valu<MixedDot<Bits, SignedA, SignedB>, U, U, U, U>(i, c);
  i.clamp = false;
  return bind_valu<SaturatingMixedDot<Bits, SignedA, SignedB>, U, U, U, U>(i, c);
}

template <int Bits>
ExecuteFn bind_mixed(Instruction& i, const BindContext& c) {
  bool a = i.src[0].mods & kNeg, b = i.src[1].mods & kNeg;
  if (a) return b ? bind_signs<Bits, true, true>(i, c) : bind_signs<Bits, true, false>(i, c);
  return b ? bind_signs<Bits, false, true>(i, c) : bind_signs<Bits, false, false>(i, c);
}

}  // namespace

void register_valu_dot(Registry& r) {
  r.add("v_dot4_i32_i8", bind_dot<8, true>);
  r.add("v_dot4_u32_u8", bind_dot<8, false>);
  r.add("v_dot8_i32_i4", bind_dot<4, true>);
  r.add("v_dot8_u32_u4", bind_dot<4, false>);
  r.add("v_dot2_i32_i16", bind_dot<16, true>);
  r.add("v_dot2_u32_u16", bind_dot<16, false>);
  r.add("v_dot4c_i32_i8", bind_dot_accumulate<8>);
  r.add("v_dot8c_i32_i4", bind_dot_accumulate<4>);
  r.add("v_dot2c_i32_i16", bind_dot_accumulate<16>);
  r.add("v_dot4_i32_iu8", bind_mixed<8>);
  r.add("v_dot8_i32_iu4", bind_mixed<4>);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
