// Vector ALU operations made from one-line expressions.
//
// Each operation is instantiated a few times: for operands that are whole registers or scalars without any modifier
// ("plain": one vectorised loop straight over the register file, when all lanes are active), and once in general form,
// which stages its sources (DPP, SDWA, op_sel, neg/abs) and finishes its result (clamp, omod, halves, EXEC) out of
// line.
#pragma once

#include <cmath>
#include <utility>

#include "exec/common.h"
#include "exec/half.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// How a 32-bit operand is seen by the expression, and how modifiers apply to it.
enum class Type : uint8_t {
  kU32,  ///< uint32_t
  kF32,  ///< float
  kB32,  ///< uint32_t with float modifiers (v_cndmask_b32, classes)
  kU16,  ///< uint32_t holding 16 bits
  kF16,  ///< float, widened from f16 and rounded to f16
  kB16,  ///< uint32_t holding the 16 bits of an f16
};

constexpr bool is_16(Type t) { return t == Type::kU16 || t == Type::kF16 || t == Type::kB16; }
constexpr bool is_float(Type t) { return t == Type::kF32 || t == Type::kB32 || t == Type::kF16 || t == Type::kB16; }

template <Type T>
[[gnu::always_inline]] inline auto unpack(uint32_t bits) {
  if constexpr (T == Type::kF32)
    return as_float(bits);
  else if constexpr (T == Type::kF16)
    return half_to_float(bits & 0xffff);
  else if constexpr (T == Type::kU16 || T == Type::kB16)
    return bits & 0xffffu;
  else
    return bits;
}

template <Type T, class R>
[[gnu::always_inline]] inline uint32_t pack(R value) {
  if constexpr (T == Type::kF32)
    return as_bits(static_cast<float>(value));
  else if constexpr (T == Type::kF16)
    return float_to_half(static_cast<float>(value));
  else if constexpr (T == Type::kU16 || T == Type::kB16)
    return static_cast<uint32_t>(value) & 0xffff;
  else
    return static_cast<uint32_t>(value);
}

struct alignas(64) Row {
  uint32_t lane[64];
};

/// Source `index` as a row: the register itself, or `buffer` with everything applied that the operand asks for. DPP
/// takes lanes out of `exec`.
const uint32_t* stage(Wave& w, const Instruction& i, int index, Type type, Row& buffer, uint64_t& exec);
/// The same for one dword of a 64-bit operand (`part` 0 low, 1 high), without sign modifiers.
const uint32_t* stage_part(Wave& w, const Instruction& i, int index, int part, Row& buffer, uint64_t& exec);
/// Applies clamp and omod, selects the destination part and writes the lanes of `exec`. `result` is clobbered.
void finish(Wave& w, const Instruction& i, Type type, Row& result, uint64_t exec);

template <class F, Type D, Type... S>
void general(Wave& w, const Instruction& i) {
  constexpr size_t n = sizeof...(S);
  constexpr Type types[n] = {S...};
  uint64_t exec = w.exec();
  Row buffers[n];
  const uint32_t* a[n];
  for (size_t k = 0; k < n; ++k) a[k] = stage(w, i, static_cast<int>(k), types[k], buffers[k], exec);
  Row result;
  auto compute = [&]<size_t... K>(std::index_sequence<K...>) {
    if constexpr (D == Type::kF16 || D == Type::kB16) {
      WideMode mode(w);
      for_lanes(w.lanes, [&](uint32_t l) { result.lane[l] = pack<D>(F{}(unpack<S>(a[K][l])...)); });
    } else {
      for_lanes(w.lanes, [&](uint32_t l) { result.lane[l] = pack<D>(F{}(unpack<S>(a[K][l])...)); });
    }
  };
  compute(std::make_index_sequence<n>{});
  finish(w, i, D, result, exec);
}

/// Bit k of `Shape`: source k is a register row; otherwise one value for all lanes.
template <unsigned Shape, class F, Type D, Type... S>
void plain(Wave& w, const Instruction& i) {
  if (w.exec() != w.full_exec) [[unlikely]]
    return general<F, D, S...>(w, i);
  uint32_t* d = row(w, i.dst[0]);
  auto compute = [&]<size_t... K>(std::index_sequence<K...>) {
    const uint32_t* a[] = {((Shape >> K) & 1 ? row(w, i.src[K]) : nullptr)...};
    const uint32_t u[] = {((Shape >> K) & 1 ? 0u : scalar(w, i.src[K]))...};
    for_lanes(w.lanes, [&](uint32_t l) { d[l] = pack<D>(F{}(unpack<S>((Shape >> K) & 1 ? a[K][l] : u[K])...)); });
  };
  if constexpr (D == Type::kF16) {
    WideMode mode(w);
    compute(std::make_index_sequence<sizeof...(S)>{});
  } else {
    compute(std::make_index_sequence<sizeof...(S)>{});
  }
}

/// True if the plain form may be used as far as modifiers go.
inline bool is_unmodified(const Instruction& i, size_t sources) {
  if (i.dpp != Dpp::kNone || i.sdwa || i.clamp || i.omod || i.dst[0].mods ||
      (i.flags & (kFlagKeepHalf | kFlagReadsExecz)))
    return false;
  for (size_t k = 0; k < sources; ++k)
    if (i.src[k].mods) return false;
  return true;
}

/// Notes whether a 16-bit result leaves the other half alone: always on RDNA3; on gfx9 only for an upper half (op_sel),
/// and for the VOP3-only operations (LLVM: GCNSubtarget::zeroesHigh16BitsOfDest).
void choose_half(Instruction& i, const BindContext& c, bool preserving);

template <class F, Type D, Type... S>
ExecuteFn bind_valu(Instruction& i, const BindContext& c) {
  constexpr size_t n = sizeof...(S);
  if (i.src_count < n || i.dst_count < 1 || !i.dst[0].is_vector()) return nullptr;
  if constexpr (is_16(D)) choose_half(i, c, n == 3);
  if (!is_unmodified(i, n)) return general<F, D, S...>;
  unsigned shape = 0;
  for (size_t k = 0; k < n; ++k) shape |= static_cast<unsigned>(i.src[k].is_vector()) << k;
  if constexpr (n == 1) return shape ? plain<1, F, D, S...> : plain<0, F, D, S...>;
  if constexpr (n == 2) {
    if (shape == 3) return plain<3, F, D, S...>;
    if (shape == 2) return plain<2, F, D, S...>;
    if (shape == 1) return plain<1, F, D, S...>;
  }
  if constexpr (n == 3) {
    if (shape == 7) return plain<7, F, D, S...>;
    if (shape == 6) return plain<6, F, D, S...>;
    if (shape == 5) return plain<5, F, D, S...>;
    if (shape == 3) return plain<3, F, D, S...>;
  }
  return general<F, D, S...>;
}

/// Operations that also read their destination (v_fmac_f32): it becomes the last source.
template <class F, Type D, Type... S>
ExecuteFn bind_accumulate(Instruction& i, const BindContext& c) {
  if (i.src_count + 1u != sizeof...(S) || i.dst_count < 1) return nullptr;
  i.src[i.src_count] = i.dst[0];
  ++i.src_count;
  return bind_valu<F, D, S...>(i, c);
}

/// For operations that are rarely hot: only the general form, which keeps the code small.
template <class F, Type D, Type... S>
ExecuteFn bind_general(Instruction& i, const BindContext& c) {
  if (i.src_count < sizeof...(S) || i.dst_count < 1 || !i.dst[0].is_vector()) return nullptr;
  if constexpr (is_16(D)) choose_half(i, c, sizeof...(S) == 3);
  return general<F, D, S...>;
}

/// Integer clamp saturates, which is another expression: registered under "name/clamp" and chosen here.
template <class F, class Saturating, Type D, Type... S>
ExecuteFn bind_saturating(Instruction& i, const BindContext& c) {
  if (!i.clamp) return bind_valu<F, D, S...>(i, c);
  i.clamp = false;
  return bind_valu<Saturating, D, S...>(i, c);
}

template <Type D, Type... S, class F>
void add_valu(Registry& r, const char* name, F, Fidelity fidelity = Fidelity::kExact) {
  r.add(name, bind_valu<F, D, S...>, fidelity);
}
template <Type D, Type... S, class F>
void add_general(Registry& r, const char* name, F, Fidelity fidelity = Fidelity::kExact) {
  r.add(name, bind_general<F, D, S...>, fidelity);
}
template <Type D, Type... S, class F>
void add_accumulate(Registry& r, const char* name, F, Fidelity fidelity = Fidelity::kExact) {
  r.add(name, bind_accumulate<F, D, S...>, fidelity);
}
template <Type D, Type... S, class F, class G>
void add_saturating(Registry& r, const char* name, F, G, Fidelity fidelity = Fidelity::kExact) {
  r.add(name, bind_saturating<F, G, D, S...>, fidelity);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
