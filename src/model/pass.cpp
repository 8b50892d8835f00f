#include "model/pass.h"

#include <algorithm>

#include "ops/activation/activation.h"
#include "ops/gemm/linear.h"
#include "ops/norm/norm.h"

namespace crest::model {

Status begin_pass(Pass& pass) {
  const Batch& batch = pass.batch;
  pass.tokens = batch.tokens();
  pass.sequences = batch.sequences();
  CREST_CHECK(batch.positions.size() == batch.token_ids.size() && batch.cu_seqlens.size() == batch.kv_lens.size() + 1 &&
                  batch.cu_seqlens.back() == pass.tokens,
              "{} tokens, {} positions, {} sequences", pass.tokens, batch.positions.size(), pass.sequences);
  CREST_TRY(pass.slot_mapping, pass.context.ops.workspace.allocate<int64_t>(pass.tokens));
  CREST_TRY(pass.has_state, pass.context.ops.workspace.allocate<uint8_t>(pass.sequences));
  const int64_t page_size = pass.context.caches.page_size;
  for (int64_t s = 0; s < pass.sequences; ++s) {
    const int64_t begin = batch.cu_seqlens[s];
    const int64_t q_len = batch.cu_seqlens[s + 1] - begin;
    const int64_t past = batch.kv_lens[s] - q_len;
    CREST_CHECK(q_len > 0 && past >= 0, "sequence {}: {} tokens of {}", s, q_len, batch.kv_lens[s]);
    pass.max_q_len = std::max(pass.max_q_len, q_len);
    pass.max_kv_len = std::max<int64_t>(pass.max_kv_len, batch.kv_lens[s]);
    pass.has_state[s] = past > 0;
    for (int64_t i = 0; i < q_len; ++i) {
      const int64_t at = past + i;
      const int64_t page = batch.page_table[s * batch.page_table_stride + at / page_size];
      pass.slot_mapping[begin + i] = page * page_size + at % page_size;
    }
  }
  return {};
}

Status apply(Pass& pass, const float* x, std::initializer_list<LinearOutput> outputs) {
  std::vector<ops::LinearTarget> targets;
  for (const auto& [linear, out, accumulate] : outputs) {
    if (pass.context.observer != nullptr) {
      pass.context.observer->linear_input(linear.name, 1, 0, x, pass.tokens, linear.weight.cols);
    }
    targets.push_back({.weight = &linear.weight,
                       .out = out,
                       .bias = linear.bias.empty() ? nullptr : linear.bias.data(),
                       .accumulate = accumulate});
  }
  return ops::linear({.x = x, .tokens = pass.tokens, .in_features = targets.front().weight->cols}, targets, pass.ops());
}

Status norm(Pass& pass, const float* x, const std::vector<float>& weight, float* out) {
  return ops::rms_norm({.tokens = pass.tokens, .dim = static_cast<int64_t>(weight.size()), .eps = pass.config.norm_eps},
                       {.x = {x}, .weight = weight.data(), .gate = {}, .out = {out}}, pass.ops());
}

Status add(Pass& pass, const float* x, float* sum) {
  return ops::add({.count = pass.tokens * pass.config.hidden}, {.a = sum, .b = x, .out = sum}, pass.ops());
}

}  // namespace crest::model
