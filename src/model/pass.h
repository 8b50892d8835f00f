#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "core/result.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/weights.h"
#include "ops/rope/rope.h"

namespace crest::model {

/// cos and sin of every token for one rope configuration; dims 0: none.
struct RopeTable {
  int64_t dims = 0;
  ops::RopeStyle style = ops::RopeStyle::kNeox;
  const float* cosines = nullptr;
  const float* sines = nullptr;
};

/// One forward under way: the batch and what all layers share. Lives in the workspace scope of the forward.
struct Pass {
  const ModelConfig& config;
  const Batch& batch;
  ForwardContext& context;
  int64_t tokens = 0;
  int64_t sequences = 0;
  int64_t max_q_len = 0;
  int64_t max_kv_len = 0;
  RopeTable rope{};
  RopeTable local_rope{};
  int64_t* slot_mapping = nullptr;  // [tokens]: where keys and values go
  uint8_t* has_state = nullptr;     // [sequences]: tokens came before this batch

  ops::Context& ops() { return context.ops; }
  /// fp32 scratch until the current workspace scope ends.
  Result<float*> floats(int64_t count) { return context.ops.workspace.allocate<float>(count); }
};

/// Fills slot_mapping, has_state and the lengths from the batch.
Status begin_pass(Pass& pass);

struct LinearOutput {
  const Linear& linear;
  float* out;               // [tokens, out_features]
  bool accumulate = false;  // add to what is there
};

/// Several weights that read the same x [tokens, in_features].
Status apply(Pass& pass, const float* x, std::initializer_list<LinearOutput> outputs);

/// RMSNorm of x [tokens, hidden] into out (may be x).
Status norm(Pass& pass, const float* x, const std::vector<float>& weight, float* out);
Status add(Pass& pass, const float* x, float* sum);

}  // namespace crest::model
