// What a matrix instruction computes and where its operands lie in the register file.
//
// Layouts follow AMD's published register mappings (the CDNA3, CDNA4 and RDNA3 instruction set documents and the public
// matrix instruction calculator). A lane of an operand holds `elements_per_lane` consecutive values of k for one row of
// A (or one column of B); lanes are dealt to rows first, then to k (one block) or to blocks (several blocks).
#pragma once

#include <cstdint>

namespace crest_sim::CREST_SIM_LEVEL {

enum class Element : uint8_t { kF32, kXf32, kF64, kF16, kBf16, kI8, kU8, kI4, kU4, kFp8, kBf8, kFp6, kBf6, kFp4 };
enum class Accumulator : uint8_t { kF32, kF64, kI32, kF16, kBf16 };
enum class MatrixFamily : uint8_t { kMfma, kScaledMfma, kSmfmac, kWmma };

constexpr int element_bits(Element e) {
  switch (e) {
    case Element::kF64:
      return 64;
    case Element::kF32:
    case Element::kXf32:
      return 32;
    case Element::kF16:
    case Element::kBf16:
      return 16;
    case Element::kFp6:
    case Element::kBf6:
      return 6;
    case Element::kI4:
    case Element::kU4:
    case Element::kFp4:
      return 4;
    default:
      return 8;
  }
}

struct MatrixShape {
  MatrixFamily family = MatrixFamily::kMfma;
  int m = 0;  ///< rows of A and D; always equal to n, the columns of B and D
  int k = 0;  ///< per block; of the dense product for SMFMAC
  int blocks = 1;
  Element a = Element::kF32, b = Element::kF32;
  Accumulator d = Accumulator::kF32;
  bool fnuz = false;  ///< fp8/bf8 are the FNUZ formats (gfx942), otherwise OCP
  int lanes = 64;

  /// Values of k that one lane holds of B (of A too, except SMFMAC, whose A holds half as many).
  constexpr int elements_per_lane() const {
    if (family == MatrixFamily::kWmma) return k;
    return k * m * blocks / lanes;
  }
  constexpr bool sparse() const { return family == MatrixFamily::kSmfmac; }
  constexpr int a_dwords() const { return elements_per_lane() * element_bits(a) / (sparse() ? 64 : 32); }
  constexpr int b_dwords() const { return elements_per_lane() * element_bits(b) / 32; }
  /// Registers of C and D.
  constexpr int d_dwords() const { return m * m * blocks / lanes * (d == Accumulator::kF64 ? 2 : 1); }
};

/// Row of the [k][m] table that element `e` of the lanes `group * m …` belongs to. With several blocks a group is a
/// block and the tables of the blocks follow each other. 8-bit operands with 32 values per lane come in two runs of 16.
constexpr int unpacked_row(int group, int e, int elements, int groups, bool two_runs) {
  return two_runs ? (e / 16) * 16 * groups + group * 16 + e % 16 : group * elements + e;
}

struct Place {
  int reg, lane;
};

/// Where D[i][j] of a block lies (C has the same layout). For f64 `reg` counts register pairs.
constexpr Place accumulator_place(const MatrixShape& s, int block, int i, int j) {
  if (s.family == MatrixFamily::kWmma) {
    const int rows_per_register = s.lanes / 16;
    return {i / rows_per_register, i % rows_per_register * 16 + j};
  }
  if (s.d == Accumulator::kF64) {
    if (s.m == 4) return {0, 16 * i + 4 * block + j};
    return {i / 4, 16 * (i % 4) + j};
  }
  if (s.m == 4) return {i, 4 * block + j};
  const int groups = 64 / s.m;  // rows i … i + 3 lie in four registers, the next four rows in the next group of lanes
  return {block * s.m * s.m / 64 + i / (4 * groups) * 4 + i % 4, i / 4 % groups * s.m + j};
}

}  // namespace crest_sim::CREST_SIM_LEVEL
