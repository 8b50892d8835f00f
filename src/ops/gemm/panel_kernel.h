#pragma once

// The linear kernels over layout kPanels, one template for all instruction sets. A file that includes this defines
// what `Isa` is (see cpu_linear_avx2.cpp) and is compiled with that instruction set's flags.
//
// Quantised weights:  unpack up to 256 columns of a panel (16 rows) into QuantBlock, then for tiles of T tokens:
//   steps of 4 columns: u8 weights x s8 activations -> integers          Isa::dots
//   per sub-block:      to float, times both scales, plus offset * sum of the activations
// Plain weights:        unpack 128 columns to fp32, then an outer-product kernel on T tokens.
// Sums of one output are formed in the same order whatever T is: results do not depend on how tokens are batched.

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "ops/gemm/linear.h"
#include "ops/gemm/panel_unpack.h"
#include "ops/quant/activations.h"

namespace crest::ops::panel {
namespace {

/// Tokens whose sums are kept while a panel's columns are walked through: unpacking is shared by that many.
constexpr int64_t kTokenBlock = 128;
constexpr int64_t kPlainCols = 128;

struct Accumulators {
  alignas(64) float sum[kTokenBlock][kRows];
};

/// Activations of T tokens from some column on.
template <int T>
struct QuantTokens {
  const int8_t* quants[T];
  const float* scales[T];
  const float* sums[T];
};

template <typename Isa, int kSteps, int kFlush, bool kTwoPlanes, int T>
[[gnu::noinline]] void multiply_quants(const QuantBlock& block, int subs, const QuantTokens<T>& x,
                                       float (*out)[kRows]) {
  using F = typename Isa::F;
  constexpr int kVectors = static_cast<int>(kRows) / Isa::kLanes;
  constexpr int kSubsPerScale = 8 / kSteps;  // weight sub-blocks that share one activation scale
  F acc[kVectors][T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) acc[v][t] = Isa::loadf(out[t] + v * Isa::kLanes);
  }
  for (int sub = 0; sub < subs; ++sub) {
    typename Isa::I dots[kVectors][T];
    Isa::template dots<kSteps, kFlush, kTwoPlanes, T>(block, sub, x.quants, dots);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const F scale = Isa::broadcastf(x.scales[t] + sub / kSubsPerScale);
      const F sum = Isa::broadcastf(x.sums[t] + sub);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const F product = Isa::mul(Isa::to_float(dots[v][t]), Isa::loadf(block.scale[sub] + v * Isa::kLanes));
        acc[v][t] = Isa::fma(product, scale, acc[v][t]);
        acc[v][t] = Isa::fma(Isa::loadf(block.offset[sub] + v * Isa::kLanes), sum, acc[v][t]);
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) Isa::storef(out[t] + v * Isa::kLanes, acc[v][t]);
  }
}

struct PlainBlock {
  alignas(64) float values[kPlainCols][kRows];
};

template <typename Isa, int T>
[[gnu::noinline]] void multiply_plain(const PlainBlock& block, int64_t cols, const float* const* x,
                                      float (*out)[kRows]) {
  using F = typename Isa::F;
  constexpr int kVectors = static_cast<int>(kRows) / Isa::kLanes;
  F acc[kVectors][T];
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) acc[v][t] = Isa::loadf(out[t] + v * Isa::kLanes);
  }
  for (int64_t k = 0; k < cols; ++k) {
    F w[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) w[v] = Isa::loadf(block.values[k] + v * Isa::kLanes);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const F b = Isa::broadcastf(x[t] + k);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) acc[v][t] = Isa::fma(w[v], b, acc[v][t]);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) Isa::storef(out[t] + v * Isa::kLanes, acc[v][t]);
  }
}

template <DType kType>
inline void unpack_plain(const uint8_t* chunk, int64_t cols, PlainBlock& block) {
  for (int64_t k = 0; k < cols; ++k) {
    for (int half = 0; half < 16; half += 8) {
      __m256 value;
      if constexpr (kType == DType::kF32) {
        value = _mm256_load_ps(reinterpret_cast<const float*>(chunk + 64 * k + 4 * half));
      } else if constexpr (kType == DType::kF16) {
        value = halves(chunk + 32 * k + 2 * half);
      } else {
        const __m128i bits = _mm_load_si128(reinterpret_cast<const __m128i*>(chunk + 32 * k + 2 * half));
        value = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
      }
      _mm256_store_ps(block.values[k] + half, value);
    }
  }
}

/// The next block's weights come from memory while this one's are multiplied. Past the end of a weight it does nothing.
inline void prefetch(const uint8_t* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(from + i), _MM_HINT_T0);
}

/// Calls f.template operator()<T>(first token) on tiles of Max tokens and then on the rest in one tile.
template <int Max, typename F>
[[gnu::always_inline]] inline void for_tiles(int64_t tokens, F f) {
  int64_t t = 0;
  for (; t + Max <= tokens; t += Max) f.template operator()<Max>(t);
  const int64_t rest = tokens - t;
  if constexpr (Max > 1) {
    if (rest == 1) return f.template operator()<1>(t);
  }
  if constexpr (Max > 2) {
    if (rest == 2) return f.template operator()<2>(t);
  }
  if constexpr (Max > 3) {
    if (rest == 3) return f.template operator()<3>(t);
  }
  if constexpr (Max > 4) {
    if (rest == 4) return f.template operator()<4>(t);
    if (rest == 5) return f.template operator()<5>(t);
    if constexpr (Max > 6) {
      if (rest == 6) return f.template operator()<6>(t);
      if (rest == 7) return f.template operator()<7>(t);
    }
  }
}

/// Sums of the panel that begins at `row`, with the bias, into the output.
inline void write_panel(const LinearArgs& args, int64_t row, int64_t first_token, int64_t tokens,
                        const Accumulators& sums) {
  const int64_t count = args.weight->rows - row < kRows ? args.weight->rows - row : kRows;
  for (int64_t t = 0; t < tokens; ++t) {
    float* out = args.out + (first_token + t) * args.out_stride + row;
    for (int64_t r = 0; r < count; ++r) {
      float value = sums.sum[t][r];
      if (args.bias != nullptr) value += args.bias[row + r];
      out[r] = args.accumulate ? out[r] + value : value;
    }
  }
}

template <typename Isa, DType kType>
Status launch_quants(const LinearProblem&, const LinearArgs& args, Launch&) {
  constexpr QuantClass kClass = quant_class(kType);
  constexpr bool kSplit = kClass.bytes && Isa::kSplitBytes;
  const Format* format = find_format(kType);
  const Weight& w = *args.weight;
  const auto* base = reinterpret_cast<const uint8_t*>(w.data) + args.expert * w.expert_bytes;
  QuantBlock block;
  Accumulators sums;
  for (int64_t first = 0; first < args.tokens; first += kTokenBlock) {
    const int64_t tokens = args.tokens - first < kTokenBlock ? args.tokens - first : kTokenBlock;
    QuantRow rows[kTokenBlock];
    for (int64_t t = 0; t < tokens; ++t) rows[t] = quant_row(*args.x, args.x_row(first + t));
    for (int64_t row = args.row_begin; row < args.row_end; row += kRows) {
      const uint8_t* chunk = base + row * w.row_bytes;
      std::memset(sums.sum, 0, static_cast<size_t>(tokens) * sizeof sums.sum[0]);
      for (int64_t col = 0; col < w.cols; col += kBlockCols) {
        const int64_t cols = w.cols - col < kBlockCols ? w.cols - col : kBlockCols;
        const int64_t bytes = cols / format->chunk_cols * format->chunk_bytes;
        prefetch(chunk + bytes, bytes);
        unpack_block<kType, kSplit>(chunk, cols, block);
        chunk += bytes;
        for_tiles < Isa::template tile<kClass.flush<kClass.steps || kSplit>()>(
                        tokens,
                        [&]<int T>(int64_t t) {
                          QuantTokens<T> x;
                          for (int i = 0; i < T; ++i) {
                            const QuantRow& r = rows[t + i];
                            x.quants[i] = r.quants + col;
                            x.scales[i] = r.scales + col / 32;
                            x.sums[i] = kClass.steps == 8 ? r.sums32 + col / 32 : r.sums16 + col / 16;
                          }
                          multiply_quants<Isa, kClass.steps, kClass.flush, kSplit, T>(
                              block, static_cast<int>(cols / (4 * kClass.steps)), x, sums.sum + t);
                        });
      }
      write_panel(args, row, first, tokens, sums);
    }
  }
  return {};
}

template <typename Isa, DType kType>
Status launch_plain(const LinearProblem&, const LinearArgs& args, Launch&) {
  constexpr int64_t kColBytes = kType == DType::kF32 ? 64 : 32;
  const Weight& w = *args.weight;
  const auto* base = reinterpret_cast<const uint8_t*>(w.data) + args.expert * w.expert_bytes;
  PlainBlock block;
  Accumulators sums;
  for (int64_t first = 0; first < args.tokens; first += kTokenBlock) {
    const int64_t tokens = args.tokens - first < kTokenBlock ? args.tokens - first : kTokenBlock;
    const float* rows[kTokenBlock];
    for (int64_t t = 0; t < tokens; ++t) rows[t] = args.x->f32(args.x_row(first + t));
    for (int64_t row = args.row_begin; row < args.row_end; row += kRows) {
      const uint8_t* chunk = base + row * w.row_bytes;
      std::memset(sums.sum, 0, static_cast<size_t>(tokens) * sizeof sums.sum[0]);
      for (int64_t col = 0; col < w.cols; col += kPlainCols) {
        const int64_t cols = w.cols - col < kPlainCols ? w.cols - col : kPlainCols;
        prefetch(chunk + (col + cols) * kColBytes, cols * kColBytes);
        unpack_plain<kType>(chunk + col * kColBytes, cols, block);
        for_tiles<Isa::kPlainTile>(tokens, [&]<int T>(int64_t t) {
          const float* x[T];
          for (int i = 0; i < T; ++i) x[i] = rows[t + i] + col;
          multiply_plain<Isa, T>(block, cols, x, sums.sum + t);
        });
      }
      write_panel(args, row, first, tokens, sums);
    }
  }
  return {};
}

template <DType kType>
bool supports(const LinearProblem& problem) {
  return problem.dtype == kType && problem.layout == WeightLayout::kPanels;
}

template <typename Isa, DType kType>
constexpr LinearKernel kernel(std::string_view name, std::string_view arch, int priority) {
  constexpr bool kPlain = kType == DType::kF32 || kType == DType::kF16 || kType == DType::kBF16;
  LinearKernel k{.name = name, .arch = arch, .priority = priority, .supports = supports<kType>};
  if constexpr (kPlain) {
    k.launch = launch_plain<Isa, kType>;
    k.traits = {.activations = ActivationFormat::kF32, .row_grain = kRows};
  } else {
    k.launch = launch_quants<Isa, kType>;
    k.traits = {.activations = ActivationFormat::kQ8, .row_grain = kRows};
  }
  return k;
}

}  // namespace
}  // namespace crest::ops::panel
