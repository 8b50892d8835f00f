// MFMA with fp64 operands: a chain of fused multiply-adds in ascending k. BLGP negates A, B and C.
#include "matrix/tile.h"

namespace crest_sim::CREST_SIM_LEVEL {
namespace {

double read(const uint32_t* rows, int pair, int lane) {
  const uint64_t low = rows[pair * 2 * 64 + lane], high = rows[(pair * 2 + 1) * 64 + lane];
  return __builtin_bit_cast(double, low | high << 32);
}

void write(uint32_t* rows, int pair, int lane, double value) {
  const uint64_t word = __builtin_bit_cast(uint64_t, value);
  rows[pair * 2 * 64 + lane] = uint32_t(word);
  rows[(pair * 2 + 1) * 64 + lane] = uint32_t(word >> 32);
}

}  // namespace

void run_f64(const MatrixShape& shape, const MatrixCall& call) {
  alignas(64) uint32_t buffer[kMaxAccumulator];
  const uint32_t* c = safe_accumulator(shape, call, buffer);
  double a[64], b[64];
  const auto negated = [&](double value, int bit) { return call.instruction->blgp >> bit & 1 ? -value : value; };
  for (int lane = 0; lane < 64; ++lane) {
    a[lane] = negated(read(call.a, 0, lane), 0);
    b[lane] = negated(read(call.b, 0, lane), 1);
  }
  // Sixteen lanes hold one row of D (of all blocks) and one value of k of A and B.
  for (int i = 0; i < shape.m; ++i) {
    const Place place = accumulator_place(shape, 0, i, 0);
    double sum[16];
    for (int l = 0; l < 16; ++l) sum[l] = negated(read(c, place.reg, place.lane + l), 2);
    for (int k = 0; k < 4; ++k) {
      double left[16];
      for (int l = 0; l < 16; ++l) left[l] = a[k * 16 + (shape.m == 16 ? i : l / 4 * 4 + i)];
      for (int l = 0; l < 16; ++l) sum[l] = __builtin_fma(left[l], b[k * 16 + l], sum[l]);
    }
    for (int l = 0; l < 16; ++l) write(call.d, place.reg, place.lane + l, sum[l]);
  }
}

}  // namespace crest_sim::CREST_SIM_LEVEL
