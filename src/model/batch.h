#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ops/context.h"
#include "ops/kv_cache/kv_cache.h"

namespace crest::model {

/// The tokens of one forward: those of several sequences, packed one after the other. A prompt alone is a batch of one.
struct Batch {
  std::span<const int32_t> token_ids;  // [tokens]
  std::span<const int32_t> positions;  // [tokens], for RoPE
  std::span<const int32_t>
      cu_seqlens;  // [sequences + 1]: sequence s is rows cu_seqlens[s] .. cu_seqlens[s + 1] - 1, at least one
  std::span<const int32_t> kv_lens;     // [sequences]: tokens of the sequence, those of this batch included
  std::span<const int32_t> page_table;  // [sequences, page_table_stride]: token i of s is in its entry i / page_size
  int64_t page_table_stride = 0;
  std::span<const int32_t> state_slots;  // [sequences], all different; only read by models with recurrent layers
  std::span<const int32_t> logit_rows;   // rows that logits are wanted of

  int64_t tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t sequences() const { return static_cast<int64_t>(kv_lens.size()); }
};

/// What one layer remembers. Attention layers use k and v, gated DeltaNet layers conv and state.
struct LayerCache {
  ops::KvPool k, v;
  float* conv = nullptr;   // [slots, conv_kernel - 1, conv_dim]: inputs of the convolution, oldest first
  float* state = nullptr;  // [slots, value_heads, key_dim, value_dim]
};

struct Caches {
  int64_t page_size = 0;
  int64_t slots = 0;               // of conv and state
  std::vector<LayerCache> layers;  // the main layers, then those of the MTP head
};

/// Sees the input of every linear layer: importance matrices are collected this way.
class ActivationObserver {
 public:
  virtual ~ActivationObserver() = default;
  /// x [rows, cols] meets the matrix of `expert` (0 for plain weights) in the weight that the file calls `name`, a
  /// stack of `experts` matrices.
  virtual void linear_input(std::string_view name, int64_t experts, int64_t expert, const float* x, int64_t rows,
                            int64_t cols) = 0;
};

struct ForwardContext {
  ops::Context& ops;
  const Caches& caches;
  ActivationObserver* observer = nullptr;
};

/// Where a forward puts its results; null: not wanted. All fp32.
struct Outputs {
  float* logits = nullptr;        // [logit_rows, vocab]
  float* final_hidden = nullptr;  // [tokens, hidden] after the final norm: what the output matrix and the MTP head read
  float* hidden =
      nullptr;  // [layers + 1, tokens, hidden]: embedding, output of each layer; the last one after the final norm
  int64_t hidden_stride = 0;  // floats from one layer to the next; 0: tokens * hidden
};

}  // namespace crest::model
