// Shifts and additions of 64-bit integers in 32-bit steps: address arithmetic, for all lanes and without modifiers.
#pragma once

#include "exec/valu_wide.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// A 64-bit operand: two rows, or one value for all lanes.
template <bool IsRow>
struct PairSource {
  const uint32_t *low = nullptr, *high = nullptr;
  uint32_t low_value = 0, high_value = 0;

  PairSource(Wave& w, const Operand& o) {
    if constexpr (IsRow) {
      low = row(w, o);
      high = low + w.lanes;
    } else {
      uint64_t value = scalar64(w, o);
      low_value = static_cast<uint32_t>(value);
      high_value = static_cast<uint32_t>(value >> 32);
    }
  }
  uint32_t lo(uint32_t l) const { return IsRow ? low[l] : low_value; }
  uint32_t hi(uint32_t l) const { return IsRow ? high[l] : high_value; }
};

/// d = (a << shift) + c, shift below 8.
template <ExecuteFn Full, bool RowA, bool RowC>
void shift_add_fast(Wave& w, const Instruction& i) {
  if (w.exec() != w.full_exec) [[unlikely]]
    return Full(w, i);
  PairSource<RowA> a(w, i.src[0]);
  PairSource<RowC> c(w, i.src[2]);
  uint32_t shift = scalar(w, i.src[1]) & 7, *d = row(w, i.dst[0]), *d_high = d + w.lanes;
  for_lanes(w.lanes, [&](uint32_t l) {
    uint32_t low = a.lo(l) << shift, high = a.hi(l) << shift | (a.lo(l) >> 1) >> (31 - shift);
    uint32_t sum = low + c.lo(l), sum_high = high + c.hi(l) + static_cast<uint32_t>(sum < low);
    d[l] = sum;
    d_high[l] = sum_high;
  });
}

enum class Shift { kLeft, kRight, kRightSigned };

/// d = b shifted by the same amount in all lanes.
template <ExecuteFn Full, Shift Kind, bool RowB>
void shift_fast(Wave& w, const Instruction& i) {
  if (w.exec() != w.full_exec) [[unlikely]]
    return Full(w, i);
  PairSource<RowB> b(w, i.src[1]);
  uint32_t shift = scalar(w, i.src[0]) & 63, *d = row(w, i.dst[0]), *d_high = d + w.lanes, s = shift & 31;
  auto put = [&](auto low, auto high) {
    for_lanes(w.lanes, [&](uint32_t l) {
      uint32_t x = b.lo(l), y = b.hi(l);
      d[l] = low(x, y);
      d_high[l] = high(x, y);
    });
  };
  auto sign = [](uint32_t y) {
    return Kind == Shift::kRightSigned ? static_cast<uint32_t>(static_cast<int32_t>(y) >> 31) : 0u;
  };
  auto down = [s](uint32_t y) {
    return Kind == Shift::kRightSigned ? static_cast<uint32_t>(static_cast<int32_t>(y) >> s) : y >> s;
  };
  if constexpr (Kind == Shift::kLeft) {
    if (shift < 32)
      put([s](uint32_t x, uint32_t) { return x << s; },
          [s](uint32_t x, uint32_t y) { return y << s | (x >> 1) >> (31 - s); });
    else
      put([](uint32_t, uint32_t) { return 0u; }, [s](uint32_t x, uint32_t) { return x << s; });
  } else {
    if (shift < 32)
      put([s](uint32_t x, uint32_t y) { return x >> s | (y << 1) << (31 - s); },
          [down](uint32_t, uint32_t y) { return down(y); });
    else
      put([down](uint32_t, uint32_t y) { return down(y); }, [sign](uint32_t, uint32_t y) { return sign(y); });
  }
}

template <ExecuteFn Full, bool RowA>
void move_fast(Wave& w, const Instruction& i) {
  if (w.exec() != w.full_exec) [[unlikely]]
    return Full(w, i);
  PairSource<RowA> a(w, i.src[0]);
  uint32_t *d = row(w, i.dst[0]), *d_high = d + w.lanes;
  for_lanes(w.lanes, [&](uint32_t l) {
    uint32_t x = a.lo(l), y = a.hi(l);
    d[l] = x;
    d_high[l] = y;
  });
}

}  // namespace crest_sim::CREST_SIM_LEVEL
