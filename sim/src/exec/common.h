// Small tools of all handlers. Everything here is compiled once per x86-64 level.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "crest_sim/wave.h"
#include "exec/registry.h"
#include "run/fault.h"

namespace crest_sim::CREST_SIM_LEVEL {

inline float as_float(uint32_t x) { return std::bit_cast<float>(x); }
inline uint32_t as_bits(float x) { return std::bit_cast<uint32_t>(x); }
inline double as_double(uint64_t x) { return std::bit_cast<double>(x); }
inline uint64_t as_bits(double x) { return std::bit_cast<uint64_t>(x); }

inline uint32_t* row(Wave& w, const Operand& o) { return w.v + o.row; }

/// Scalar register or literal.
inline uint32_t scalar(const Wave& w, const Operand& o) {
  uint32_t cell = w.s[o.is_scalar() ? o.reg : cell::kZero];
  return o.is_literal() ? static_cast<uint32_t>(o.literal) : cell;
}
inline uint64_t scalar64(const Wave& w, const Operand& o) { return o.is_literal() ? o.literal : w.read64(o.reg); }

/// Lane masks are one dword in wave32 and two in wave64.
inline uint64_t lane_mask(const Wave& w, const Operand& o) { return w.lanes == 64 ? scalar64(w, o) : scalar(w, o); }
inline void set_lane_mask(Wave& w, uint16_t reg, uint64_t mask) {
  if (w.lanes == 64)
    w.write64(reg, mask);
  else
    w.s[reg] = static_cast<uint32_t>(mask);
}

/// Calls body(lane) for all lanes of the wave. The iterations must not depend on each other; a row may be read and
/// written at the same lane.
template <class Body>
[[gnu::always_inline]] inline void for_lanes(uint32_t lanes, Body&& body) {
  for (uint32_t base = 0; base < lanes; base += 32) {
#pragma clang loop vectorize(assume_safety) interleave_count(2) unroll(disable)
    for (uint32_t l = 0; l < 32; ++l) body(base + l);
  }
}

/// Calls body(lane) for set bits.
template <class Body>
inline void for_active(uint64_t mask, Body&& body) {
  for (; mask; mask &= mask - 1) body(std::countr_zero(mask));
}

/// All ones in the lanes of `mask`.
inline void expand_mask(uint64_t mask, uint32_t* out, uint32_t lanes) {
  for (uint32_t base = 0; base < lanes; base += 32) {
    uint32_t half = static_cast<uint32_t>(mask >> base);
#pragma clang loop vectorize(assume_safety) interleave_count(2) unroll(disable)
    for (uint32_t l = 0; l < 32; ++l) out[base + l] = (half & (1u << l)) ? ~0u : 0u;
  }
}

/// Bit l = sign bit of in[l].
inline uint64_t collect_signs(const uint32_t* in, uint32_t lanes) {
  uint64_t mask = 0;
#if defined(__AVX2__)
  for (uint32_t l = 0; l < lanes; l += 8)
    mask |= static_cast<uint64_t>(
                static_cast<uint32_t>(_mm256_movemask_ps(_mm256_loadu_ps(reinterpret_cast<const float*>(in + l)))))
            << l;
#else
  for (uint32_t l = 0; l < lanes; l += 4)
    mask |= static_cast<uint64_t>(
                static_cast<uint32_t>(_mm_movemask_ps(_mm_loadu_ps(reinterpret_cast<const float*>(in + l)))))
            << l;
#endif
  return mask;
}

/// EXEC as lane masks, remade only when EXEC has changed.
inline const uint32_t* exec_mask_row(Wave& w) {
  uint64_t exec = w.exec();
  if (w.mask_exec != exec) {
    expand_mask(exec, w.mask_row, w.lanes);
    w.mask_exec = exec;
  }
  return w.mask_row;
}

/// d = r in the lanes of `mask`.
inline void merge_row(Wave& w, uint32_t* d, const uint32_t* r, uint64_t mask) {
  if (mask == w.full_exec) {
    std::memcpy(d, r, w.lanes * 4);
    return;
  }
  alignas(64) uint32_t own[64];
  const uint32_t* m = own;
  if (mask == w.exec())
    m = exec_mask_row(w);
  else
    expand_mask(mask, own, w.lanes);
  for_lanes(w.lanes, [&](uint32_t l) { d[l] = (r[l] & m[l]) | (d[l] & ~m[l]); });
}

inline void broadcast(uint32_t* out, uint32_t value, uint32_t lanes) {
  for_lanes(lanes, [&](uint32_t l) { out[l] = value; });
}

/// Host rounding and denormal mode for operations on f16 and f64 (MODE has separate fields for them).
class WideMode {
 public:
  explicit WideMode(const Wave& w) : saved_(w.mxcsr), changed_(w.mxcsr != w.mxcsr_wide) {
    if (changed_) [[unlikely]]
      _mm_setcsr(w.mxcsr_wide);
  }
  ~WideMode() {
    if (changed_) [[unlikely]]
      _mm_setcsr(saved_);
  }
  WideMode(const WideMode&) = delete;
  WideMode& operator=(const WideMode&) = delete;

 private:
  uint32_t saved_;
  bool changed_;
};

inline bool mode_ieee(const Wave& w) { return w.mode & (1u << 9); }
inline bool mode_dx10_clamp(const Wave& w) { return w.mode & (1u << 8); }

}  // namespace crest_sim::CREST_SIM_LEVEL
