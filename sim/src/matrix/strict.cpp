// `strict` arithmetic of MFMA and SMFMAC with fp32 accumulators and narrow operands; see strict_group.h for the rule.
#include "matrix/decode_small.h"
#include "matrix/strict_group.h"
#include "matrix/strict_scalar.h"
#include "matrix/tile.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

/// Exponents of a table, and what values it holds.
struct Exponents {
  alignas(64) int32_t table[kMaxTable];
  int smallest = 1000, largest = kZeroExponent;  ///< of nonzero finite values
  bool finite = true;
};

void find_exponents(const float* values, int count, int min_exponent, Exponents& out) {
  WideI smallest = splat(1000), largest = splat(kZeroExponent);
  for (int t = 0; t < count; t += kWide) {
    const WideI word = bits<WideI>(load<WideF>(values + t)) & 0x7fffffff;
    const WideI zero = word == 0;
    const WideI exponent = vmax((word >> 23) - 127, splat(min_exponent));
    store(out.table + t, select(zero, splat(kZeroExponent), exponent));
    smallest = vmin(smallest, select(zero, splat(1000), exponent));
    largest = vmax(largest, select(zero, splat(kZeroExponent), exponent));
  }
  out.smallest = __builtin_reduce_min(smallest);
  out.largest = __builtin_reduce_max(largest);
  out.finite = out.largest < 128;
}

/// value × 2^-exponent; only fp32-like formats (smallest exponent -126) need it.
void to_significands(float* values, const int32_t* exponents, int count) {
  for (int t = 0; t < count; t += kWide) {
    const WideF value = load<WideF>(values + t);
    const WideI exponent = load<WideI>(exponents + t);
    const WideI low = exponent <= kMinExponent;  // subnormal, zero or the smallest normals
    const WideF normal = bits<WideF>((bits<WideI>(value) & int32_t(0x807fffff)) | 0x3f800000);
    store(values + t, select(low, value * 0x1p126f, normal));
  }
}

/// What the rows of one accumulator tile are computed from.
struct Plan {
  const MatrixShape* shape;
  Terms terms;
  Rows rows;
  int base = 0;  ///< of the block's accumulators
  const Scales* scales = nullptr;
  bool two_halves = false;
  int scale_group = 0;  ///< terms per scale
};

/// Exponents that microscaling adds to the products of one group.
CREST_SIM_INLINE WideI scale_exponents(const Plan& plan, int t, int scale_row, int column) {
  using Narrow = int16_t __attribute__((ext_vector_type(kWide)));
  const int block = t / plan.scale_group;
  return __builtin_convertvector(load<Narrow>(plan.scales->b[block] + column), WideI) +
         int32_t(plan.scales->a[block][scale_row]);
}

template <bool VectorA, Factors F, bool TwoHalves, int PerHalf>
void strict_row(const Plan& plan, int a_row, int scale_row, int columns, const uint32_t* c, uint32_t* d) {
  const Terms& terms = plan.terms;
  for (int column = 0; column < columns; column += kColumnStep) {
    const int row = VectorA ? column : a_row;
    WideF sum[kColumnVectors];
    for (int v = 0; v < kColumnVectors; ++v) sum[v] = load<WideF>(c + column + v * kWide);
    for (int t = 0; t < terms.count; t += TwoHalves ? 2 * PerHalf : PerHalf) {
      PartialSums dot = sum_products<VectorA, F, PerHalf>(terms, t, row, column);
      if constexpr (TwoHalves) {
        const PartialSums odd = sum_products<VectorA, F, PerHalf>(terms, t + PerHalf, row, column);
        for (int v = 0; v < kColumnVectors; ++v) {
          dot.at[v] = join_halves(dot.at[v], odd.at[v]);
          if (!plan.scales) continue;
          const WideI nonzero = dot.at[v].exponent > kMinExponent;
          dot.at[v].exponent += scale_exponents(plan, t, scale_row, column + v * kWide) & nonzero;
        }
      }
      for (int v = 0; v < kColumnVectors; ++v) sum[v] = add_to_accumulator<TwoHalves>(dot.at[v], sum[v]);
    }
    for (int v = 0; v < kColumnVectors; ++v) store(d + column + v * kWide, sum[v]);
  }
}

template <bool VectorA>
void strict_row(const Plan& plan, Factors factors, int a_row, int scale_row, int columns, const uint32_t* c,
                uint32_t* d) {
  if (plan.two_halves) return strict_row<VectorA, Factors::kValues, true, 8>(plan, a_row, scale_row, columns, c, d);
  const bool values = factors == Factors::kValues;
  if (plan.terms.per_half == 8) {
    return values ? strict_row<VectorA, Factors::kValues, false, 8>(plan, a_row, scale_row, columns, c, d)
                  : strict_row<VectorA, Factors::kSignificands, false, 8>(plan, a_row, scale_row, columns, c, d);
  }
  return values ? strict_row<VectorA, Factors::kValues, false, 4>(plan, a_row, scale_row, columns, c, d)
                : strict_row<VectorA, Factors::kSignificands, false, 4>(plan, a_row, scale_row, columns, c, d);
}

/// The same in integer arithmetic; `scale_nan`: a scale of the row or column is NaN.
void scalar_row(const Plan& plan, bool vector_a, int a_row, int scale_row, int columns, const uint32_t* c,
                uint32_t* d) {
  const Terms& terms = plan.terms;
  ScalarRule rule{min_exponent(plan.shape->a, plan.shape->fnuz), min_exponent(plan.shape->b, plan.shape->fnuz),
                  plan.two_halves};
  const int step = plan.two_halves ? 2 * terms.per_half : terms.per_half;
  for (int column = 0; column < columns; ++column) {
    float sum = __builtin_bit_cast(float, c[column]);
    for (int t = 0; t < terms.count; t += step) {
      float a[kMaxTerms], b[kMaxTerms];
      for (int s = 0; s < step; ++s) {
        a[s] = terms.a[t + s][vector_a ? column : a_row];
        b[s] = terms.b[t + s][column];
      }
      if (plan.scales) {
        const int block = t / plan.scale_group;
        const int left = plan.scales->a[block][scale_row], right = plan.scales->b[block][column];
        rule.scale = left + right;
        if (left == Scales::kNanScale || right == Scales::kNanScale) sum = __builtin_nanf("");
      }
      sum = rule.add_group(a, b, terms.per_half, sum);
    }
    d[column] = __builtin_bit_cast(uint32_t, sum);
  }
}

/// How a tile can be computed.
enum class Route : uint8_t { kValues, kSignificands, kScalar };

Route choose_route(const MatrixShape& shape, const Exponents& a, const Exponents& b, const Scales* scales) {
  if (!a.finite || !b.finite || a.largest + b.largest >= 127) return Route::kScalar;
  if (scales) {
    for (int block = 0; block < shape.k / 32; ++block) {
      for (int i = 0; i < shape.m; ++i) {
        if (scales->a[block][i] == Scales::kNanScale || scales->b[block][i] == Scales::kNanScale) return Route::kScalar;
      }
    }
  }
  const bool moderate = a.smallest >= -50 && a.largest <= 50 && b.smallest >= -50 && b.largest <= 50;
  return moderate ? Route::kValues : Route::kSignificands;
}

struct Job {
  Route route;
  const MatrixShape& shape;
  const uint32_t* c;
  uint32_t* d;

  void row(const Plan& plan, bool vector_a, int r, int columns) const {
    const int offset = plan.base + plan.rows.offset[r], a_row = plan.rows.column[r];
    if (route == Route::kScalar) return scalar_row(plan, vector_a, a_row, r, columns, c + offset, d + offset);
    const Factors factors = route == Route::kValues ? Factors::kValues : Factors::kSignificands;
    if (vector_a) return strict_row<true>(plan, factors, a_row, r, columns, c + offset, d + offset);
    strict_row<false>(plan, factors, a_row, r, columns, c + offset, d + offset);
  }
};

/// Values of k in the order in which they are summed: even before odd in each group of 16 if there are two halves.
int term_order(int t, bool two_halves) { return two_halves ? t / 16 * 16 + t % 8 * 2 + t % 16 / 8 : t; }

void sixteen_small_blocks(const Job& job, Plan& plan, const Tables& tables, const Exponents& a, const Exponents& b) {
  alignas(64) float spread[kMaxTable];
  alignas(64) int32_t exponents[kMaxTable];
  plan.rows.count = 4;
  for (int t = 0; t < plan.terms.count; ++t) {
    plan.terms.a[t] = spread + t * 64;
    plan.terms.a_exponent[t] = exponents + t * 64;
    plan.terms.b[t] = tables.b + t * 64;
    plan.terms.b_exponent[t] = b.table + t * 64;
  }
  for (int i = 0; i < 4; ++i) {
    plan.rows.column[i] = 0;
    plan.rows.offset[i] = int16_t(i * 64);
    for (int t = 0; t < plan.terms.count; ++t) {
      for (int l = 0; l < 64; ++l) {
        spread[t * 64 + l] = tables.a[t * 64 + l / 4 * 4 + i];
        exponents[t * 64 + l] = a.table[t * 64 + l / 4 * 4 + i];
      }
    }
    job.row(plan, true, i, 64);
  }
}

void blocks(const Job& job, Plan& plan, const Tables& tables, const Exponents& a, const Exponents& b) {
  const int m = job.shape.m;
  plan.rows = block_rows(job.shape);
  for (int block = 0; block < job.shape.blocks; ++block) {
    plan.base = block * m * m;
    for (int t = 0; t < plan.terms.count; ++t) {
      const int at = (block * job.shape.k + term_order(t, plan.two_halves)) * m;
      plan.terms.a[t] = tables.a + at;
      plan.terms.a_exponent[t] = a.table + at;
      plan.terms.b[t] = tables.b + at;
      plan.terms.b_exponent[t] = b.table + at;
    }
    for (int r = 0; r < m; ++r) job.row(plan, false, r, m);
  }
}

void sparse_rows(const Job& job, Plan& plan, const SparseTables& sparse, const Exponents& a, const Exponents& b) {
  const int m = job.shape.m;
  plan.rows = block_rows(job.shape);
  for (int r = 0; r < m; ++r) {
    for (int t = 0; t < plan.terms.count; ++t) {
      const int at = term_order(t, plan.two_halves) * m, partner = sparse.partner[at + r] * m;
      plan.terms.a[t] = sparse.tables.a + at;
      plan.terms.a_exponent[t] = a.table + at;
      plan.terms.b[t] = sparse.tables.b + partner;
      plan.terms.b_exponent[t] = b.table + partner;
    }
    job.row(plan, false, r, m);
  }
}

}  // namespace

void run_strict(const MatrixShape& base, const MatrixCall& call) {
  const bool scaled = base.family == MatrixFamily::kScaledMfma;
  const MatrixShape shape = scaled ? resolve_formats(base, *call.instruction) : base;
  SparseTables sparse;
  Tables& tables = sparse.tables;
  if (shape.sparse()) {
    load_sparse(shape, call, sparse);
  } else {
    load_tables(shape, call, tables);
  }
  Scales scales;
  Plan plan;
  plan.shape = &shape;
  plan.two_halves = element_bits(shape.a) <= 8;
  plan.terms.count = shape.sparse() ? shape.k / 2 : shape.k;
  const int group = shape.a == Element::kXf32 ? 4 : 8;
  plan.terms.per_half = plan.terms.count < group ? plan.terms.count : group;
  if (scaled && call.scale_a) {
    load_scales(shape, call, scales);
    plan.scales = &scales;
    plan.scale_group = 32;
  }

  Exponents a, b;
  const int b_values = shape.k * shape.blocks * shape.m;
  const int a_values = shape.sparse() ? b_values / 2 : b_values;
  find_exponents(tables.a, a_values, min_exponent(shape.a, shape.fnuz), a);
  find_exponents(tables.b, b_values, min_exponent(shape.b, shape.fnuz), b);
  alignas(64) uint32_t buffer[kMaxAccumulator];
  const Job job{choose_route(shape, a, b, plan.scales), shape, safe_accumulator(shape, call, buffer), call.d};
  if (job.route == Route::kSignificands) {
    to_significands(tables.a, a.table, a_values);
    to_significands(tables.b, b.table, b_values);
  }
  if (shape.sparse()) return sparse_rows(job, plan, sparse, a, b);
  if (shape.m == 4) return sixteen_small_blocks(job, plan, tables, a, b);
  blocks(job, plan, tables, a, b);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
