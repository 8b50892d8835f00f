#include <cstring>

#include "tensor/pack.h"
#include "tensor/quantize_kernels.h"
#include "tensor/quantize_scaled.h"

// Q3_K, Q6_K and IQ4_XS: 256 elements, sub-blocks with signed integer scales.
namespace crest::tensor::detail {
namespace {

constexpr ScaleSearch kSearch3{-1.2f, 0.15f, 14};
constexpr ScaleSearch kSearch6{-8.0f, 0.5f, 20};
constexpr ScaleSearch kSearchIQ4{-40.0f, 4.0f, 20};

template <typename Block, typename Solver, typename Write>
void each_block(const float* x, const float* weights, void* dst, int64_t n, const ScaleSearch& search, Write write) {
  auto* blocks = static_cast<Block*>(dst);
  for (int64_t b = 0; b < n / kSuperBlock; ++b) {
    Solver solver(x + b * kSuperBlock, weights + b * kSuperBlock, search);
    solver.solve();
    uint8_t codes[kSuperBlock];
    solver.codes(codes);
    blocks[b].d = solver.d();
    write(solver, codes, blocks[b]);
  }
}

}  // namespace

void quantize_q3_k(const float* x, const float* weights, void* dst, int64_t n) {
  using Solver = ScaledSuperBlock<IntegerGrid<-4, 3>, 16, 32>;
  each_block<BlockQ3_K, Solver>(x, weights, dst, n, kSearch3,
                                [](const Solver& solver, const uint8_t* codes, BlockQ3_K& block) {
                                  std::memset(block.scales, 0, sizeof(block.scales));
                                  for (int j = 0; j < 16; ++j) pack_q3_scale(block.scales, j, solver.scale(j) + 32);
                                  pack_pairs(codes, block.qs);
                                  pack_bit_planes(codes, 2, block.hmask);
                                });
}

void quantize_q6_k(const float* x, const float* weights, void* dst, int64_t n) {
  using Solver = ScaledSuperBlock<IntegerGrid<-32, 31>, 16, 128>;
  each_block<BlockQ6_K, Solver>(x, weights, dst, n, kSearch6,
                                [](const Solver& solver, const uint8_t* codes, BlockQ6_K& block) {
                                  for (int j = 0; j < 16; ++j) block.scales[j] = static_cast<int8_t>(solver.scale(j));
                                  pack_q6_k(codes, block.ql, block.qh);
                                });
}

void quantize_iq4_xs(const float* x, const float* weights, void* dst, int64_t n) {
  using Solver = ScaledSuperBlock<IQ4Grid, 32, 32>;
  each_block<BlockIQ4_XS, Solver>(
      x, weights, dst, n, kSearchIQ4, [](const Solver& solver, const uint8_t* codes, BlockIQ4_XS& block) {
        block.scales_h = 0;
        std::memset(block.scales_l, 0, sizeof(block.scales_l));
        for (int j = 0; j < 8; ++j) {
          const int stored = solver.scale(j) + 32;
          block.scales_l[j / 2] = static_cast<uint8_t>(block.scales_l[j / 2] | (stored & 15) << (j % 2 * 4));
          block.scales_h = static_cast<uint16_t>(block.scales_h | stored >> 4 << (2 * j));
          pack_nibbles(codes + 32 * j, block.qs + 16 * j);
        }
      });
}

}  // namespace crest::tensor::detail
