#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/isa_avx512_vnni.h"

namespace crest::ops {
namespace {

using panel::DType, panel::kRows, panel::QuantBlock;

/// Tokens of a tile, and from how many on a tile that is partly empty beats the vector kernels.
constexpr int kTileTokens = 16;
constexpr int64_t kLeastTokens = 6;

/// Weights as signed bytes, so that the tile product needs no correction.
struct Signed : panel::Vector512 {
  static constexpr bool kByteDots = true;
  static constexpr bool kSigned = true;
};

struct TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

/// Groups whose products are in flight together: their tile instructions do not wait for each other.
constexpr int kAhead = 4;

// Tiles: 0 to 3 hold sums (token x row, int32), 4 and 5 the activations (token x column), 6 and 7 the weights (step x
// row).
void configure(int steps) {
  TileConfig config;
  for (int sums = 0; sums < kAhead; ++sums) config.row_bytes[sums] = 64, config.rows[sums] = kTileTokens;
  for (const int x : {4, 5}) config.row_bytes[x] = static_cast<uint16_t>(4 * steps), config.rows[x] = kTileTokens;
  for (const int w : {6, 7}) config.row_bytes[w] = 64, config.rows[w] = static_cast<uint8_t>(steps);
  _tile_loadconfig(&config);
}

/// Integers of kAhead groups from `group` on, those that exist. NOTE: tile numbers are part of the instruction.
template <int kSteps>
[[gnu::always_inline]] inline void tile_dots(const QuantBlock& block, int group, int groups, const int8_t* x,
                                             int64_t stride, int32_t (*out)[kTileTokens][kRows]) {
#define CREST_TILE(sums, a, b)                                    \
  if (group + sums < groups) {                                    \
    _tile_zero(sums);                                             \
    _tile_loadd(a, x + 4 * kSteps * (group + sums), stride);      \
    _tile_loadd(b, block.quants[0][kSteps * (group + sums)], 64); \
    _tile_dpbssd(sums, a, b);                                     \
    _tile_stored(sums, out[sums], 64);                            \
  }
  CREST_TILE(0, 4, 6)
  CREST_TILE(1, 5, 7)
  CREST_TILE(2, 4, 6)
  CREST_TILE(3, 5, 7)
#undef CREST_TILE
}

/// 16 tokens and one panel over the groups of a block. NOTE: a tile leaves its register only through memory, and a load
/// right behind that store waits for it; so the tile unit works kAhead groups ahead of the vector unit.
template <int kSteps, bool kOffsets>
[[gnu::noinline]] void multiply_tile(const QuantBlock& block, int groups, const int8_t* quants, int64_t stride,
                                     const QuantTile* const* x, float (*out)[kRows]) {
  alignas(64) int32_t dots[2][kAhead][kTileTokens][kRows];
  __m512 sums[kTileTokens];
#pragma GCC unroll 16
  for (int t = 0; t < kTileTokens; ++t) sums[t] = _mm512_load_ps(out[t]);
  tile_dots<kSteps>(block, 0, groups, quants, stride, dots[0]);
  for (int first = 0; first < groups; first += kAhead) {
    const int half = first / kAhead % 2;
    tile_dots<kSteps>(block, first + kAhead, groups, quants, stride, dots[1 - half]);
    for (int i = 0; i < kAhead && first + i < groups; ++i) {
      const int group = first + i;
      const __m512 scale = _mm512_load_ps(block.scale[group]);
#pragma GCC unroll 16
      for (int t = 0; t < kTileTokens; ++t) {
        const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_load_si512(dots[half][i][t])), scale);
        sums[t] = _mm512_fmadd_ps(product, _mm512_set1_ps(x[t]->scales[group * kSteps / 8]), sums[t]);
        if constexpr (kOffsets) {
          const float* activations = kSteps == 8 ? x[t]->sums32 : x[t]->sums16;
          sums[t] = _mm512_fmadd_ps(_mm512_load_ps(block.offset[group]), _mm512_set1_ps(activations[group]), sums[t]);
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int t = 0; t < kTileTokens; ++t) _mm512_store_ps(out[t], sums[t]);
}

/// Tokens [first, first + tokens) of a 256-column block with `panels` unpacked panels.
template <DType kType>
void multiply_tiles(const LinearArgs& args, int64_t first, int64_t tokens, int64_t block_index, int groups,
                    const QuantBlock* blocks, int panels, panel::Accumulators* sums) {
  using Type = panel::Traits<Signed, kType>;
  alignas(64) int8_t gathered[kTileTokens][QuantTile::kCols];
  for (int64_t t = 0; t < tokens; t += kTileTokens) {
    const int count = static_cast<int>(tokens - t < kTileTokens ? tokens - t : kTileTokens);
    const QuantTile* x[kTileTokens];
    for (int i = 0; i < kTileTokens; ++i) x[i] = args.x->tile(args.x_row(first + t + (i < count ? i : 0)), block_index);
    const int8_t* quants = x[0]->quants;
    int64_t stride = sizeof(QuantTile);
    if (count < kTileTokens || args.x_rows != nullptr) {
      for (int i = 0; i < kTileTokens; ++i) std::memcpy(gathered[i], x[i]->quants, sizeof gathered[i]);
      quants = gathered[0];
      stride = sizeof gathered[0];
    }
    for (int p = 0; p < panels; ++p)
      multiply_tile<Type::kSteps, Type::kOffsets>(blocks[p], groups, quants, stride, x, sums[p].sum + t);
  }
}

template <DType kType>
Status launch_tiles(const LinearProblem& problem, const LinearArgs& args, Launch& launch) {
  using Type = panel::Traits<Signed, kType>;
  constexpr int kPanels = 2;
  if (args.tokens < kLeastTokens) return panel::launch_quants<Avx512Vnni, kType>(problem, args, launch);
  const Weight& w = *args.weight;
  const auto* base = reinterpret_cast<const uint8_t*>(w.data) + args.expert * w.expert_bytes;
  QuantBlock blocks[kPanels];
  panel::Accumulators sums[kPanels];
  configure(Type::kSteps);
  for (int64_t first = 0; first < args.tokens; first += panel::kTokenBlock) {
    const int64_t left = args.tokens - first, tokens = left < panel::kTokenBlock ? left : panel::kTokenBlock;
    for (int64_t row = args.row_begin; row < args.row_end; row += kPanels * kRows) {
      const int panels = row + kRows < args.row_end ? kPanels : 1;
      for (int p = 0; p < panels; ++p) std::memset(sums[p].sum, 0, sizeof sums[p].sum);
      for (int64_t col = 0; col < w.cols; col += QuantTile::kCols) {
        const int64_t cols = w.cols - col < QuantTile::kCols ? w.cols - col : QuantTile::kCols;
        const int subs = static_cast<int>(cols / 32);
        const int64_t at = col / 32 * Type::kChunk.bytes / Type::kChunk.subs,
                      bytes = subs * Type::kChunk.bytes / Type::kChunk.subs;
        for (int p = 0; p < panels; ++p) {
          const uint8_t* chunk = base + (row + p * kRows) * w.row_bytes + at;
          panel::prefetch(chunk + bytes, bytes);
          panel::unpack<Signed, kType>(chunk, subs, blocks[p]);
        }
        multiply_tiles<kType>(args, first, tokens, col / QuantTile::kCols, subs * 8 / Type::kSteps, blocks, panels,
                              sums);
      }
      for (int p = 0; p < panels; ++p) panel::write_panel(args, row + p * kRows, first, tokens, sums[p].sum);
    }
  }
  _tile_release();
  return {};
}

template <DType kType>
constexpr LinearKernel kernel(std::string_view name, std::string_view arch, int priority) {
  if constexpr (panel::is_plain(kType))
    return panel::kernel<Avx512Vnni, kType>(name, arch, priority);
  else
    return panel::describe<kType>(name, arch, priority, launch_tiles<kType>);
}

}  // namespace

#define CREST_LINEAR_KERNEL kernel
#define CREST_LINEAR_ARCH "amx_int8"
#define CREST_LINEAR_PRIORITY 50
constinit const LinearTable kLinearAmx =
#include "ops/gemm/cpu_linear_table.h"
    ;

}  // namespace crest::ops
