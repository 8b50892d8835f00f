// The operations of memory atomics.
#pragma once

#include <array>

#include "exec/float_rules.h"
#include "exec/memory_format.h"

namespace crest_sim::CREST_SIM_LEVEL {

enum class Atomic : uint8_t {
  kSwap,
  kCmpSwap,
  kAdd,
  kSub,
  kRsub,
  kSmin,
  kUmin,
  kSmax,
  kUmax,
  kAnd,
  kOr,
  kXor,
  kInc,
  kDec,
  kCsub,
  kMskor,
  kAddF,
  kMinF,
  kMaxF,
  kPkAddF16,
  kPkAddBf16,
  kCmpSwapF,
};

/// bf16 sum, rounded to nearest even.
inline uint32_t add_bf16(uint32_t a, uint32_t b) {
  float sum = as_float(a << 16) + as_float(b << 16);
  uint32_t bits = as_bits(sum);
  if (is_nan(bits)) return (bits >> 16 | 0x40) & 0xffff;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

/// True if the order of operations of different workgroups shows in memory (or in the returned value).
constexpr bool order_matters(Atomic op) {
  switch (op) {
    case Atomic::kAdd:
    case Atomic::kSub:
    case Atomic::kSmin:
    case Atomic::kUmin:
    case Atomic::kSmax:
    case Atomic::kUmax:
    case Atomic::kAnd:
    case Atomic::kOr:
    case Atomic::kXor:
      return false;
    default:
      return true;
  }
}

/// `old` → new value; `x` is the operand, `y` the comparand (compare-and-swap) or second operand.
template <Atomic Op, class T>
inline T apply_atomic(T old, T x, T y) {
  using S = std::make_signed_t<T>;
  constexpr bool wide = sizeof(T) == 8;
  switch (Op) {
    case Atomic::kSwap:
      return x;
    case Atomic::kCmpSwap:
      return old == y ? x : old;
    case Atomic::kAdd:
      return old + x;
    case Atomic::kSub:
      return old - x;
    case Atomic::kRsub:
      return x - old;
    case Atomic::kSmin:
      return static_cast<S>(old) < static_cast<S>(x) ? old : x;
    case Atomic::kUmin:
      return old < x ? old : x;
    case Atomic::kSmax:
      return static_cast<S>(old) > static_cast<S>(x) ? old : x;
    case Atomic::kUmax:
      return old > x ? old : x;
    case Atomic::kAnd:
      return old & x;
    case Atomic::kOr:
      return old | x;
    case Atomic::kXor:
      return old ^ x;
    case Atomic::kInc:
      return old >= x ? 0 : old + 1;
    case Atomic::kDec:
      return old == 0 || old > x ? x : old - 1;
    case Atomic::kCsub:
      return old > x ? old - x : 0;
    case Atomic::kMskor:
      return (old & ~x) | y;
    case Atomic::kAddF:
      if constexpr (wide)
        return as_bits(as_double(old) + as_double(x));
      else
        return as_bits(as_float(old) + as_float(x));
    case Atomic::kMinF:
      if constexpr (wide)
        return pick64<false, true>(old, x);
      else
        return pick32<false, true>(old, x);
    case Atomic::kMaxF:
      if constexpr (wide)
        return pick64<true, true>(old, x);
      else
        return pick32<true, true>(old, x);
    case Atomic::kCmpSwapF:
      if constexpr (wide)
        return as_double(old) == as_double(y) ? x : old;
      else
        return as_float(old) == as_float(y) ? x : old;
    case Atomic::kPkAddF16: {
      uint32_t a = static_cast<uint32_t>(old), b = static_cast<uint32_t>(x);
      return float_to_half(half_to_float(a & 0xffff) + half_to_float(b & 0xffff)) |
             float_to_half(half_to_float(a >> 16) + half_to_float(b >> 16)) << 16;
    }
    case Atomic::kPkAddBf16: {
      uint32_t a = static_cast<uint32_t>(old), b = static_cast<uint32_t>(x);
      return add_bf16(a & 0xffff, b & 0xffff) | add_bf16(a >> 16, b >> 16) << 16;
    }
  }
  return old;
}

/// Atomic on the host too, because other workgroups run on other threads. Returns the old value.
template <Atomic Op, class T>
inline T host_atomic(uint8_t* at, T x, T y) {
  T* p = reinterpret_cast<T*>(at);
  T old = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &old, (apply_atomic<Op, T>(old, x, y)), true, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

template <class T>
inline T read_lane(const uint32_t* rows, uint32_t lanes, int lane) {
  if constexpr (sizeof(T) == 4)
    return rows[lane];
  else
    return static_cast<uint64_t>(rows[lanes + static_cast<uint32_t>(lane)]) << 32 | rows[lane];
}
template <class T>
inline void write_lane(uint32_t* rows, uint32_t lanes, int lane, T value) {
  rows[lane] = static_cast<uint32_t>(value);
  if constexpr (sizeof(T) == 8) rows[lanes + static_cast<uint32_t>(lane)] = static_cast<uint32_t>(value >> 32);
}

struct AtomicName {
  const char* gfx9;  ///< "atomic_add"; 64-bit adds "_x2" unless the type is part of the name
  const char* gfx11_32;
  const char* gfx11_64;
  Atomic op;
};
inline constexpr std::array<AtomicName, 13> kIntegerAtomics{{
    {"atomic_swap", "atomic_swap_b32", "atomic_swap_b64", Atomic::kSwap},
    {"atomic_cmpswap", "atomic_cmpswap_b32", "atomic_cmpswap_b64", Atomic::kCmpSwap},
    {"atomic_add", "atomic_add_u32", "atomic_add_u64", Atomic::kAdd},
    {"atomic_sub", "atomic_sub_u32", "atomic_sub_u64", Atomic::kSub},
    {"atomic_smin", "atomic_min_i32", "atomic_min_i64", Atomic::kSmin},
    {"atomic_umin", "atomic_min_u32", "atomic_min_u64", Atomic::kUmin},
    {"atomic_smax", "atomic_max_i32", "atomic_max_i64", Atomic::kSmax},
    {"atomic_umax", "atomic_max_u32", "atomic_max_u64", Atomic::kUmax},
    {"atomic_and", "atomic_and_b32", "atomic_and_b64", Atomic::kAnd},
    {"atomic_or", "atomic_or_b32", "atomic_or_b64", Atomic::kOr},
    {"atomic_xor", "atomic_xor_b32", "atomic_xor_b64", Atomic::kXor},
    {"atomic_inc", "atomic_inc_u32", "atomic_inc_u64", Atomic::kInc},
    {"atomic_dec", "atomic_dec_u32", "atomic_dec_u64", Atomic::kDec},
}};

/// Registers Handler<Op, T>::run for every global, flat or buffer atomic.
template <template <Atomic, class> class Handler>
inline void add_atomics(Registry& r, const std::string& prefix) {
  [&]<size_t... K>(std::index_sequence<K...>) {
    (r.add<Handler<kIntegerAtomics[K].op, uint32_t>::run>(prefix + kIntegerAtomics[K].gfx9), ...);
    (r.add<Handler<kIntegerAtomics[K].op, uint64_t>::run>(prefix + kIntegerAtomics[K].gfx9 + "_x2"), ...);
    (r.add<Handler<kIntegerAtomics[K].op, uint32_t>::run>(prefix + kIntegerAtomics[K].gfx11_32), ...);
    (r.add<Handler<kIntegerAtomics[K].op, uint64_t>::run>(prefix + kIntegerAtomics[K].gfx11_64), ...);
  }(std::make_index_sequence<kIntegerAtomics.size()>{});
  r.add<Handler<Atomic::kCsub, uint32_t>::run>(prefix + "atomic_csub_u32");
  r.add<Handler<Atomic::kCsub, uint32_t>::run>(prefix + "atomic_csub");
  r.add<Handler<Atomic::kAddF, uint32_t>::run>(prefix + "atomic_add_f32");
  r.add<Handler<Atomic::kAddF, uint64_t>::run>(prefix + "atomic_add_f64");
  r.add<Handler<Atomic::kMinF, uint64_t>::run>(prefix + "atomic_min_f64");
  r.add<Handler<Atomic::kMaxF, uint64_t>::run>(prefix + "atomic_max_f64");
  r.add<Handler<Atomic::kMinF, uint32_t>::run>(prefix + "atomic_min_f32");
  r.add<Handler<Atomic::kMaxF, uint32_t>::run>(prefix + "atomic_max_f32");
  r.add<Handler<Atomic::kCmpSwapF, uint32_t>::run>(prefix + "atomic_cmpswap_f32");
  r.add<Handler<Atomic::kPkAddF16, uint32_t>::run>(prefix + "atomic_pk_add_f16");
  r.add<Handler<Atomic::kPkAddBf16, uint32_t>::run>(prefix + "atomic_pk_add_bf16");
}

}  // namespace crest_sim::CREST_SIM_LEVEL
