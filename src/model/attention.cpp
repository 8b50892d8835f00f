#include "model/attention.h"

#include "ops/attention/attention.h"
#include "ops/attention/output_gate.h"
#include "ops/norm/norm.h"

namespace crest::model {
namespace {

Status prepare_heads(Pass& pass, ops::MutableHeadsView x, int64_t heads, const std::vector<float>& norm_weight,
                     const RopeTable& table) {
  const ModelConfig& config = pass.config;
  if (!norm_weight.empty()) {
    CREST_RETURN_IF_ERROR(ops::rms_norm(
        {.tokens = pass.tokens, .heads = heads, .dim = config.head_dim, .eps = config.norm_eps},
        {.x = {x.data, x.token_stride, x.head_stride}, .weight = norm_weight.data(), .gate = {}, .out = x},
        pass.ops()));
  }
  return ops::rope({.tokens = pass.tokens,
                    .heads = heads,
                    .head_dim = config.head_dim,
                    .rotary_dim = table.dims,
                    .style = table.style},
                   {.x = x, .cosines = table.cosines, .sines = table.sines}, pass.ops());
}

Status store(Pass& pass, const float* src, int64_t kv_heads, const ops::KvPool& pool) {
  return ops::kv_write(
      {.tokens = pass.tokens, .kv_heads = kv_heads, .head_dim = pass.config.head_dim, .dtype = pool.dtype},
      {.src = {src}, .pool = &pool, .slot_mapping = pass.slot_mapping}, pass.ops());
}

}  // namespace

Result<Attention> Attention::load(WeightLoader& loader, const ModelConfig& config, const LayerConfig& layer,
                                  size_t block, bool head_norms) {
  const auto name = [&](std::string_view part) { return fmt::format("blk.{}.attn_{}", block, part); };
  const int64_t q_dim = int64_t{config.heads} * config.head_dim;
  const int64_t kv_dim = int64_t{layer.kv_heads} * config.head_dim;
  Attention result;
  result.gated = config.has_attention_gate();
  CREST_TRY(result.q, loader.linear(name("q"), config.hidden, result.gated ? 2 * q_dim : q_dim));
  CREST_TRY(result.k, loader.linear(name("k"), config.hidden, kv_dim));
  CREST_TRY(result.v, loader.linear(name("v"), config.hidden, kv_dim));
  CREST_TRY(result.output, loader.linear(name("output"), q_dim, config.hidden));
  if (head_norms) {
    CREST_TRY(result.q_norm, loader.values(name("q_norm.weight"), {config.head_dim}));
    CREST_TRY(result.k_norm, loader.values(name("k_norm.weight"), {config.head_dim}));
  }
  return result;
}

Status Attention::run(Pass& pass, const LayerConfig& layer, const LayerCache& cache, const float* x, float* out,
                      bool accumulate) const {
  const ModelConfig& config = pass.config;
  ops::Workspace::Scope scope(pass.ops().workspace);
  const int64_t tokens = pass.tokens;
  const int64_t head_dim = config.head_dim;
  const int64_t q_stride = gated ? 2 * head_dim : head_dim;
  const int64_t kv_dim = layer.kv_heads * head_dim;
  CREST_TRY(float* const query, pass.floats(tokens * config.heads * q_stride));
  CREST_TRY(float* const key, pass.floats(tokens * kv_dim));
  CREST_TRY(float* const value, pass.floats(tokens * kv_dim));
  CREST_TRY(float* const attended, pass.floats(tokens * config.heads * head_dim));
  CREST_RETURN_IF_ERROR(apply(pass, x, {{q, query}, {k, key}, {v, value}}));

  const RopeTable& table = layer.local_rope ? pass.local_rope : pass.rope;
  const ops::MutableHeadsView queries{query, config.heads * q_stride, q_stride};
  CREST_RETURN_IF_ERROR(prepare_heads(pass, queries, config.heads, q_norm, table));
  CREST_RETURN_IF_ERROR(prepare_heads(pass, {key}, layer.kv_heads, k_norm, table));
  CREST_RETURN_IF_ERROR(store(pass, key, layer.kv_heads, cache.k));
  CREST_RETURN_IF_ERROR(store(pass, value, layer.kv_heads, cache.v));

  CREST_RETURN_IF_ERROR(ops::attention({.tokens = tokens,
                                        .sequences = pass.sequences,
                                        .q_heads = config.heads,
                                        .kv_heads = layer.kv_heads,
                                        .head_dim = head_dim,
                                        .value_dim = head_dim,
                                        .max_q_len = pass.max_q_len,
                                        .max_kv_len = pass.max_kv_len,
                                        .scale = config.attention_scale,
                                        .causal = true,
                                        .window = layer.window,
                                        .soft_cap = config.attention_soft_cap,
                                        .kv_dtype = cache.k.dtype,
                                        .paged = true},
                                       {.q = {query, config.heads * q_stride, q_stride},
                                        .cu_seqlens = pass.batch.cu_seqlens.data(),
                                        .kv_lens = pass.batch.kv_lens.data(),
                                        .k_pool = &cache.k,
                                        .v_pool = &cache.v,
                                        .page_table = pass.batch.page_table.data(),
                                        .page_table_stride = pass.batch.page_table_stride,
                                        .k = {},
                                        .v = {},
                                        .out = {attended}},
                                       pass.ops()));
  if (gated) {
    CREST_RETURN_IF_ERROR(ops::attention_output_gate(
        {.tokens = tokens, .heads = config.heads, .head_dim = head_dim},
        {.gate = {query + head_dim, config.heads * q_stride, q_stride}, .x = {attended}}, pass.ops()));
  }
  return apply(pass, attended, {{output, out, accumulate}});
}

}  // namespace crest::model
