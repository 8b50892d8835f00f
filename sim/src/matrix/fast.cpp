// `fast` arithmetic of MFMA and SMFMAC with fp32 or int32 accumulators.
#include <cstring>

#include "matrix/multiply.h"
#include "matrix/unpack_rows.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

template <Sum S>
void multiply_blocks(const MatrixShape& shape, const float* a, const float* b, const uint32_t* c, uint32_t* d) {
  if (shape.m == 4) return multiply_small<S>(a, b, shape.k, c, d);
  for (int block = 0; block < shape.blocks; ++block) {
    if (shape.m == 32) {
      multiply<32, S>(a, 32, b, 32, shape.k, kRows32, c, d);
    } else {
      multiply<16, S>(a, 16, b, 16, shape.k, kRows16, c, d);
    }
    a += shape.k * shape.m;
    b += shape.k * shape.m;
    c += shape.m * shape.m;
    d += shape.m * shape.m;
  }
}

void multiply_all(const MatrixShape& shape, const float* a, const float* b, const uint32_t* c, uint32_t* d) {
  if (shape.d == Accumulator::kI32) return multiply_blocks<Sum::kInteger>(shape, a, b, c, d);
  if (shape.a == Element::kF32) return multiply_blocks<Sum::kFused>(shape, a, b, c, d);
  multiply_blocks<Sum::kExact>(shape, a, b, c, d);
}

/// Every stored value of A multiplies the row of B that its index names.
template <Sum S, int Columns>
void multiply_sparse(const MatrixShape& shape, const SparseTables& sparse, const uint32_t* c, uint32_t* d) {
  constexpr int kVectors = Columns / kWide, kRows = kVectors >= 8 ? 1 : 8 / kVectors;
  const Rows& rows = block_rows(shape);
  for (int r = 0; r < Columns; r += kRows) {
    WideF sum[kRows][kVectors];
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v)
        sum[i][v] = S == Sum::kInteger ? WideF(0.0f) : load<WideF>(c + rows.offset[r + i] + v * kWide);
    }
    for (int t = 0; t < shape.k / 2; ++t) {
      for (int i = 0; i < kRows; ++i) {
        const int entry = t * Columns + r + i;
        const WideF left = splat(sparse.tables.a[entry]);
        const float* right = sparse.tables.b + sparse.partner[entry] * Columns;
        for (int v = 0; v < kVectors; ++v) sum[i][v] = accumulate<S>(left, load<WideF>(right + v * kWide), sum[i][v]);
      }
    }
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kVectors; ++v)
        store_sum<S>(sum[i][v], c + rows.offset[r + i] + v * kWide, d + rows.offset[r + i] + v * kWide);
    }
  }
}

template <Sum S>
void multiply_sparse(const MatrixShape& shape, const SparseTables& sparse, const uint32_t* c, uint32_t* d) {
  if (shape.m == 32) return multiply_sparse<S, 32>(shape, sparse, c, d);
  multiply_sparse<S, 16>(shape, sparse, c, d);
}

/// Microscaling: blocks of 32 values of k share a scale per row of A and per column of B. The blocks' sums are exact
/// enough in fp32; scaling and accumulation happen in double, whose exponent range holds both scales.
void run_fast_scaled(const MatrixShape& base, const MatrixCall& call) {
  MatrixShape shape = resolve_formats(base, *call.instruction);
  Tables tables;
  load_tables(shape, call, tables);
  Scales scales;
  load_scales(shape, call, scales);
  alignas(64) const uint32_t zeros[32 * 32] = {};
  alignas(64) uint32_t buffer[kMaxAccumulator], sums[32 * 32];
  const uint32_t* c = safe_accumulator(shape, call, buffer);
  const Rows& rows = block_rows(shape);
  const auto factor = [](int16_t e) {
    return e == Scales::kNanScale ? __builtin_nan("") : __builtin_bit_cast(double, uint64_t(1023 + e) << 52);
  };

  alignas(64) double total[32 * 32];
  for (int i = 0; i < shape.m; ++i) {
    for (int j = 0; j < shape.m; ++j) total[i * shape.m + j] = __builtin_bit_cast(float, c[rows.offset[i] + j]);
  }
  MatrixShape part = shape;
  part.k = 32;
  for (int block = 0; block < shape.k / 32; ++block) {
    const int at = block * 32 * shape.m;
    multiply_blocks<Sum::kExact>(part, tables.a + at, tables.b + at, zeros, sums);
    for (int i = 0; i < shape.m; ++i) {
      const double left = factor(scales.a[block][i]);
      for (int j = 0; j < shape.m; ++j) {
        const double sum = __builtin_bit_cast(float, sums[rows.offset[i] + j]);
        total[i * shape.m + j] += sum * left * factor(scales.b[block][j]);
      }
    }
  }
  for (int i = 0; i < shape.m; ++i) {
    for (int j = 0; j < shape.m; ++j)
      call.d[rows.offset[i] + j] = __builtin_bit_cast(uint32_t, float(total[i * shape.m + j]));
  }
}

/// The common dense shapes with one block, everything about them known to the compiler.
template <int M, int K, Element E, bool Fnuz, Sum S>
void run_known(const MatrixCall& call) {
  constexpr int kElements = K * M / 64;
  constexpr UnpackLayout kLayout{64, M, kElements, kElements > 16 && element_bits(E) == 8};
  alignas(64) float a[K * M], b[K * M];
  if constexpr (element_bits(E) == 16) {
    unpack_pairs<E>(call.a, kLayout, a);
    unpack_pairs<E>(call.b, kLayout, b);
  } else {
    unpack_as<E, Fnuz>(call.a, kLayout, a);
    unpack_as<E, Fnuz>(call.b, kLayout, b);
  }
  constexpr MatrixShape kShape{
      MatrixFamily::kMfma, M, K, 1, E, E, S == Sum::kInteger ? Accumulator::kI32 : Accumulator::kF32, Fnuz, 64};
  alignas(64) uint32_t buffer[M * M];
  const uint32_t* c = safe_accumulator(kShape, call, buffer);
  // Rows 4 g … 4 g + 3 lie in four registers that follow each other.
  for (int g = 0; g < M / 4; ++g) {
    const int at = (M == 32 ? kRows32 : kRows16).offset[4 * g];
    multiply_block<M, K, 4, S>(a + 4 * g, M, 1, b, M, c + at, call.d + at, 64);
  }
}

/// Null if there is no such specialisation.
MatrixFn known_shape(const MatrixShape& s) {
  if (s.family != MatrixFamily::kMfma || s.blocks != 1 || s.a != s.b) return nullptr;
  auto is = [&](int m, int k, Element e) { return s.m == m && s.k == k && s.a == e; };
  if (is(32, 8, Element::kBf16)) return run_known<32, 8, Element::kBf16, false, Sum::kExact>;
  if (is(32, 8, Element::kF16)) return run_known<32, 8, Element::kF16, false, Sum::kExact>;
  if (is(16, 16, Element::kBf16)) return run_known<16, 16, Element::kBf16, false, Sum::kExact>;
  if (is(16, 16, Element::kF16)) return run_known<16, 16, Element::kF16, false, Sum::kExact>;
  if (is(32, 16, Element::kBf16)) return run_known<32, 16, Element::kBf16, false, Sum::kExact>;
  if (is(16, 32, Element::kBf16)) return run_known<16, 32, Element::kBf16, false, Sum::kExact>;
  if (is(16, 32, Element::kI8)) return run_known<16, 32, Element::kI8, false, Sum::kInteger>;
  if (is(32, 16, Element::kI8)) return run_known<32, 16, Element::kI8, false, Sum::kInteger>;
  if (is(16, 32, Element::kFp8))
    return s.fnuz ? run_known<16, 32, Element::kFp8, true, Sum::kExact>
                  : run_known<16, 32, Element::kFp8, false, Sum::kExact>;
  return nullptr;
}

}  // namespace

void run_fast(const MatrixShape& shape, const MatrixCall& call) {
  if (call.instruction->blgp == 0)
    if (MatrixFn known = known_shape(shape)) return known(call);
  alignas(64) uint32_t buffer[kMaxAccumulator];
  if (shape.family == MatrixFamily::kScaledMfma && call.scale_a) return run_fast_scaled(shape, call);
  const uint32_t* c = safe_accumulator(shape, call, buffer);
  if (shape.sparse()) {
    SparseTables sparse;
    load_sparse(shape, call, sparse);
    return shape.d == Accumulator::kI32 ? multiply_sparse<Sum::kInteger>(shape, sparse, c, call.d)
                                        : multiply_sparse<Sum::kExact>(shape, sparse, c, call.d);
  }
  Tables tables;
  const MatrixShape resolved =
      shape.family == MatrixFamily::kScaledMfma ? resolve_formats(shape, *call.instruction) : shape;
  load_tables(resolved, call, tables);
  multiply_all(resolved, tables.a, tables.b, c, call.d);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
