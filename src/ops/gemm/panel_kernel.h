#pragma once

// The linear kernels over layout kPanels, one template for all instruction sets. A file that includes this defines
// what `Isa` is (see cpu_linear_avx2.cpp) and is compiled with that instruction set's flags.
//
// Quantised weights, one token:   straight from the chunks, each byte touched once
//                    more tokens: unpack up to 256 columns of a panel pair into QuantBlocks, then tiles of T tokens
//   steps of 4 columns: u8 weights x s8 activations -> integers          Isa::dots
//   per sub-block:      to float, times both scales, plus minimum * sum of the activations
// Plain weights, one token:   straight from several panels at once
//                more tokens: widen 128 columns to fp32, then an outer-product kernel on T tokens
// Sums of one output are formed in the same order whatever T is: results do not depend on how tokens are batched.

#include <cstdint>
#include <cstring>

#include "ops/gemm/linear.h"
#include "ops/gemm/panel_reader.h"
#include "ops/quant/activations.h"

namespace crest::ops::panel {
namespace {

/// Tokens whose sums are kept while a panel's columns are walked through: unpacking is shared by that many.
constexpr int64_t kTokenBlock = 128;
constexpr int64_t kPlainCols = 128;
/// Panels that one token's plain kernel walks through together: their chains of additions hide each other's latency.
constexpr int kPlainPanels = 4;
/// Bytes between what a one-token kernel multiplies and what it asks memory for: about a microsecond at 2 GB/s.
constexpr int64_t kPrefetchAhead = 2048;

/// Up to 256 columns of one panel. Types without minimums leave `offset` alone where the sums start from zeros32/16.
struct QuantBlock {
  alignas(64) uint8_t quants[2][64][kStepBytes];  // plane 1: the upper 4 bits, where 8-bit quants are split
  alignas(64) float scale[16][kRows];
  alignas(64) float offset[16][kRows];
};

struct Accumulators {
  alignas(64) float sum[kTokenBlock][kRows];
};

/// Vector v of a panel (256-bit sets: its halves) or of a pair of panels (512-bit sets: one each), as a byte distance.
template <typename Isa, typename Part>
constexpr int64_t vector_stride() {
  return Isa::kLanes == kRows ? static_cast<int64_t>(sizeof(Part)) : Isa::kBytes;
}
template <typename Isa, typename Part>
[[gnu::always_inline]] inline float* vector_of(float* first, int v) {
  return first + v * vector_stride<Isa, Part>() / 4;
}
template <typename Isa, typename Part>
[[gnu::always_inline]] inline const float* vector_of(const float* first, int v) {
  return first + v * vector_stride<Isa, Part>() / 4;
}

template <typename Isa, DType kType>
struct Traits : Reader<Isa, kType> {
  using Base = Reader<Isa, kType>;
  static constexpr int kSteps = Base::kClass.steps;
  static constexpr int kFlush = Base::kClass.flush;
  static constexpr bool kSplit = Base::kClass.bytes && !Isa::kByteDots;
  // Where bytes are multiplied whole, symmetric types are kept signed, or signed plus 128 with integer sums that start
  // from -128 * sum of the activations.
  static constexpr bool kZeros = Isa::kByteDots && !Base::kMinimums;
  static constexpr bool kOffsets = !kZeros;

  template <int s>
  [[gnu::always_inline]] static typename Isa::I quants(const uint8_t* chunk, int sub, int v) {
    const auto q = Base::template step<s>(chunk, sub, v);
    constexpr int kMove = kZeros ? (Isa::kSigned ? 0 : 128) - Base::kClass.zero : 0;
    if constexpr (kMove != 0) return Isa::add8(q, Isa::byte(kMove));
    return q;
  }
  [[gnu::always_inline]] static typename Isa::F offset(const uint8_t* chunk, int group, int v, typename Isa::F scale) {
    if constexpr (Base::kMinimums) return Base::minimum(chunk, group, v);
    return Isa::mul(scale, Isa::setf(static_cast<float>(-Base::kClass.zero)));
  }
};

template <typename Isa, int kPlane>
[[gnu::always_inline]] inline typename Isa::I plane_of(typename Isa::I bytes) {
  return Isa::band(Isa::template shift<(kPlane == 0 ? 0 : -4)>(bytes), Isa::byte(15));
}

/// Where Isa::dots finds the quants of a group: in an unpacked block, or in a chunk.
template <typename Isa, int kSteps>
struct BlockSource {
  const QuantBlock* block;
  int group;
  template <int i, int kPlane>
  [[gnu::always_inline]] typename Isa::I get(int v) const {
    return Isa::load(block->quants[kPlane][group * kSteps + i] + v * vector_stride<Isa, QuantBlock>());
  }
};
template <typename Isa, DType kType, int kGroup>
struct ChunkSource {
  const uint8_t* chunk;
  int sub;
  template <int i, int kPlane>
  [[gnu::always_inline]] typename Isa::I get(int v) const {
    using Type = Traits<Isa, kType>;
    const auto q = Type::template quants<kGroup * Type::kSteps + i>(chunk, sub, v);
    if constexpr (Type::kSplit) return plane_of<Isa, kPlane>(q);
    return q;
  }
};

/// `subs` sub-blocks of 32 columns, from the first chunk of a panel on, into a block.
template <typename Isa, DType kType>
[[gnu::noinline]] void unpack(const uint8_t* chunk, int subs, QuantBlock& block) {
  using Type = Traits<Isa, kType>;
  constexpr int kVectors = kStepBytes / Isa::kBytes, kGroups = 8 / Type::kSteps;
  for (int sub = 0; sub < subs; ++sub) {
    const uint8_t* at = chunk + sub / Type::kChunk.subs * Type::kChunk.bytes;
    const int inner = sub % Type::kChunk.subs;
    unroll<8>([&]<int s>() __attribute__((always_inline)) {
      for (int v = 0; v < kVectors; ++v) {
        const auto q = Type::template quants<s>(at, inner, v);
        uint8_t* low = block.quants[0][8 * sub + s] + v * Isa::kBytes;
        if constexpr (Type::kSplit) {
          Isa::store(low, plane_of<Isa, 0>(q));
          Isa::store(block.quants[1][8 * sub + s] + v * Isa::kBytes, plane_of<Isa, 1>(q));
        } else {
          Isa::store(low, q);
        }
      }
    });
    for (int group = 0; group < kGroups; ++group) {
      for (int v = 0; v < kVectors; ++v) {
        const auto scale = Type::scale(at, inner * kGroups + group, v);
        Isa::storef(block.scale[sub * kGroups + group] + v * Isa::kLanes, scale);
        if constexpr (Type::kOffsets) {
          Isa::storef(block.offset[sub * kGroups + group] + v * Isa::kLanes,
                      Type::offset(at, inner * kGroups + group, v, scale));
        }
      }
    }
  }
}

/// Sums of T tokens with kVectors vectors of rows over the groups of one block.
template <typename Isa, int kSteps, int kFlush, bool kSplit, bool kZeros, int kVectors, int T>
[[gnu::noinline]] void multiply_quants(const QuantBlock* block, int groups, const QuantTile* const* x,
                                       float (*out)[kRows]) {
  constexpr int kGroupsPerScale = 8 / kSteps;
  const int8_t* quants[T];
  typename Isa::F sums[kVectors][T];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    quants[t] = x[t]->quants;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[v][t] = Isa::loadf(vector_of<Isa, Accumulators>(out[t], v));
  }
  for (int group = 0; group < groups; ++group) {
    // The next tokens' tiles come from the second-level cache.
    for (int t = 0; t < T; ++t)
      _mm_prefetch(reinterpret_cast<const char*>(quants[t] + T * sizeof(QuantTile) + 64 * group), _MM_HINT_T0);
    typename Isa::I dots[kVectors][T];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const int32_t* zeros = kSteps == 8 ? x[t]->zeros32 : x[t]->zeros16;
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) dots[v][t] = kZeros ? Isa::broadcasti(zeros + group) : Isa::zeroi();
    }
    Isa::template dots<kSteps, kFlush, kSplit, kVectors, T>(BlockSource<Isa, kSteps>{block, group}, quants,
                                                            4 * kSteps * group, dots);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const auto scale = Isa::broadcastf(x[t]->scales + group / kGroupsPerScale);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const auto product =
            Isa::mul(Isa::to_float(dots[v][t]), Isa::loadf(vector_of<Isa, QuantBlock>(block->scale[group], v)));
        sums[v][t] = Isa::fma(product, scale, sums[v][t]);
        if constexpr (!kZeros) {
          const auto activations = Isa::broadcastf((kSteps == 8 ? x[t]->sums32 : x[t]->sums16) + group);
          sums[v][t] =
              Isa::fma(Isa::loadf(vector_of<Isa, QuantBlock>(block->offset[group], v)), activations, sums[v][t]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) Isa::storef(vector_of<Isa, Accumulators>(out[t], v), sums[v][t]);
  }
}

/// One token and one panel, straight from the chunks.
template <typename Isa, DType kType>
[[gnu::noinline]] void multiply_one(const uint8_t* chunk, int64_t subs, const QuantTile* x, int64_t tile_stride,
                                    float* out) {
  using Type = Traits<Isa, kType>;
  constexpr int kVectors = static_cast<int>(kRows) / Isa::kLanes, kGroups = 8 / Type::kSteps;
  typename Isa::F sums[kVectors];
  for (int v = 0; v < kVectors; ++v) sums[v] = Isa::setf(0);
  for (int64_t first = 0; first < subs; first += 8, x += tile_stride) {
    const int count = subs - first < 8 ? static_cast<int>(subs - first) : 8;
    for (int sub = 0; sub < count; ++sub) {
      const int inner = sub % Type::kChunk.subs;
      for (int64_t i = 0; i < Type::kChunk.bytes / Type::kChunk.subs; i += 64) {
        _mm_prefetch(
            reinterpret_cast<const char*>(chunk + Type::kChunk.bytes / Type::kChunk.subs * inner + i + kPrefetchAhead),
            _MM_HINT_T0);
      }
      unroll<kGroups>([&]<int kGroup>() __attribute__((always_inline)) {
        const int group = sub * kGroups + kGroup, inner_group = inner * kGroups + kGroup;
        typename Isa::I dots[kVectors][1];
        const int32_t* zeros = kGroups == 1 ? x->zeros32 : x->zeros16;
        for (int v = 0; v < kVectors; ++v) dots[v][0] = Type::kZeros ? Isa::broadcasti(zeros + group) : Isa::zeroi();
        const int8_t* quants = x->quants;
        Isa::template dots<Type::kSteps, Type::kFlush, Type::kSplit, kVectors, 1>(
            ChunkSource<Isa, kType, kGroup>{chunk, inner}, &quants, 4 * Type::kSteps * group, dots);
        const auto x_scale = Isa::broadcastf(x->scales + sub);
        for (int v = 0; v < kVectors; ++v) {
          const auto scale = Type::scale(chunk, inner_group, v);
          sums[v] = Isa::fma(Isa::mul(Isa::to_float(dots[v][0]), scale), x_scale, sums[v]);
          if constexpr (Type::kOffsets) {
            const auto activations = Isa::broadcastf((kGroups == 1 ? x->sums32 : x->sums16) + group);
            sums[v] = Isa::fma(Type::offset(chunk, inner_group, v, scale), activations, sums[v]);
          }
        }
      });
      if (inner == Type::kChunk.subs - 1) chunk += Type::kChunk.bytes;
    }
  }
  for (int v = 0; v < kVectors; ++v) Isa::storef(out + v * Isa::kLanes, sums[v]);
}

struct PlainBlock {
  alignas(64) float values[kPlainCols][kRows];
};

template <typename Isa, int kVectors, int T>
[[gnu::noinline]] void multiply_plain(const PlainBlock* block, int64_t cols, const float* const* x,
                                      float (*out)[kRows]) {
  using F = typename Isa::F;
  F sums[kVectors][T];
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[v][t] = Isa::loadf(vector_of<Isa, Accumulators>(out[t], v));
  }
  for (int64_t k = 0; k < cols; ++k) {
    F w[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) w[v] = Isa::loadf(vector_of<Isa, PlainBlock>(block->values[k], v));
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const F b = Isa::broadcastf(x[t] + k);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[v][t] = Isa::fma(w[v], b, sums[v][t]);
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) Isa::storef(vector_of<Isa, Accumulators>(out[t], v), sums[v][t]);
  }
}

template <DType kType>
constexpr int64_t plain_bytes() {
  return kRows * (kType == DType::kF32 ? 4 : 2);  // of one column of a panel
}

template <typename Isa, DType kType>
[[gnu::always_inline]] inline typename Isa::F plain_values(const uint8_t* column, int v) {
  const uint8_t* at = column + v * plain_bytes<kType>() / (kRows / Isa::kLanes);
  if constexpr (kType == DType::kF32) return Isa::loadf(reinterpret_cast<const float*>(at));
  if constexpr (kType == DType::kF16) return Isa::halves(at);
  if constexpr (kType == DType::kBF16) return Isa::bfloats(at);
}

template <typename Isa, DType kType>
inline void widen(const uint8_t* chunk, int64_t cols, PlainBlock& block) {
  constexpr int kVectors = static_cast<int>(kRows) / Isa::kLanes;
  for (int64_t k = 0; k < cols; ++k) {
    for (int v = 0; v < kVectors; ++v)
      Isa::storef(block.values[k] + v * Isa::kLanes, plain_values<Isa, kType>(chunk + k * plain_bytes<kType>(), v));
  }
}

/// One token and kPanels panels, panel_bytes from one to the next.
template <typename Isa, DType kType, int kPanels>
[[gnu::noinline]] void multiply_plain_one(const uint8_t* panels, int64_t panel_bytes, int64_t cols, const float* x,
                                          float (*out)[kRows]) {
  constexpr int kVectors = static_cast<int>(kRows) / Isa::kLanes;
  typename Isa::F sums[kPanels][kVectors];
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    for (int v = 0; v < kVectors; ++v) sums[p][v] = Isa::setf(0);
  }
  for (int64_t k = 0; k < cols; ++k) {
    const auto b = Isa::broadcastf(x + k);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* column = panels + p * panel_bytes + k * plain_bytes<kType>();
      _mm_prefetch(reinterpret_cast<const char*>(column + kPrefetchAhead / 2), _MM_HINT_T0);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[p][v] = Isa::fma(plain_values<Isa, kType>(column, v), b, sums[p][v]);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    for (int v = 0; v < kVectors; ++v) Isa::storef(out[p] + v * Isa::kLanes, sums[p][v]);
  }
}

/// The next block's weights come from memory while this one's are multiplied. Past the end of a weight it does nothing.
inline void prefetch(const uint8_t* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(from + i), _MM_HINT_T0);
}

/// Calls f.template operator()<T>(first token) on tiles of Max tokens, then of the powers of two below.
template <int Max, typename F>
[[gnu::always_inline]] inline void for_tiles(int64_t tokens, F f) {
  int64_t t = 0;
  for (; t + Max <= tokens; t += Max) f.template operator()<Max>(t);
  if constexpr (Max > 8) {
    if (t + 8 <= tokens) f.template operator()<8>(t), t += 8;
  }
  if constexpr (Max > 4) {
    if (t + 4 <= tokens) f.template operator()<4>(t), t += 4;
  }
  if constexpr (Max > 2) {
    if (t + 2 <= tokens) f.template operator()<2>(t), t += 2;
  }
  if (t < tokens) f.template operator()<1>(t);
}

/// Sums of the panel that begins at `row`, with the bias, into the output.
inline void write_panel(const LinearArgs& args, int64_t row, int64_t first_token, int64_t tokens,
                        const float (*sums)[kRows]) {
  const int64_t count = args.weight->rows - row < kRows ? args.weight->rows - row : kRows;
  for (int64_t t = 0; t < tokens; ++t) {
    float* out = args.out + (first_token + t) * args.out_stride + row;
    for (int64_t r = 0; r < count; ++r) {
      float value = sums[t][r];
      if (args.bias != nullptr) value += args.bias[row + r];
      out[r] = args.accumulate ? out[r] + value : value;
    }
  }
}

/// Panels whose sums fill two vectors.
template <typename Isa>
constexpr int kPair = 2 * Isa::kLanes / static_cast<int>(kRows);

/// Tokens [first, first + tokens) with kPanels panels from `row` on.
template <typename Isa, DType kType, int kPanels>
void quant_panels(const LinearArgs& args, const uint8_t* panels, int64_t panel_bytes, int64_t row, int64_t first,
                  int64_t tokens, QuantBlock* blocks, Accumulators* sums) {
  using Type = Traits<Isa, kType>;
  constexpr int kVectors = kPanels * static_cast<int>(kRows) / Isa::kLanes;
  for (int p = 0; p < kPanels; ++p) std::memset(sums[p].sum, 0, static_cast<size_t>(tokens) * sizeof sums[p].sum[0]);
  const QuantTile* tiles[kTokenBlock];
  for (int64_t col = 0; col < args.weight->cols; col += QuantTile::kCols) {
    const int64_t left = args.weight->cols - col, cols = left < QuantTile::kCols ? left : QuantTile::kCols;
    const int subs = static_cast<int>(cols / 32);
    const int64_t bytes = subs * Type::kChunk.bytes / Type::kChunk.subs,
                  at = col / 32 * Type::kChunk.bytes / Type::kChunk.subs;
    for (int p = 0; p < kPanels; ++p) {
      prefetch(panels + p * panel_bytes + at + bytes, bytes);
      unpack<Isa, kType>(panels + p * panel_bytes + at, subs, blocks[p]);
    }
    for (int64_t t = 0; t < tokens; ++t) tiles[t] = args.x->tile(args.x_row(first + t), col / QuantTile::kCols);
    for_tiles<Isa::template tile<Type::kSteps != Type::kFlush || Type::kSplit>()>(tokens, [&]<int T>(int64_t t) {
      multiply_quants<Isa, Type::kSteps, Type::kFlush, Type::kSplit, Type::kZeros, kVectors, T>(
          blocks, subs * 8 / Type::kSteps, tiles + t, sums->sum + t);
    });
  }
  for (int p = 0; p < kPanels; ++p) write_panel(args, row + p * kRows, first, tokens, sums[p].sum);
}

template <typename Isa, DType kType>
Status launch_quants(const LinearProblem&, const LinearArgs& args, Launch&) {
  const Weight& w = *args.weight;
  const auto* base = reinterpret_cast<const uint8_t*>(w.data) + args.expert * w.expert_bytes;
  const int64_t panel_bytes = kRows * w.row_bytes;
  if (args.tokens == 1) {
    alignas(64) float sums[1][kRows];
    const QuantTile* x = args.x->tile(args.x_row(0), 0);
    for (int64_t row = args.row_begin; row < args.row_end; row += kRows) {
      multiply_one<Isa, kType>(base + row * w.row_bytes, w.cols / 32, x, args.x->block_bytes / args.x->row_bytes,
                               sums[0]);
      write_panel(args, row, 0, 1, sums);
    }
    return {};
  }
  QuantBlock blocks[kPair<Isa>];
  Accumulators sums[kPair<Isa>];
  for (int64_t first = 0; first < args.tokens; first += kTokenBlock) {
    const int64_t tokens = args.tokens - first < kTokenBlock ? args.tokens - first : kTokenBlock;
    int64_t row = args.row_begin;
    for (; row + (kPair<Isa> - 1) * kRows < args.row_end; row += kPair<Isa> * kRows) {
      quant_panels<Isa, kType, kPair<Isa>>(args, base + row * w.row_bytes, panel_bytes, row, first, tokens, blocks,
                                           sums);
    }
    if (row < args.row_end) {
      quant_panels<Isa, kType, 1>(args, base + row * w.row_bytes, panel_bytes, row, first, tokens, blocks, sums);
    }
  }
  return {};
}

template <typename Isa, DType kType, int kPanels>
void plain_panels(const LinearArgs& args, const uint8_t* panels, int64_t panel_bytes, int64_t row, int64_t first,
                  int64_t tokens, PlainBlock* blocks, Accumulators* sums) {
  constexpr int kVectors = kPanels * static_cast<int>(kRows) / Isa::kLanes;
  for (int p = 0; p < kPanels; ++p) std::memset(sums[p].sum, 0, static_cast<size_t>(tokens) * sizeof sums[p].sum[0]);
  const float* rows[kTokenBlock];
  for (int64_t col = 0; col < args.weight->cols; col += kPlainCols) {
    const int64_t left = args.weight->cols - col, cols = left < kPlainCols ? left : kPlainCols;
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* chunk = panels + p * panel_bytes + col * plain_bytes<kType>();
      prefetch(chunk + cols * plain_bytes<kType>(), cols * plain_bytes<kType>());
      widen<Isa, kType>(chunk, cols, blocks[p]);
    }
    for (int64_t t = 0; t < tokens; ++t) rows[t] = args.x->f32(args.x_row(first + t)) + col;
    for_tiles<Isa::kPlainTile>(
        tokens, [&]<int T>(int64_t t) { multiply_plain<Isa, kVectors, T>(blocks, cols, rows + t, sums->sum + t); });
  }
  for (int p = 0; p < kPanels; ++p) write_panel(args, row + p * kRows, first, tokens, sums[p].sum);
}

template <typename Isa, DType kType, int kPanels>
void plain_one(const LinearArgs& args, const uint8_t* panels, int64_t panel_bytes, int64_t row) {
  alignas(64) float sums[kPanels][kRows];
  multiply_plain_one<Isa, kType, kPanels>(panels, panel_bytes, args.weight->cols, args.x->f32(args.x_row(0)), sums);
  for (int p = 0; p < kPanels; ++p) write_panel(args, row + p * kRows, 0, 1, sums + p);
}

template <typename Isa, DType kType>
Status launch_plain(const LinearProblem&, const LinearArgs& args, Launch&) {
  const Weight& w = *args.weight;
  const auto* base = reinterpret_cast<const uint8_t*>(w.data) + args.expert * w.expert_bytes;
  const int64_t panel_bytes = kRows * w.row_bytes;
  int64_t row = args.row_begin;
  if (args.tokens == 1) {
    for (; row + (kPlainPanels - 1) * kRows < args.row_end; row += kPlainPanels * kRows)
      plain_one<Isa, kType, kPlainPanels>(args, base + row * w.row_bytes, panel_bytes, row);
    for (; row < args.row_end; row += kRows) plain_one<Isa, kType, 1>(args, base + row * w.row_bytes, panel_bytes, row);
    return {};
  }
  PlainBlock blocks[kPair<Isa>];
  Accumulators sums[kPair<Isa>];
  for (int64_t first = 0; first < args.tokens; first += kTokenBlock) {
    const int64_t tokens = args.tokens - first < kTokenBlock ? args.tokens - first : kTokenBlock;
    for (row = args.row_begin; row + (kPair<Isa> - 1) * kRows < args.row_end; row += kPair<Isa> * kRows)
      plain_panels<Isa, kType, kPair<Isa>>(args, base + row * w.row_bytes, panel_bytes, row, first, tokens, blocks,
                                           sums);
    if (row < args.row_end)
      plain_panels<Isa, kType, 1>(args, base + row * w.row_bytes, panel_bytes, row, first, tokens, blocks, sums);
  }
  return {};
}

template <DType kType>
bool supports(const LinearProblem& problem) {
  return problem.dtype == kType && problem.layout == WeightLayout::kPanels;
}

constexpr bool is_plain(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

template <DType kType>
constexpr LinearKernel describe(std::string_view name, std::string_view arch, int priority,
                                decltype(LinearKernel::launch) launch) {
  LinearKernel k{.name = name, .arch = arch, .priority = priority, .supports = supports<kType>, .launch = launch};
  k.traits = {.activations = is_plain(kType) ? ActivationFormat::kF32 : ActivationFormat::kQ8, .row_grain = kRows};
  return k;
}

template <typename Isa, DType kType>
constexpr LinearKernel kernel(std::string_view name, std::string_view arch, int priority) {
  if constexpr (is_plain(kType))
    return describe<kType>(name, arch, priority, launch_plain<Isa, kType>);
  else
    return describe<kType>(name, arch, priority, launch_quants<Isa, kType>);
}

}  // namespace
}  // namespace crest::ops::panel
