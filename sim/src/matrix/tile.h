// Operands of one matrix instruction as tables of fp32, and where the rows of its accumulator lie.
#pragma once

#include "exec/matrix_call.h"
#include "matrix/shape.h"
#include "matrix/unpack.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// A[k][i] and B[k][j]; tables of several blocks follow each other.
struct Tables {
  alignas(64) float a[kMaxTable];
  alignas(64) float b[kMaxTable];
};

/// Rows of D that share one pair of tables: row r multiplies column `column[r]` of A and starts `offset[r]` dwords
/// behind the first accumulator register.
struct Rows {
  int count = 0;
  int16_t column[32] = {};
  int16_t offset[32] = {};
};

/// CBSZ/ABID broadcast blocks of A, BLGP permutes groups of lanes of B. Returns `rows`, or `buffer` with a permuted
/// copy.
const uint32_t* broadcast_blocks(const MatrixShape& shape, const Instruction& instruction, const uint32_t* rows,
                                 uint32_t* buffer);
const uint32_t* permute_lane_groups(const MatrixShape& shape, const Instruction& instruction, const uint32_t* rows,
                                    uint32_t* buffer);

/// Formats of f8f6f4 operands come from CBSZ (A) and BLGP (B).
MatrixShape resolve_formats(const MatrixShape& shape, const Instruction& instruction);

/// Dense MFMA: A and B with every lane permutation applied.
void load_tables(const MatrixShape& shape, const MatrixCall& call, Tables& tables);

/// SMFMAC: `a` holds the k/2 stored values per row, `partner` which row of the B table each of them multiplies.
struct SparseTables {
  Tables tables;
  uint8_t partner[kMaxTable / 2];
};
void load_sparse(const MatrixShape& shape, const MatrixCall& call, SparseTables& tables);

/// Accumulator rows of the first block of an MFMA shape with m = 16 or 32; those of block n start n·m² dwords further.
constexpr Rows make_block_rows(int m) {
  Rows rows;
  rows.count = m;
  MatrixShape shape;
  shape.m = m;
  for (int i = 0; i < m; ++i) {
    const Place place = accumulator_place(shape, 0, i, 0);
    rows.column[i] = int16_t(i);
    rows.offset[i] = int16_t(place.reg * 64 + place.lane);
  }
  return rows;
}
inline constexpr Rows kRows16 = make_block_rows(16), kRows32 = make_block_rows(32);
inline const Rows& block_rows(const MatrixShape& shape) { return shape.m == 32 ? kRows32 : kRows16; }

/// C (D itself for SMFMAC) when it can be read while D is written: C itself, or a copy in `buffer` if the two overlap
/// without being equal.
const uint32_t* safe_accumulator(const MatrixShape& shape, const MatrixCall& call, uint32_t* buffer);

inline constexpr int kMaxAccumulator = 32 * 64;

/// 2^(value - 127) of E8M0; 255 is NaN. `lane` of a row with one byte chosen by op_sel.
struct Scales {
  int16_t a[4][32], b[4][32];  ///< [block of 32 values of k][row or column], exponents; kNanScale for NaN
  static constexpr int16_t kNanScale = 0x4000;
};
void load_scales(const MatrixShape& shape, const MatrixCall& call, Scales& scales);

void run_fast(const MatrixShape& shape, const MatrixCall& call);
void run_strict(const MatrixShape& shape, const MatrixCall& call);
void run_f64(const MatrixShape& shape, const MatrixCall& call);
void run_wmma(const MatrixShape& shape, const MatrixCall& call, bool strict);

}  // namespace crest_sim::CREST_SIM_LEVEL
