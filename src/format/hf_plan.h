#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/result.h"
#include "format/hf_config.h"
#include "format/model_file.h"
#include "format/safetensors.h"

namespace crest::format {

/// A permutation of equal blocks: position i comes from order[i / block] * block + i % block. Empty order: identity.
struct BlockOrder {
  int64_t block = 1;
  std::vector<int32_t> order;
  bool identity() const { return order.empty(); }
  int64_t source(int64_t i) const { return identity() ? i : order[static_cast<size_t>(i / block)] * block + i % block; }
};

enum class Elementwise : uint8_t { kNone, kAddOne, kNegExp };

/// Parts of a ParoQuant linear. `legacy`: the early layout, with int16 words and scaled zeros.
struct PlannedParo {
  struct Matrix {
    const SafetensorsTensor* qweight = nullptr;
    const SafetensorsTensor* qzeros = nullptr;
    const SafetensorsTensor* scales = nullptr;
  };
  std::vector<Matrix> matrices;
  const SafetensorsTensor* theta = nullptr;
  const SafetensorsTensor* pairs = nullptr;
  const SafetensorsTensor* channel_scales = nullptr;
  bool legacy = false;
};

/// One GGUF tensor and how it comes about. Its values form rows of `columns` values: row e * rows_per_matrix + i is row
/// e * source_rows + first_row + rows.source(i) of the only source, or row first_row + rows.source(i) of sources[e].
struct PlannedTensor {
  TensorEntry entry;
  std::vector<const SafetensorsTensor*> sources;
  int64_t columns = 0;
  int64_t rows_per_matrix = 0;
  int64_t source_rows = 0;
  int64_t first_row = 0;
  BlockOrder rows;
  BlockOrder column_order;
  Elementwise elementwise = Elementwise::kNone;
  std::vector<float> constant;  // the values themselves, for tensors without a source
  std::optional<PlannedParo> paro;
};

/// What a Hugging Face folder becomes: metadata (without the tokenizer) and tensors in GGUF order.
struct HfPlan {
  Metadata metadata;
  std::vector<PlannedTensor> tensors;
};

/// Checks that every tensor of the architecture is there with the shape that the configuration demands. Tensors of the
/// checkpoint that nothing asks for are reported once, as a warning, unless they belong to a vision part.
Result<HfPlan> make_hf_plan(const HfConfig& config, const SafetensorsSet& weights, bool as_converted);

/// Adds tensors to a plan; used by make_hf_plan and the families' layer tables.
class PlanBuilder {
 public:
  PlanBuilder(const HfConfig& config, const SafetensorsSet& weights, bool as_converted, HfPlan& plan);

  struct Orders {
    BlockOrder rows;
    BlockOrder columns;
  };

  Status build();

 private:
  // hf_plan.cpp: one tensor at a time
  const SafetensorsTensor* take(const std::string& name);
  Result<const SafetensorsTensor*> need(const std::string& name);
  Status add_plain(const std::string& gguf, const SafetensorsTensor& source, Shape shape, Elementwise elementwise,
                   Orders orders = {});
  Status add_norm(const std::string& gguf, const std::string& name, int64_t size, bool shifted);
  Status add_vector(const std::string& gguf, const std::string& name, int64_t size, Elementwise elementwise,
                    BlockOrder order);
  Status add_linear(const std::string& gguf, const std::string& module, int64_t out, int64_t in, Orders orders = {});
  Status add_stacked(const std::string& gguf, std::vector<const SafetensorsTensor*> sources, int64_t rows,
                     int64_t columns);
  Status add_half(const std::string& gguf, const SafetensorsTensor& fused, int64_t first_row, int64_t rows,
                  int64_t columns);
  Result<bool> add_paro(const std::string& gguf, const std::string& module, int64_t out, int64_t in,
                        const Orders& orders);
  Status add_paro_experts(const std::string& gguf, const std::string& experts, const std::string& projection,
                          const std::string& rotation, int64_t out, int64_t in);
  void push(PlannedTensor tensor);

  // hf_layers.cpp: the architectures
  Status find_prefixes();
  Status add_ends();
  Status add_layer(int64_t layer);
  Status add_attention(const std::string& gguf, const std::string& layer);
  Status add_delta_net(const std::string& gguf, const std::string& layer);
  Status add_mlp(const std::string& gguf, const std::string& layer);
  Status add_experts(const std::string& gguf, const std::string& layer);
  Status add_expert_tensors(const std::string& gguf, const std::string& experts, const std::string& switched);
  Status add_mtp(int64_t count);
  int64_t count_mtp() const;
  void finish_metadata(int64_t mtp_layers);
  void warn_unused() const;
  BlockOrder llama_order(int64_t heads) const;
  BlockOrder value_order(int64_t block, int64_t blocks_before = 0) const;
  bool is(Family family) const { return config_.family == family; }

  const HfConfig& config_;
  const SafetensorsSet& weights_;
  bool as_converted_;
  HfPlan& plan_;
  std::unordered_set<const SafetensorsTensor*> used_;
  std::string prefix_;      // of the decoder: "model."
  std::string mtp_prefix_;  // "mtp."
  std::string lm_head_;     // name without ".weight"
  bool shifted_norms_ = false;
  int64_t vocab_ = 0;
};

}  // namespace crest::format
