// Operations with 64-bit operands, in the style of valu.h. Results are complete before any register is written, because
// a 64-bit destination may overlap a source with an offset of one register.
#pragma once

#include "exec/float_rules.h"
#include "exec/valu.h"

namespace crest_sim::CREST_SIM_LEVEL {

enum class Wide : uint8_t { kU32, kF32, kU64, kF64 };

struct WideSource {
  const uint32_t* lo;
  const uint32_t* hi;
  Row lo_buffer, hi_buffer;
};

void stage_wide(Wave& w, const Instruction& i, int index, Wide type, WideSource& out, uint64_t& exec);
/// Clamp and omod of f64, then writes both halves (or only `lo` for 32-bit results).
void finish_wide(Wave& w, const Instruction& i, Wide type, Row& lo, Row& hi, uint64_t exec);

template <Wide T>
[[gnu::always_inline]] inline auto load_wide(const WideSource& s, uint32_t l) {
  if constexpr (T == Wide::kU32)
    return s.lo[l];
  else if constexpr (T == Wide::kF32)
    return as_float(s.lo[l]);
  else {
    uint64_t bits = static_cast<uint64_t>(s.hi[l]) << 32 | s.lo[l];
    if constexpr (T == Wide::kF64)
      return as_double(bits);
    else
      return bits;
  }
}

template <class F, Wide D, Wide... S>
void wide(Wave& w, const Instruction& i) {
  constexpr size_t n = sizeof...(S);
  constexpr Wide types[n] = {S...};
  uint64_t exec = w.exec();
  WideSource a[n];
  for (size_t k = 0; k < n; ++k) stage_wide(w, i, static_cast<int>(k), types[k], a[k], exec);
  Row lo, hi;
  auto compute = [&]<size_t... K>(std::index_sequence<K...>) {
    for_lanes(w.lanes, [&](uint32_t l) {
      auto r = F{}(load_wide<S>(a[K], l)...);
      if constexpr (D == Wide::kF32)
        lo.lane[l] = as_bits(static_cast<float>(r));
      else if constexpr (D == Wide::kU32)
        lo.lane[l] = static_cast<uint32_t>(r);
      else {
        uint64_t bits;
        if constexpr (D == Wide::kF64)
          bits = as_bits(static_cast<double>(r));
        else
          bits = static_cast<uint64_t>(r);
        lo.lane[l] = static_cast<uint32_t>(bits);
        hi.lane[l] = static_cast<uint32_t>(bits >> 32);
      }
    });
  };
  {
    WideMode mode(w);
    compute(std::make_index_sequence<n>{});
  }
  finish_wide(w, i, D, lo, hi, exec);
}

template <class F, Wide D, Wide... S>
ExecuteFn bind_wide(Instruction& i, const BindContext&) {
  if (i.src_count < sizeof...(S) || i.dst_count < 1 || !i.dst[0].is_vector() || i.sdwa) return nullptr;
  return wide<F, D, S...>;
}

template <Wide D, Wide... S, class F>
void add_wide(Registry& r, const char* name, F, Fidelity fidelity = Fidelity::kExact) {
  r.add(name, bind_wide<F, D, S...>, fidelity);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
