#include <algorithm>
#include <array>

#include "core/log.h"
#include "format/escape.h"
#include "format/hf_plan.h"

namespace crest::format {
namespace {

constexpr int64_t kMaxMtpLayers = 16;

// Names with these pieces belong to parts that Crest leaves alone on purpose.
constexpr std::string_view kSkipped[] = {
    "visual.", "vision_tower.", "vision_model.", "multi_modal_projector.", "rotary_emb.inv_freq", "audio_tower."};

}  // namespace

Status PlanBuilder::find_prefixes() {
  for (const char* prefix : {"model.language_model.", "language_model.model.", "language_model.", "model.", ""}) {
    if (weights_.find(std::string(prefix) + "embed_tokens.weight") != nullptr) {
      prefix_ = prefix;
      break;
    }
  }
  if (weights_.find(prefix_ + "embed_tokens.weight") == nullptr)
    return make_error(ErrorCode::kNotFound, "tensor model.embed_tokens.weight is missing in the safetensors files");
  for (const std::string& prefix : {std::string("mtp."), std::string("model.mtp."), prefix_ + "mtp."}) {
    if (weights_.find(prefix + "fc.weight") != nullptr) {
      mtp_prefix_ = prefix;
      break;
    }
  }
  for (const std::string& name : {std::string("lm_head"), std::string("language_model.lm_head"), prefix_ + "lm_head"}) {
    if (weights_.find(name + ".weight") != nullptr) {
      lm_head_ = name;
      break;
    }
  }
  return {};
}

// Checkpoints converted for MLX have the convolution turned and the norms already shifted; only the convolution tells.
static bool is_mlx_converted(const SafetensorsSet& weights, const std::string& prefix) {
  for (const SafetensorsTensor* tensor : weights.tensors()) {
    if (tensor->name.starts_with(prefix) && tensor->name.ends_with(".linear_attn.conv1d.weight"))
      return tensor->shape.size() == 3 && tensor->shape[1] > 1 && tensor->shape[2] == 1;
  }
  return false;
}

Status PlanBuilder::build() {
  CREST_RETURN_IF_ERROR(find_prefixes());
  shifted_norms_ = config_.family_info().shifted_norms && !is_mlx_converted(weights_, prefix_);
  CREST_RETURN_IF_ERROR(add_ends());
  for (int64_t i = 0; i < config_.layers; ++i) CREST_RETURN_IF_ERROR(add_layer(i));
  const int64_t mtp = count_mtp();
  if (mtp > 0) CREST_RETURN_IF_ERROR(add_mtp(mtp));
  finish_metadata(mtp);
  warn_unused();
  return {};
}

Status PlanBuilder::add_ends() {
  CREST_TRY(const SafetensorsTensor* embedding, need(prefix_ + "embed_tokens.weight"));
  vocab_ = config_.vocab;
  if (vocab_ == 0 && embedding->shape.size() == 2) vocab_ = embedding->shape[0];
  CREST_RETURN_IF_ERROR(add_plain("token_embd.weight", *embedding, {config_.hidden, vocab_}, Elementwise::kNone));
  CREST_RETURN_IF_ERROR(add_norm("output_norm.weight", prefix_ + "norm.weight", config_.hidden, shifted_norms_));
  if (config_.tied) {
    if (!lm_head_.empty()) take(lm_head_ + ".weight");
  } else if (lm_head_.empty()) {
    return make_error(ErrorCode::kNotFound, "tensor lm_head.weight is missing, and tie_word_embeddings is false");
  } else {
    CREST_RETURN_IF_ERROR(add_linear("output", lm_head_, vocab_, config_.hidden));
  }
  if (config_.rope_scaling.kind == RopeScaling::Kind::kLlama3) {
    const std::string key = fmt::format("{}.rope.freq_base", config_.family_info().gguf_name);
    CREST_TRY(const double theta, plan_.metadata.number(key));
    PlannedTensor tensor;
    tensor.entry.name = "rope_freqs.weight";
    tensor.entry.shape = {config_.rotary_dim / 2};
    tensor.constant = llama3_rope_factors(config_.rope_scaling, theta, config_.rotary_dim);
    push(std::move(tensor));
  }
  return {};
}

// GGUF's llama turns neighbouring channels; Hugging Face's turns channel i with i + head_dim/2.
BlockOrder PlanBuilder::llama_order(int64_t heads) const {
  if (!is(Family::kLlama)) return {};
  BlockOrder order;
  const int64_t half = config_.head_dim / 2;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t j = 0; j < half; ++j) {
      for (int64_t part = 0; part < 2; ++part)
        order.order.push_back(static_cast<int32_t>(head * config_.head_dim + part * half + j));
    }
  }
  return order;
}

// Grouped to tiled value heads, behind `blocks_before` blocks that stay.
BlockOrder PlanBuilder::value_order(int64_t block, int64_t blocks_before) const {
  const int64_t ratio = config_.value_heads / config_.key_heads;
  if (!as_converted_ || ratio == 1) return {};
  BlockOrder order{block, {}};
  for (int64_t i = 0; i < blocks_before; ++i) order.order.push_back(static_cast<int32_t>(i));
  for (int64_t v = 0; v < ratio; ++v) {
    for (int64_t k = 0; k < config_.key_heads; ++k)
      order.order.push_back(static_cast<int32_t>(blocks_before + k * ratio + v));
  }
  return order;
}

Status PlanBuilder::add_layer(int64_t layer) {
  const std::string hf = fmt::format("{}layers.{}.", prefix_, layer);
  const std::string gguf = fmt::format("blk.{}.", layer);
  CREST_RETURN_IF_ERROR(
      add_norm(gguf + "attn_norm.weight", hf + "input_layernorm.weight", config_.hidden, shifted_norms_));
  if (!config_.linear_layer.empty() && config_.linear_layer[static_cast<size_t>(layer)]) {
    CREST_RETURN_IF_ERROR(add_delta_net(gguf, hf + "linear_attn."));
  } else {
    CREST_RETURN_IF_ERROR(add_attention(gguf, hf + "self_attn."));
  }
  return add_mlp(gguf, hf);
}

Status PlanBuilder::add_attention(const std::string& gguf, const std::string& attn) {
  const int64_t head_dim = config_.head_dim;
  const bool gated = is(Family::kQwen35) || is(Family::kQwen35Moe);
  const int64_t q_rows = config_.heads * head_dim * (gated ? 2 : 1);
  const int64_t kv_rows = config_.kv_heads * head_dim;
  CREST_RETURN_IF_ERROR(
      add_linear(gguf + "attn_q", attn + "q_proj", q_rows, config_.hidden, {llama_order(config_.heads), {}}));
  CREST_RETURN_IF_ERROR(
      add_linear(gguf + "attn_k", attn + "k_proj", kv_rows, config_.hidden, {llama_order(config_.kv_heads), {}}));
  CREST_RETURN_IF_ERROR(add_linear(gguf + "attn_v", attn + "v_proj", kv_rows, config_.hidden));
  CREST_RETURN_IF_ERROR(add_linear(gguf + "attn_output", attn + "o_proj", config_.hidden, config_.heads * head_dim));
  if (is(Family::kLlama) || is(Family::kQwen2)) return {};
  CREST_RETURN_IF_ERROR(add_norm(gguf + "attn_q_norm.weight", attn + "q_norm.weight", head_dim, shifted_norms_));
  return add_norm(gguf + "attn_k_norm.weight", attn + "k_norm.weight", head_dim, shifted_norms_);
}

Status PlanBuilder::add_delta_net(const std::string& gguf, const std::string& attn) {
  const int64_t heads = config_.value_heads;
  const int64_t head_dim = config_.value_head_dim;
  const int64_t value_dim = heads * head_dim;
  const int64_t conv_dim = 2 * config_.key_heads * config_.key_head_dim + value_dim;
  const BlockOrder values = value_order(head_dim);
  const BlockOrder mixed = value_order(head_dim, 2 * config_.key_heads);
  const BlockOrder single = value_order(1);
  CREST_RETURN_IF_ERROR(add_linear(gguf + "attn_qkv", attn + "in_proj_qkv", conv_dim, config_.hidden, {mixed, {}}));
  CREST_RETURN_IF_ERROR(add_linear(gguf + "attn_gate", attn + "in_proj_z", value_dim, config_.hidden, {values, {}}));
  CREST_TRY(const SafetensorsTensor* conv, need(attn + "conv1d.weight"));
  // [conv_dim, 1, kernel] and MLX's [conv_dim, kernel, 1] hold the same bytes.
  CREST_RETURN_IF_ERROR(
      add_plain(gguf + "ssm_conv1d.weight", *conv, {config_.conv_kernel, conv_dim}, Elementwise::kNone, {mixed, {}}));
  CREST_RETURN_IF_ERROR(add_vector(gguf + "ssm_dt.bias", attn + "dt_bias", heads, Elementwise::kNone, single));
  CREST_RETURN_IF_ERROR(add_vector(gguf + "ssm_a", attn + "A_log", heads, Elementwise::kNegExp, single));
  CREST_RETURN_IF_ERROR(add_linear(gguf + "ssm_beta", attn + "in_proj_b", heads, config_.hidden, {single, {}}));
  CREST_RETURN_IF_ERROR(add_linear(gguf + "ssm_alpha", attn + "in_proj_a", heads, config_.hidden, {single, {}}));
  CREST_RETURN_IF_ERROR(add_norm(gguf + "ssm_norm.weight", attn + "norm.weight", head_dim, false));
  return add_linear(gguf + "ssm_out", attn + "out_proj", config_.hidden, value_dim, {{}, values});
}

Status PlanBuilder::add_mlp(const std::string& gguf, const std::string& layer) {
  const int64_t hidden = config_.hidden;
  const bool hybrid = is(Family::kQwen35) || is(Family::kQwen35Moe);
  if (is(Family::kGemma3)) {
    CREST_RETURN_IF_ERROR(add_norm(gguf + "post_attention_norm.weight", layer + "post_attention_layernorm.weight",
                                   hidden, shifted_norms_));
    CREST_RETURN_IF_ERROR(
        add_norm(gguf + "ffn_norm.weight", layer + "pre_feedforward_layernorm.weight", hidden, shifted_norms_));
    CREST_RETURN_IF_ERROR(
        add_norm(gguf + "post_ffw_norm.weight", layer + "post_feedforward_layernorm.weight", hidden, shifted_norms_));
  } else {
    CREST_RETURN_IF_ERROR(add_norm(gguf + (hybrid ? "post_attention_norm.weight" : "ffn_norm.weight"),
                                   layer + "post_attention_layernorm.weight", hidden, shifted_norms_));
  }
  if (config_.experts > 0) return add_experts(gguf, layer + "mlp.");
  CREST_RETURN_IF_ERROR(add_linear(gguf + "ffn_gate", layer + "mlp.gate_proj", config_.ffn, hidden));
  CREST_RETURN_IF_ERROR(add_linear(gguf + "ffn_up", layer + "mlp.up_proj", config_.ffn, hidden));
  return add_linear(gguf + "ffn_down", layer + "mlp.down_proj", hidden, config_.ffn);
}

Status PlanBuilder::add_experts(const std::string& gguf, const std::string& mlp) {
  const int64_t hidden = config_.hidden;
  CREST_RETURN_IF_ERROR(add_linear(gguf + "ffn_gate_inp", mlp + "gate", config_.experts, hidden));
  CREST_RETURN_IF_ERROR(add_expert_tensors(gguf, mlp + "experts.", mlp + "switch_mlp."));
  if (!is(Family::kQwen35Moe)) return {};
  CREST_TRY(const SafetensorsTensor* gate, need(mlp + "shared_expert_gate.weight"));
  CREST_RETURN_IF_ERROR(add_plain(gguf + "ffn_gate_inp_shexp.weight", *gate, {hidden}, Elementwise::kNone));
  const std::string shared = mlp + "shared_expert.";
  CREST_RETURN_IF_ERROR(add_linear(gguf + "ffn_gate_shexp", shared + "gate_proj", config_.shared_ffn, hidden));
  CREST_RETURN_IF_ERROR(add_linear(gguf + "ffn_up_shexp", shared + "up_proj", config_.shared_ffn, hidden));
  return add_linear(gguf + "ffn_down_shexp", shared + "down_proj", hidden, config_.shared_ffn);
}

// Four layouts: packed int4 for each expert, fused gate_up, one matrix for each expert, stacked (MLX).
Status PlanBuilder::add_expert_tensors(const std::string& gguf, const std::string& experts,
                                       const std::string& switched) {
  const int64_t hidden = config_.hidden, inner = config_.expert_ffn, count = config_.experts;
  if (weights_.find(experts + "0.gate_proj.qweight") != nullptr) {
    CREST_RETURN_IF_ERROR(
        add_paro_experts(gguf + "ffn_gate_exps.weight", experts, "gate_proj", "gate_up_weight", inner, hidden));
    CREST_RETURN_IF_ERROR(
        add_paro_experts(gguf + "ffn_up_exps.weight", experts, "up_proj", "gate_up_weight", inner, hidden));
    return add_paro_experts(gguf + "ffn_down_exps.weight", experts, "down_proj", "down_weight", hidden, inner);
  }
  if (weights_.find(experts + "gate_up_proj") != nullptr) {
    CREST_TRY(const SafetensorsTensor* fused, need(experts + "gate_up_proj"));
    CREST_TRY(const SafetensorsTensor* down, need(experts + "down_proj"));
    if (fused->shape != std::vector<int64_t>{count, 2 * inner, hidden})
      return make_error(ErrorCode::kInvalidFile, "tensor {}: shape is {}, expected [{}, {}, {}] by the configuration",
                        fused->name, fused->shape_text(), count, 2 * inner, hidden);
    if (as_converted_) {
      CREST_RETURN_IF_ERROR(add_half(gguf + "ffn_gate_exps.weight", *fused, 0, inner, hidden));
      CREST_RETURN_IF_ERROR(add_half(gguf + "ffn_up_exps.weight", *fused, inner, inner, hidden));
    } else {
      CREST_RETURN_IF_ERROR(
          add_plain(gguf + "ffn_gate_up_exps.weight", *fused, {hidden, 2 * inner, count}, Elementwise::kNone));
    }
    return add_plain(gguf + "ffn_down_exps.weight", *down, {inner, hidden, count}, Elementwise::kNone);
  }
  for (const auto& [name, projection] :
       {std::pair{"ffn_gate_exps", "gate_proj"}, {"ffn_up_exps", "up_proj"}, {"ffn_down_exps", "down_proj"}}) {
    const bool down = std::string_view(projection) == "down_proj";
    const int64_t rows = down ? hidden : inner, columns = down ? inner : hidden;
    if (weights_.find(switched + projection + ".weight") != nullptr) {
      CREST_TRY(const SafetensorsTensor* stacked, need(switched + projection + ".weight"));
      CREST_RETURN_IF_ERROR(
          add_plain(fmt::format("{}{}.weight", gguf, name), *stacked, {columns, rows, count}, Elementwise::kNone));
      continue;
    }
    std::vector<const SafetensorsTensor*> sources;
    for (int64_t e = 0; e < count; ++e) {
      CREST_TRY(const SafetensorsTensor* source, need(fmt::format("{}{}.{}.weight", experts, e, projection)));
      sources.push_back(source);
    }
    CREST_RETURN_IF_ERROR(add_stacked(fmt::format("{}{}.weight", gguf, name), std::move(sources), rows, columns));
  }
  return {};
}

// The configuration may announce a head that the checkpoint does not carry: what counts is what is there.
int64_t PlanBuilder::count_mtp() const {
  if (mtp_prefix_.empty()) return 0;
  int64_t count = 0;
  while (count < kMaxMtpLayers &&
         weights_.find(fmt::format("{}layers.{}.input_layernorm.weight", mtp_prefix_, count)) != nullptr)
    ++count;
  return count;
}

Status PlanBuilder::add_mtp(int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const std::string hf = fmt::format("{}layers.{}.", mtp_prefix_, i);
    const std::string gguf = fmt::format("blk.{}.", config_.layers + i);
    const int64_t hidden = config_.hidden;
    CREST_RETURN_IF_ERROR(add_norm(gguf + "attn_norm.weight", hf + "input_layernorm.weight", hidden, shifted_norms_));
    CREST_RETURN_IF_ERROR(add_attention(gguf, hf + "self_attn."));
    CREST_RETURN_IF_ERROR(add_mlp(gguf, hf));
    CREST_RETURN_IF_ERROR(add_linear(gguf + "nextn.eh_proj", mtp_prefix_ + "fc", hidden, 2 * hidden));
    for (const auto& [name, source] : {std::pair{"nextn.enorm.weight", "pre_fc_norm_embedding.weight"},
                                       {"nextn.hnorm.weight", "pre_fc_norm_hidden.weight"},
                                       {"nextn.shared_head_norm.weight", "norm.weight"}}) {
      CREST_RETURN_IF_ERROR(add_norm(gguf + name, mtp_prefix_ + source, hidden, shifted_norms_));
    }
  }
  return {};
}

void PlanBuilder::finish_metadata(int64_t mtp_layers) {
  const std::string prefix = std::string(config_.family_info().gguf_name) + ".";
  Metadata& m = plan_.metadata;
  m.set(prefix + "block_count", Value::u32(static_cast<uint32_t>(config_.layers + mtp_layers)));
  if (mtp_layers > 0) m.set(prefix + "nextn_predict_layers", Value::u32(static_cast<uint32_t>(mtp_layers)));
  m.set(prefix + "vocab_size", Value::u32(static_cast<uint32_t>(vocab_)));
  if (config_.value_heads > 0 && !as_converted_) m.set("crest.v_head_order", Value::string("grouped"));
  // One entry for each block, those of the MTP head included.
  if (const Value* recurrent = m.find(prefix + "attention.recurrent_layers"); recurrent != nullptr) {
    std::vector<bool> layers = config_.linear_layer;
    layers.resize(static_cast<size_t>(config_.layers + mtp_layers), false);
    m.set(prefix + "attention.recurrent_layers", Value::bools(layers));
  }
}

void PlanBuilder::warn_unused() const {
  size_t count = 0;
  std::string example;
  for (const SafetensorsTensor* tensor : weights_.tensors()) {
    const bool skipped = std::ranges::any_of(
        kSkipped, [&](std::string_view part) { return tensor->name.find(part) != std::string::npos; });
    if (skipped || used_.contains(tensor)) continue;
    if (count++ == 0) example = escaped(tensor->name);
  }
  if (count > 0) log_warning("{}: {} tensors are not used, for example {}", config_.source, count, example);
}

}  // namespace crest::format
