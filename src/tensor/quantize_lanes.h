#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tensor/half.h"

namespace crest::tensor::detail {

/// Four floats that the compiler maps to one SSE register. Sums are always formed in the same four partial sums, so
/// results do not depend on the compiler or the processor.
using Lanes = float __attribute__((vector_size(16)));

inline Lanes splat(float value) { return Lanes{value, value, value, value}; }
inline Lanes load(const float* p) {
  Lanes value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}
inline void store(float* p, Lanes value) { std::memcpy(p, &value, sizeof(value)); }
inline Lanes min(Lanes a, Lanes b) { return a < b ? a : b; }
inline Lanes max(Lanes a, Lanes b) { return b < a ? a : b; }
/// Nearest integer, ties to even, for |x| < 2^22.
inline Lanes round(Lanes x) {
  const Lanes magic = splat(12582912.0f);
  return (x + magic) - magic;
}
inline float sum(Lanes x) { return (x[0] + x[1]) + (x[2] + x[3]); }

/// Nearest integer in [low, high].
inline Lanes snap(Lanes x, float low, float high) { return round(max(min(x, splat(high)), splat(low))); }

/// A scale as it is stored; the largest finite half instead of an infinity.
inline uint16_t to_half(double scale) { return f32_to_f16(std::clamp(static_cast<float>(scale), -65504.0f, 65504.0f)); }

}  // namespace crest::tensor::detail
