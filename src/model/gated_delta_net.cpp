#include "model/gated_delta_net.h"

#include "ops/linear_attention/causal_conv1d.h"
#include "ops/linear_attention/gated_delta.h"
#include "ops/norm/norm.h"

namespace crest::model {

Result<GatedDeltaNet> GatedDeltaNet::load(WeightLoader& loader, const ModelConfig& config, size_t block) {
  const DeltaNetConfig& net = config.delta_net;
  const auto name = [&](std::string_view part) { return fmt::format("blk.{}.{}", block, part); };
  const int64_t value_width = int64_t{net.value_heads} * net.value_dim;
  GatedDeltaNet result;
  CREST_TRY(result.qkv, loader.linear(name("attn_qkv"), config.hidden, net.conv_dim()));
  CREST_TRY(result.gate, loader.linear(name("attn_gate"), config.hidden, value_width));
  CREST_TRY(result.beta, loader.linear(name("ssm_beta"), config.hidden, net.value_heads));
  CREST_TRY(result.alpha, loader.linear(name("ssm_alpha"), config.hidden, net.value_heads));
  CREST_TRY(result.conv, loader.values(name("ssm_conv1d.weight"), {net.conv_kernel, net.conv_dim()}));
  CREST_TRY(result.a_scale, loader.values(name("ssm_a"), {net.value_heads}));
  // Some files leave ".bias" out.
  const std::string dt = name("ssm_dt");
  CREST_TRY(result.dt_bias, loader.values(loader.has(dt) ? dt : dt + ".bias", {net.value_heads}));
  CREST_TRY(result.norm, loader.values(name("ssm_norm.weight"), {net.value_dim}));
  CREST_TRY(result.output, loader.linear(name("ssm_out"), value_width, config.hidden));
  return result;
}

Status GatedDeltaNet::run(Pass& pass, const LayerCache& cache, const float* x, float* out) const {
  const DeltaNetConfig& net = pass.config.delta_net;
  ops::Workspace::Scope scope(pass.ops().workspace);
  const int64_t tokens = pass.tokens;
  const int64_t conv_dim = net.conv_dim();
  const int64_t key_width = int64_t{net.key_heads} * net.key_dim;
  const int64_t value_width = int64_t{net.value_heads} * net.value_dim;
  CREST_TRY(float* const mixed, pass.floats(tokens * conv_dim));
  CREST_TRY(float* const convolved, pass.floats(tokens * conv_dim));
  CREST_TRY(float* const z, pass.floats(tokens * value_width));
  CREST_TRY(float* const heads, pass.floats(tokens * value_width));
  CREST_TRY(float* const a, pass.floats(tokens * net.value_heads));
  CREST_TRY(float* const b, pass.floats(tokens * net.value_heads));
  CREST_TRY(float* const decay, pass.floats(tokens * net.value_heads));
  CREST_TRY(float* const rate, pass.floats(tokens * net.value_heads));
  CREST_RETURN_IF_ERROR(apply(pass, x, {{qkv, mixed}, {gate, z}, {beta, b}, {alpha, a}}));

  const int32_t* const cu_seqlens = pass.batch.cu_seqlens.data();
  const int32_t* const slots = pass.batch.state_slots.data();
  CREST_RETURN_IF_ERROR(ops::causal_conv1d({.tokens = tokens,
                                            .sequences = pass.sequences,
                                            .channels = conv_dim,
                                            .width = net.conv_kernel,
                                            .slots = pass.context.caches.slots},
                                           {.x = mixed,
                                            .weight = conv.data(),
                                            .cu_seqlens = cu_seqlens,
                                            .state_slots = slots,
                                            .has_state = pass.has_state,
                                            .state = cache.conv,
                                            .out = convolved},
                                           pass.ops()));
  CREST_RETURN_IF_ERROR(ops::delta_gates(
      {.tokens = tokens, .v_heads = net.value_heads},
      {.a = a, .b = b, .a_scale = a_scale.data(), .dt_bias = dt_bias.data(), .g = decay, .beta = rate}, pass.ops()));
  CREST_RETURN_IF_ERROR(ops::gated_delta({.tokens = tokens,
                                          .sequences = pass.sequences,
                                          .max_q_len = pass.max_q_len,
                                          .k_heads = net.key_heads,
                                          .v_heads = net.value_heads,
                                          .k_dim = net.key_dim,
                                          .v_dim = net.value_dim,
                                          .slots = pass.context.caches.slots,
                                          .order = net.tiled ? ops::HeadOrder::kTiled : ops::HeadOrder::kGrouped},
                                         {.q = {convolved, conv_dim, net.key_dim},
                                          .k = {convolved + key_width, conv_dim, net.key_dim},
                                          .v = {convolved + 2 * key_width, conv_dim, net.value_dim},
                                          .g = decay,
                                          .beta = rate,
                                          .cu_seqlens = cu_seqlens,
                                          .state_slots = slots,
                                          .has_state = pass.has_state,
                                          .state = cache.state,
                                          .out = {heads}},
                                         pass.ops()));
  CREST_RETURN_IF_ERROR(ops::rms_norm(
      {.tokens = tokens, .heads = net.value_heads, .dim = net.value_dim, .eps = pass.config.norm_eps, .gated = true},
      {.x = {heads}, .weight = norm.data(), .gate = {z}, .out = {heads}}, pass.ops()));
  return apply(pass, heads, {{output, out, true}});
}

}  // namespace crest::model
