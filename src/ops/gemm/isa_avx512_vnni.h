#pragma once

#include "ops/gemm/panel_dots.h"
#include "ops/gemm/panel_kernel.h"

namespace crest::ops {
namespace {

struct VnniVector512 : panel::Vector512 {
  static I byte_dot(I sum, I weights, I activations) { return _mm512_dpbusd_epi32(sum, weights, activations); }
};

struct Avx512Vnni : panel::QuadDots<VnniVector512> {
  static constexpr int kPlainTile = 12;  // 24 sums, 2 weights, 1 activation
  template <bool>
  static constexpr int tile() {
    return 12;  // as above
  }
};

}  // namespace
}  // namespace crest::ops
