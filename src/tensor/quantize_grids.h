#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "tensor/blocks.h"
#include "tensor/quantize_lanes.h"

namespace crest::tensor::detail {

/// A grid is the set of values that codes stand for, times a scale. nearest() rounds values that are already divided
/// by the scale; encode() gives the codes as they are stored. kReach is the largest magnitude on the grid.

template <int kLow, int kHigh>
struct IntegerGrid {
  static constexpr float kReach = -kLow;
  static Lanes nearest(Lanes x) { return snap(x, kLow, kHigh); }
  static void encode(Lanes x, uint8_t* codes) {
    const Lanes q = nearest(x);
    for (int k = 0; k < 4; ++k) codes[k] = static_cast<uint8_t>(static_cast<int>(q[k]) - kLow);
  }
};

/// 16 integer values; their midpoints are multiples of 1/2, so a table over floor(2 x) rounds exactly.
struct TableEntry {
  float value;
  uint8_t code;
};
constexpr std::array<TableEntry, 512> rounding_table(const int8_t (&values)[16]) {
  std::array<TableEntry, 512> table{};
  for (int i = 0; i < 512; ++i) {
    const int x4 = 2 * (i - 256) + 1;  // four times the middle of the interval
    int best = 0;
    for (int k = 1; k < 16; ++k) {
      const int distance = x4 - 4 * values[k] < 0 ? 4 * values[k] - x4 : x4 - 4 * values[k];
      const int shortest = x4 - 4 * values[best] < 0 ? 4 * values[best] - x4 : x4 - 4 * values[best];
      if (distance < shortest) best = k;
    }
    table[static_cast<size_t>(i)] = {static_cast<float>(values[best]), static_cast<uint8_t>(best)};
  }
  return table;
}
inline constexpr auto kIQ4Rounding = rounding_table(kIQ4Values);
inline constexpr auto kE2M1Rounding = rounding_table(kE2M1Doubled);

template <const std::array<TableEntry, 512>& kTable, int kReachValue>
struct TableGrid {
  static constexpr float kReach = kReachValue;
  static const TableEntry& entry(float x2) { return kTable[static_cast<size_t>(static_cast<int>(x2))]; }
  // 0 to 511 in units of 1/2, offset so that truncation is floor.
  static Lanes index(Lanes x) { return max(min(x * splat(2) + splat(256), splat(511)), Lanes{}); }
  static Lanes nearest(Lanes x) {
    const Lanes i = index(x);
    return Lanes{entry(i[0]).value, entry(i[1]).value, entry(i[2]).value, entry(i[3]).value};
  }
  static void encode(Lanes x, uint8_t* codes) {
    const Lanes i = index(x);
    for (int k = 0; k < 4; ++k) codes[k] = entry(i[k]).code;
  }
};
using IQ4Grid = TableGrid<kIQ4Rounding, 127>;
using E2M1Grid = TableGrid<kE2M1Rounding, 12>;

template <int kN, typename Grid>
void encode(const float* x, float inverse, uint8_t* codes) {
  for (int i = 0; i < kN; i += 4) Grid::encode(load(x + i) * splat(inverse), codes + i);
}

/// Weighted squared error of kN values on a grid of this scale. Formed in units of the scale, which keeps it in range
/// for the largest and smallest values.
template <int kN, typename Grid>
double grid_error(const float* x, const float* weights, float scale) {
  const Lanes inverse = splat(scale != 0 ? 1 / scale : 0);
  Lanes error{};
  for (int i = 0; i < kN; i += 4) {
    const Lanes scaled = load(x + i) * inverse;
    const Lanes difference = Grid::nearest(scaled) - scaled;
    error += load(weights + i) * difference * difference;
  }
  return double{sum(error)} * scale * scale;
}

}  // namespace crest::tensor::detail
