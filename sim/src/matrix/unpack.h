// Register rows of a matrix operand → a table of fp32 values [k][row or column].
#pragma once

#include "matrix/shape.h"
#include "matrix/simd.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// Largest table: 64 lanes with 32 values each.
inline constexpr int kMaxTable = 64 * 32;

struct UnpackLayout {
  int lanes;      ///< of the register rows
  int columns;    ///< lanes that share a value of k (m; for 4 × 4 blocks and WMMA all lanes)
  int elements;   ///< values per lane
  bool two_runs;  ///< see unpacked_row()
};

/// Decodes `layout.elements` values of every lane. Value e of lane l goes to
/// table[unpacked_row(l / columns, e, …) × columns + l % columns].
void unpack(Element element, bool fnuz, const uint32_t* rows, const UnpackLayout& layout, float* table);

}  // namespace crest_sim::CREST_SIM_LEVEL
