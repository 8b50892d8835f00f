// WMMA of RDNA3 (16 × 16 × 16), wave32 and wave64. Every group of 16 lanes computes its own rows of D from its own copy
// of A and B: programs give all groups the same copy, and hardware that gets different ones uses them just so.
#include <cstring>

#include "matrix/multiply.h"
#include "matrix/rdna3_dot.h"
#include "matrix/unpack_rows.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

constexpr int kSize = 16;

/// Rows of D in the first group of 16 lanes; group n computes the rows n further and stores them 16 · n lanes further.
constexpr Rows make_group_rows(int lanes) {
  Rows rows;
  const int groups = lanes / kSize;
  rows.count = kSize / groups;
  for (int r = 0; r < rows.count; ++r) {
    rows.column[r] = int16_t(r * groups);
    rows.offset[r] = int16_t(r * lanes);
  }
  return rows;
}
constexpr Rows kGroupRows32 = make_group_rows(32), kGroupRows64 = make_group_rows(64);

template <int Lanes, Sum S>
CREST_SIM_INLINE void multiply_groups(const float* a, const float* b, const uint32_t* c, uint32_t* d) {
  constexpr int kGroups = Lanes / kSize;
  for (int group = 0; group < kGroups; ++group) {
    const int at = group * kSize;
    multiply_block<kSize, kSize, kSize / kGroups, S>(a + at + group, Lanes, kGroups, b + at, Lanes, c + at, d + at,
                                                     Lanes);
  }
}
template <Sum S>
void multiply_groups(const MatrixShape& shape, const Tables& tables, const uint32_t* c, uint32_t* d) {
  if (shape.lanes == 32) return multiply_groups<32, S>(tables.a, tables.b, c, d);
  multiply_groups<64, S>(tables.a, tables.b, c, d);
}

/// Flips signs of packed operands: NEG of even (low half) and NEG_HI of odd values of k.
uint32_t sign_flips(const Operand& operand) {
  return (operand.mods & kNeg ? 0x8000u : 0) | (operand.mods & kNegHi ? 0x80000000u : 0);
}

/// C after op_sel, |C| (NEG_HI) and -C (NEG), as rows of fp32 or of 16-bit encodings in the low halves.
const uint32_t* load_accumulator(const MatrixShape& shape, const MatrixCall& call, uint32_t* rows) {
  const Operand& operand = call.instruction->src[2];
  const bool half = shape.d == Accumulator::kF16 || shape.d == Accumulator::kBf16;
  if (!half && !(operand.mods & (kNeg | kNegHi))) return safe_accumulator(shape, call, rows);
  const int shift = half && operand.mods & kHigh && !operand.is_literal() ? 16 : 0;
  const uint32_t mask = half ? 0xffffu : ~0u, sign = half ? 0x8000u : 0x80000000u;
  const uint32_t cleared = operand.mods & kNegHi ? sign : 0, flipped = operand.mods & kNeg ? sign : 0;
  const int count = shape.d_dwords() * shape.lanes;
  for (int i = 0; i < count; ++i) rows[i] = ((call.c[i] >> shift & mask) & ~cleared) ^ flipped;
  return rows;
}

void negate_table(float* table, int lanes, uint32_t flips) {
  if (!flips) return;
  for (int k = 0; k < kSize; ++k) {
    if (k % 2 == 0 ? !(flips & 0x8000u) : !(flips >> 31)) continue;
    for (int l = 0; l < lanes; ++l) table[k * lanes + l] = -table[k * lanes + l];
  }
}

/// Wave32 without modifiers, everything known to the compiler.
template <Element E>
void run_plain(const MatrixCall& call, const uint32_t* c) {
  constexpr UnpackLayout kLayout{32, 32, kSize, false};
  alignas(64) float a[kSize * 32], b[kSize * 32];
  unpack_pairs<E>(call.a, kLayout, a);
  unpack_pairs<E>(call.b, kLayout, b);
  multiply_groups<32, Sum::kExact>(a, b, c, call.d);
}

void run_fast_f32(const MatrixShape& shape, const MatrixCall& call) {
  const Operand* operands = call.instruction->src;
  if (shape.lanes == 32 && !((operands[0].mods | operands[1].mods | operands[2].mods) & (kNeg | kNegHi))) {
    alignas(64) uint32_t copy[8 * 32];
    const uint32_t* c = safe_accumulator(shape, call, copy);
    return shape.a == Element::kBf16 ? run_plain<Element::kBf16>(call, c) : run_plain<Element::kF16>(call, c);
  }
  Tables tables;
  unpack(shape.a, false, call.a, {shape.lanes, shape.lanes, kSize, false}, tables.a);
  unpack(shape.b, false, call.b, {shape.lanes, shape.lanes, kSize, false}, tables.b);
  negate_table(tables.a, shape.lanes, sign_flips(call.instruction->src[0]));
  negate_table(tables.b, shape.lanes, sign_flips(call.instruction->src[1]));
  alignas(64) uint32_t buffer[8 * 32];
  const uint32_t* c = load_accumulator(shape, call, buffer);
  multiply_groups<Sum::kExact>(shape, tables, c, call.d);
}

int32_t add_saturating(int32_t a, int32_t b) {
  const int64_t sum = int64_t(a) + b;
  return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : int32_t(sum);
}

void run_integer(const MatrixShape& shape, const MatrixCall& call) {
  Tables tables;
  const bool byte = shape.a == Element::kI8;
  const auto element = [&](int operand) {  // NEG means "signed" here
    const bool is_signed = call.instruction->src[operand].mods & kNeg;
    if (byte) return is_signed ? Element::kI8 : Element::kU8;
    return is_signed ? Element::kI4 : Element::kU4;
  };
  unpack(element(0), false, call.a, {shape.lanes, shape.lanes, kSize, false}, tables.a);
  unpack(element(1), false, call.b, {shape.lanes, shape.lanes, kSize, false}, tables.b);
  alignas(64) uint32_t buffer[8 * 32];
  const uint32_t* c = safe_accumulator(shape, call, buffer);
  if (!call.instruction->clamp) return multiply_groups<Sum::kInteger>(shape, tables, c, call.d);
  alignas(64) const uint32_t zeros[8 * 32] = {};
  alignas(64) uint32_t sums[8 * 32];
  multiply_groups<Sum::kInteger>(shape, tables, zeros, sums);
  for (int i = 0; i < shape.d_dwords() * shape.lanes; ++i)
    call.d[i] = uint32_t(add_saturating(int32_t(c[i]), int32_t(sums[i])));
}

/// One operand: encodings and parts of all values, [k][lane].
struct Factors {
  alignas(64) uint32_t raw[kSize * 64];
  alignas(64) int32_t significand[kSize * 64], exponent[kSize * 64], sign[kSize * 64];
  bool special = false;

  FactorVec vector(int at) const {
    return {load<WideI>(significand + at), load<WideI>(exponent + at), load<WideI>(sign + at)};
  }
  FactorVec broadcast(int at) const { return {splat(significand[at]), splat(exponent[at]), splat(sign[at])}; }
};

template <bool Bf16>
void split_operand(const uint32_t* rows, int lanes, uint32_t flips, Factors& out) {
  WideI special = splat(0);
  for (int k = 0; k < kSize; ++k) {
    for (int l = 0; l < lanes; l += kWide) {
      const WideU word = load<WideU>(rows + k / 2 * lanes + l) ^ flips;
      const WideU raw = (word >> uint32_t(k % 2 * 16)) & 0xffffu;
      const FactorVec parts = split_factor<Bf16>(raw);
      special |= special_half<Bf16>(raw);
      store(out.raw + k * lanes + l, raw);
      store(out.significand + k * lanes + l, parts.significand);
      store(out.exponent + k * lanes + l, parts.exponent);
      store(out.sign + k * lanes + l, parts.sign);
    }
  }
  out.special = any(special);
}

/// Eight steps for the lanes of D that start at `b_at` in a row of the tables.
template <bool Bf16, DotOutput Output>
CREST_SIM_INLINE WideU chain(const Factors& a, const Factors& b, int lanes, int a_at, int b_at, WideU c,
                             bool saturate) {
  const bool special = a.special || b.special;
  for (int k = 0; k < kSize; k += 2) {
    const int a0 = k * lanes + a_at, a1 = a0 + lanes, b0 = k * lanes + b_at, b1 = b0 + lanes;
    if (special || any(special_accumulator<Output>(c))) {
      c = dot2<Bf16, Output>(WideU(a.raw[a0]), load<WideU>(b.raw + b0), WideU(a.raw[a1]), load<WideU>(b.raw + b1), c,
                             saturate);
    } else {
      c = dot2_finite<Bf16, Output>(a.broadcast(a0), b.vector(b0), a.broadcast(a1), b.vector(b1), c, saturate);
    }
  }
  return c;
}

template <bool Bf16, DotOutput Output>
void run_strict_as(const MatrixShape& shape, const MatrixCall& call) {
  Factors a, b;
  split_operand<Bf16>(call.a, shape.lanes, sign_flips(call.instruction->src[0]), a);
  split_operand<Bf16>(call.b, shape.lanes, sign_flips(call.instruction->src[1]), b);
  alignas(64) uint32_t buffer[8 * 32];
  const uint32_t* c = load_accumulator(shape, call, buffer);
  const bool high = call.instruction->src[2].mods & kHigh;
  const Rows& rows = shape.lanes == 32 ? kGroupRows32 : kGroupRows64;
  for (int group = 0; group < shape.lanes / kSize; ++group) {
    for (int r = 0; r < rows.count; ++r) {
      for (int j = 0; j < kSize; j += kWide) {
        const int at = rows.offset[r] + group * kSize + j, a_at = group * kSize + rows.column[r] + group;
        const WideU result =
            chain<Bf16, Output>(a, b, shape.lanes, a_at, group * kSize + j, load<WideU>(c + at), false);
        if constexpr (Output == DotOutput::kF32) {
          store(call.d + at, result);
        } else {
          const WideU old = load<WideU>(call.d + at);
          store(call.d + at, high ? (old & 0xffffu) | (result << 16) : (old & 0xffff0000u) | result);
        }
      }
    }
  }
}

}  // namespace

void run_wmma(const MatrixShape& shape, const MatrixCall& call, bool strict) {
  const bool bf16 = shape.a == Element::kBf16;
  switch (shape.d) {
    case Accumulator::kI32:
      return run_integer(shape, call);
    case Accumulator::kF16:
      return run_strict_as<false, DotOutput::kF16>(shape, call);
    case Accumulator::kBf16:
      return run_strict_as<true, DotOutput::kBf16>(shape, call);
    default:
      break;
  }
  if (!strict) return run_fast_f32(shape, call);
  bf16 ? run_strict_as<true, DotOutput::kF32>(shape, call) : run_strict_as<false, DotOutput::kF32>(shape, call);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
