#include "format/hf_builder.h"

namespace crest::format {
namespace {

void add_ends(HfBuilder& b, const std::string& prefix, int64_t vocab, int64_t hidden, bool head) {
  b.add(prefix + "embed_tokens.weight", {vocab, hidden});
  b.add(prefix + "norm.weight", {hidden});
  if (head) b.add("lm_head.weight", {vocab, hidden});
}

}  // namespace

HfBuilder make_llama() {
  HfBuilder b;
  b.config = {{"model_type", "llama"},
              {"architectures", {"LlamaForCausalLM"}},
              {"vocab_size", 40},
              {"hidden_size", 24},
              {"intermediate_size", 20},
              {"num_hidden_layers", 2},
              {"num_attention_heads", 6},
              {"num_key_value_heads", 2},
              {"head_dim", 8},
              {"max_position_embeddings", 512},
              {"rms_norm_eps", 1e-5},
              {"rope_theta", 500000.0},
              {"rope_scaling",
               {{"rope_type", "llama3"},
                {"factor", 8.0},
                {"low_freq_factor", 1.0},
                {"high_freq_factor", 4.0},
                {"original_max_position_embeddings", 128}}},
              {"tie_word_embeddings", false}};
  add_ends(b, "model.", 40, 24, true);
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    b.add(layer + "input_layernorm.weight", {24});
    b.add(layer + "post_attention_layernorm.weight", {24});
    b.add_attention(layer + "self_attn.", 24, 48, 16, 48, 0);
    b.add_mlp(layer + "mlp.", 24, 20);
  }
  return b;
}

HfBuilder make_qwen2() {
  HfBuilder b;
  b.config = {{"model_type", "qwen2"},
              {"architectures", {"Qwen2ForCausalLM"}},
              {"vocab_size", 40},
              {"hidden_size", 24},
              {"intermediate_size", 20},
              {"num_hidden_layers", 1},
              {"num_attention_heads", 3},
              {"num_key_value_heads", 1},
              {"max_position_embeddings", 512},
              {"use_sliding_window", false},
              {"sliding_window", nullptr},
              {"tie_word_embeddings", true}};
  add_ends(b, "model.", 40, 24, false);
  const std::string layer = "model.layers.0.";
  b.add(layer + "input_layernorm.weight", {24});
  b.add(layer + "post_attention_layernorm.weight", {24});
  b.add_attention(layer + "self_attn.", 24, 24, 8, 24, 0);
  b.add(layer + "self_attn.q_proj.bias", {24});
  b.add(layer + "self_attn.k_proj.bias", {8});
  b.add(layer + "self_attn.v_proj.bias", {8});
  b.add_mlp(layer + "mlp.", 24, 20);
  return b;
}

HfBuilder make_qwen3_moe(bool fused) {
  HfBuilder b;
  b.config = {{"model_type", "qwen3_moe"},
              {"architectures", {"Qwen3MoeForCausalLM"}},
              {"vocab_size", 40},
              {"hidden_size", 24},
              {"intermediate_size", 999},
              {"moe_intermediate_size", 10},
              {"num_experts", 5},
              {"num_experts_per_tok", 2},
              {"norm_topk_prob", true},
              {"decoder_sparse_step", 1},
              {"mlp_only_layers", nlohmann::json::array()},
              {"num_hidden_layers", 1},
              {"num_attention_heads", 3},
              {"num_key_value_heads", 1},
              {"head_dim", 16},
              {"max_position_embeddings", 512},
              {"tie_word_embeddings", false}};
  add_ends(b, "model.", 40, 24, true);
  const std::string layer = "model.layers.0.";
  b.add(layer + "input_layernorm.weight", {24});
  b.add(layer + "post_attention_layernorm.weight", {24});
  b.add_attention(layer + "self_attn.", 24, 48, 16, 48, 16);
  b.add(layer + "mlp.gate.weight", {5, 24});
  if (fused) {
    b.add(layer + "mlp.experts.gate_up_proj", {5, 20, 24});
    b.add(layer + "mlp.experts.down_proj", {5, 24, 10});
  } else {
    for (int e = 0; e < 5; ++e) b.add_mlp(fmt::format("{}mlp.experts.{}.", layer, e), 24, 10);
  }
  return b;
}

HfBuilder make_qwen35(bool moe, const std::string& prefix, bool mtp) {
  HfBuilder b;
  nlohmann::json text = {
      {"model_type", moe ? "qwen3_5_moe_text" : "qwen3_5_text"},
      {"vocab_size", 40},
      {"hidden_size", 24},
      {"num_hidden_layers", 4},
      {"num_attention_heads", 2},
      {"num_key_value_heads", 1},
      {"head_dim", 16},
      {"max_position_embeddings", 4096},
      {"linear_conv_kernel_dim", 4},
      {"linear_key_head_dim", 8},
      {"linear_value_head_dim", 8},
      {"linear_num_key_heads", 2},
      {"linear_num_value_heads", 6},
      {"rope_parameters",
       {{"rope_type", "default"}, {"rope_theta", 1e7}, {"partial_rotary_factor", 0.25}, {"mrope_section", {1, 1, 0}}}},
      {"mtp_num_hidden_layers", 1}};
  if (moe) {
    text["num_experts"] = 5;
    text["num_experts_per_tok"] = 2;
    text["moe_intermediate_size"] = 10;
    text["shared_expert_intermediate_size"] = 12;
  } else {
    text["intermediate_size"] = 20;
  }
  b.config = {{"model_type", moe ? "qwen3_5_moe" : "qwen3_5"},
              {"architectures", {moe ? "Qwen3_5MoeForConditionalGeneration" : "Qwen3_5ForConditionalGeneration"}},
              {"text_config", text},
              {"vision_config", {{"depth", 2}}},
              {"tie_word_embeddings", false}};
  const auto ffn = [&](const std::string& layer) {
    if (!moe) return b.add_mlp(layer + "mlp.", 24, 20);
    b.add(layer + "mlp.gate.weight", {5, 24});
    b.add(layer + "mlp.experts.gate_up_proj", {5, 20, 24});
    b.add(layer + "mlp.experts.down_proj", {5, 24, 10});
    b.add_mlp(layer + "mlp.shared_expert.", 24, 12);
    b.add(layer + "mlp.shared_expert_gate.weight", {1, 24});
  };
  add_ends(b, prefix, 40, 24, true);
  b.add("model.visual.patch_embed.proj.weight", {3, 2});
  for (int i = 0; i < 4; ++i) {
    const std::string layer = fmt::format("{}layers.{}.", prefix, i);
    b.add(layer + "input_layernorm.weight", {24});
    b.add(layer + "post_attention_layernorm.weight", {24});
    if (i == 3) {
      b.add_attention(layer + "self_attn.", 24, 64, 16, 32, 16);
    } else {
      const std::string attn = layer + "linear_attn.";
      b.add(attn + "in_proj_qkv.weight", {80, 24});
      b.add(attn + "in_proj_z.weight", {48, 24});
      b.add(attn + "in_proj_a.weight", {6, 24});
      b.add(attn + "in_proj_b.weight", {6, 24});
      b.add(attn + "conv1d.weight", {80, 1, 4});
      b.add(attn + "A_log", {6});
      b.add(attn + "dt_bias", {6});
      b.add(attn + "norm.weight", {8});
      b.add(attn + "out_proj.weight", {24, 48});
    }
    ffn(layer);
  }
  if (mtp) {
    b.add("mtp.fc.weight", {24, 48});
    for (const char* name : {"mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight", "mtp.norm.weight",
                             "mtp.layers.0.input_layernorm.weight", "mtp.layers.0.post_attention_layernorm.weight"})
      b.add(name, {24});
    b.add_attention("mtp.layers.0.self_attn.", 24, 64, 16, 32, 16);
    ffn("mtp.layers.0.");
  }
  return b;
}

HfBuilder make_gemma3(bool multimodal) {
  HfBuilder b;
  nlohmann::json text = {{"model_type", "gemma3_text"},
                         {"vocab_size", 40},
                         {"hidden_size", 24},
                         {"intermediate_size", 20},
                         {"num_hidden_layers", 2},
                         {"num_attention_heads", 3},
                         {"num_key_value_heads", 1},
                         {"head_dim", 16},
                         {"query_pre_attn_scalar", 16},
                         {"sliding_window", 32},
                         {"sliding_window_pattern", 2},
                         {"rope_theta", 1000000.0},
                         {"rope_local_base_freq", 10000.0},
                         {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}}};
  if (multimodal) {
    b.config = {{"model_type", "gemma3"},
                {"architectures", {"Gemma3ForConditionalGeneration"}},
                {"text_config", text},
                {"vision_config", {{"depth", 2}}}};
  } else {
    b.config = text;
    b.config["architectures"] = {"Gemma3ForCausalLM"};
  }
  const std::string prefix = multimodal ? "language_model.model." : "model.";
  add_ends(b, prefix, 40, 24, false);
  if (multimodal) b.add("vision_tower.vision_model.post_layernorm.weight", {3});
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("{}layers.{}.", prefix, i);
    for (const char* norm :
         {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"})
      b.add(fmt::format("{}{}.weight", layer, norm), {24});
    b.add_attention(layer + "self_attn.", 24, 48, 16, 48, 16);
    b.add_mlp(layer + "mlp.", 24, 20);
  }
  return b;
}

}  // namespace crest::format
