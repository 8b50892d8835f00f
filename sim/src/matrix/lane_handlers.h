// Handlers of per-lane instructions on narrow formats: floating-point dot products and conversions. Registered by
// register_valu_narrow().
#pragma once

#include "exec/common.h"

namespace crest_sim::CREST_SIM_LEVEL {

inline constexpr uint32_t kFp16Overflow = 1u << 23;  ///< MODE.FP16_OVFL: conversions saturate

/// Round-to-nearest with subnormals on the host: narrow formats do not follow MODE.
class NearestMode {
 public:
  explicit NearestMode(const Wave& w) : saved_(w.mxcsr) {
    if (saved_ != kNearest) [[unlikely]]
      _mm_setcsr(kNearest);
  }
  ~NearestMode() {
    if (saved_ != kNearest) [[unlikely]]
      _mm_setcsr(saved_);
  }
  NearestMode(const NearestMode&) = delete;
  NearestMode& operator=(const NearestMode&) = delete;

 private:
  static constexpr uint32_t kNearest = 0x1f80;
  uint32_t saved_;
};

/// Puts `values` (in the low bits) into a part of the destination; the rest of the register stays.
void write_part(Wave& w, const Instruction& i, uint32_t* values, int bit, uint32_t mask, uint64_t exec);

/// Byte of the destination that op_sel[3:2] names.
inline int destination_byte(const Instruction& i) {
  return (i.src[2].mods & kHigh ? 1 : 0) + (i.dst[0].mods & kHigh ? 2 : 0);
}

void register_float_dots(Registry& registry);
void register_small_float_conversions(Registry& registry);
void register_scaled_conversions(Registry& registry);

}  // namespace crest_sim::CREST_SIM_LEVEL
