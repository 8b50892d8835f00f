#pragma once

// Integer dot products of the linear kernels, one template for each way to form them; what differs between 256 and 512
// bits is in panel_vector.h.

#include "ops/gemm/panel_vector.h"

namespace crest::ops::panel {
namespace {

/// Without a byte dot product: u8 x s8 pairs go to 16 bits, several steps are added there (as many as fit), and pairs
/// of those to 32 bits. 8-bit quants would overflow the first step: they are split into two planes of 4 bits.
template <typename V>
struct PairDots : V {
  using I = typename V::I;
  static constexpr bool kByteDots = false;
  static constexpr bool kSigned = false;

  template <int kPlane, int kSteps, int kFlush, int kVectors, int T, typename Source>
  [[gnu::always_inline]] static void plane(const Source& source, const int8_t* const* x, int64_t column, I weight,
                                           I (&out)[kVectors][T]) {
    unroll<kSteps / kFlush>([&]<int kPart>() __attribute__((always_inline)) {
      I sum[kVectors][T];
      unroll<kFlush>([&]<int i>() __attribute__((always_inline)) {
        constexpr int kStep = kPart * kFlush + i;
        I w[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) w[v] = source.template get<kStep, kPlane>(v);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const I b = V::broadcast4(x[t] + column + 4 * kStep);
#pragma GCC unroll 2
          for (int v = 0; v < kVectors; ++v) {
            const I product = V::multiply_pairs(w[v], b);
            sum[v][t] = i == 0 ? product : V::add16(sum[v][t], product);
            // NOTE: without this g++ gathers all products first and adds them as a tree, out of registers.
            asm("" : "+v"(sum[v][t]));
          }
        }
      });
      constexpr bool kFirst = kPlane == 0 && kPart == 0;
#pragma GCC unroll 8
      for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const I wide = V::widen_pairs(sum[v][t], weight);
          out[v][t] = kFirst ? wide : V::add32(out[v][t], wide);
        }
      }
    });
  }

  template <int kSteps, int kFlush, bool kTwoPlanes, int kVectors, int T, typename Source>
  [[gnu::always_inline]] static void dots(const Source& source, const int8_t* const* x, int64_t column,
                                          I (&out)[kVectors][T]) {
    plane<0, kSteps, kFlush>(source, x, column, V::set16(1), out);
    if constexpr (kTwoPlanes) plane<1, kSteps, kFlush>(source, x, column, V::set16(16), out);
  }
};

/// With the byte dot product: u8 x s8, four at a time, straight to 32 bits. V adds byte_dot(sum, weights, activations).
template <typename V>
struct QuadDots : V {
  using I = typename V::I;
  static constexpr bool kByteDots = true;
  static constexpr bool kSigned = false;

  template <int kSteps, int, bool, int kVectors, int T, typename Source>
  [[gnu::always_inline]] static void dots(const Source& source, const int8_t* const* x, int64_t column,
                                          I (&out)[kVectors][T]) {
    unroll<kSteps>([&]<int i>() __attribute__((always_inline)) {
      I w[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) w[v] = source.template get<i, 0>(v);
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        const I b = V::broadcast4(x[t] + column + 4 * i);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) out[v][t] = V::byte_dot(out[v][t], w[v], b);
      }
    });
  }
};

}  // namespace
}  // namespace crest::ops::panel
