#include <nlohmann/json.hpp>

#include "format/hf_plan.h"
#include "format/make_model.h"

namespace crest::format {
namespace {

using nlohmann::json;

bool hybrid(const ModelSize& size) { return size.value_heads > 0; }

// The size as the config.json that it was taken from, so that one reader makes the metadata of both.
json config_of(const ModelSize& size) {
  json config = {{"model_type", info(size.family).types.back()},
                 {"vocab_size", size.vocab},
                 {"hidden_size", size.hidden},
                 {"num_hidden_layers", size.layers},
                 {"num_attention_heads", size.heads},
                 {"num_key_value_heads", size.kv_heads},
                 {"head_dim", size.head_dim},
                 {"max_position_embeddings", size.context},
                 {"rms_norm_eps", size.epsilon},
                 {"rope_theta", size.theta},
                 {"tie_word_embeddings", size.tied}};
  config[size.experts > 0 ? "moe_intermediate_size" : "intermediate_size"] = size.ffn;
  if (size.experts > 0) {
    config["num_experts"] = size.experts;
    config["num_experts_per_tok"] = size.experts_used;
    config["norm_topk_prob"] = true;
  }
  if (size.shared_ffn > 0) config["shared_expert_intermediate_size"] = size.shared_ffn;
  if (hybrid(size)) {
    config["linear_conv_kernel_dim"] = 4;
    config["linear_key_head_dim"] = config["linear_value_head_dim"] = 128;
    config["linear_num_key_heads"] = 16;
    config["linear_num_value_heads"] = size.value_heads;
    config["partial_rotary_factor"] = 0.25;
  }
  if (size.sliding_window > 0) config["sliding_window"] = size.sliding_window;
  if (size.rope_factor > 0 && size.family == Family::kLlama)
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", size.rope_factor},
                              {"low_freq_factor", 1},
                              {"high_freq_factor", 4},
                              {"original_max_position_embeddings", 8192}};
  if (size.rope_factor > 0 && size.family == Family::kGemma3)
    config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", size.rope_factor}};
  return config;
}

// Names and shapes of the checkpoint that such a model has.
class Names {
 public:
  explicit Names(const HfConfig& config) : config_(config) {}

  std::vector<SafetensorsTensor> list(bool mtp) {
    add("model.embed_tokens.weight", {config_.vocab, config_.hidden});
    add("model.norm.weight", {config_.hidden});
    if (!config_.tied) add("lm_head.weight", {config_.vocab, config_.hidden});
    for (int64_t i = 0; i < config_.layers; ++i) {
      const bool linear = !config_.linear_layer.empty() && config_.linear_layer[static_cast<size_t>(i)];
      add_layer(fmt::format("model.layers.{}.", i), linear);
    }
    if (mtp) {
      add("mtp.fc.weight", {config_.hidden, 2 * config_.hidden});
      for (const char* name : {"pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"})
        add(fmt::format("mtp.{}.weight", name), {config_.hidden});
      add_layer("mtp.layers.0.", false);
    }
    return std::move(tensors_);
  }

 private:
  void add(const std::string& name, std::vector<int64_t> shape) {
    tensors_.push_back({name, "F32", tensor::DType::kF32, std::move(shape), 0, 0, 0});
  }

  void add_layer(const std::string& layer, bool linear) {
    const bool gemma = config_.family == Family::kGemma3;
    for (const char* name : {"input_layernorm", "post_attention_layernorm"})
      add(fmt::format("{}{}.weight", layer, name), {config_.hidden});
    if (gemma) {
      for (const char* name : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
        add(fmt::format("{}{}.weight", layer, name), {config_.hidden});
    }
    linear ? add_delta_net(layer + "linear_attn.") : add_attention(layer + "self_attn.");
    if (config_.experts == 0) return add_mlp(layer + "mlp.", config_.ffn);
    add(layer + "mlp.gate.weight", {config_.experts, config_.hidden});
    add(layer + "mlp.experts.gate_up_proj", {config_.experts, 2 * config_.expert_ffn, config_.hidden});
    add(layer + "mlp.experts.down_proj", {config_.experts, config_.hidden, config_.expert_ffn});
    if (config_.shared_ffn == 0) return;
    add(layer + "mlp.shared_expert_gate.weight", {1, config_.hidden});
    add_mlp(layer + "mlp.shared_expert.", config_.shared_ffn);
  }

  void add_attention(const std::string& attn) {
    const bool gated = !config_.linear_layer.empty();
    const bool biased = config_.family == Family::kQwen2;
    const int64_t q = config_.heads * config_.head_dim, kv = config_.kv_heads * config_.head_dim;
    add(attn + "q_proj.weight", {gated ? 2 * q : q, config_.hidden});
    add(attn + "k_proj.weight", {kv, config_.hidden});
    add(attn + "v_proj.weight", {kv, config_.hidden});
    add(attn + "o_proj.weight", {config_.hidden, q});
    if (biased) {
      add(attn + "q_proj.bias", {q});
      add(attn + "k_proj.bias", {kv});
      add(attn + "v_proj.bias", {kv});
    } else if (config_.family != Family::kLlama) {
      add(attn + "q_norm.weight", {config_.head_dim});
      add(attn + "k_norm.weight", {config_.head_dim});
    }
  }

  void add_delta_net(const std::string& attn) {
    const int64_t heads = config_.value_heads, values = heads * config_.value_head_dim;
    const int64_t mixed = 2 * config_.key_heads * config_.key_head_dim + values;
    add(attn + "in_proj_qkv.weight", {mixed, config_.hidden});
    add(attn + "in_proj_z.weight", {values, config_.hidden});
    add(attn + "in_proj_b.weight", {heads, config_.hidden});
    add(attn + "in_proj_a.weight", {heads, config_.hidden});
    add(attn + "conv1d.weight", {mixed, 1, config_.conv_kernel});
    add(attn + "A_log", {heads});
    add(attn + "dt_bias", {heads});
    add(attn + "norm.weight", {config_.value_head_dim});
    add(attn + "out_proj.weight", {config_.hidden, values});
  }

  void add_mlp(const std::string& mlp, int64_t inner) {
    add(mlp + "gate_proj.weight", {inner, config_.hidden});
    add(mlp + "up_proj.weight", {inner, config_.hidden});
    add(mlp + "down_proj.weight", {config_.hidden, inner});
  }

  const HfConfig& config_;
  std::vector<SafetensorsTensor> tensors_;
};

}  // namespace

Result<ModelSkeleton> make_skeleton(const ModelSize& size, bool mtp) {
  ModelSkeleton skeleton;
  CREST_TRY(skeleton.config, parse_hf_config(config_of(size).dump(), std::string(size.name)));
  if (mtp && !hybrid(size))
    return make_error(ErrorCode::kInvalidArgument, "{} has no head for multi-token prediction", size.name);
  CREST_TRY(const SafetensorsSet names, SafetensorsSet::names_only(Names(skeleton.config).list(mtp)));
  CREST_TRY(HfPlan plan, make_hf_plan(skeleton.config, names, true));
  skeleton.metadata = std::move(plan.metadata);
  for (const PlannedTensor& tensor : plan.tensors)
    skeleton.tensors.push_back({tensor.entry.name, tensor.entry.dtype, tensor.entry.shape});
  return skeleton;
}

}  // namespace crest::format
