#include "format/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "format/escape.h"
#include "format/json.h"

namespace crest::format {
namespace {

// Limits far above any model, far below what could overflow a product of three of them.
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxHeads = 1 << 14;
constexpr int64_t kMaxExperts = 1 << 14;
constexpr int64_t kMaxVocab = 1 << 24;

const std::array<FamilyInfo, 7>& families() {
  static const std::array<FamilyInfo, 7> table = {{
      {Family::kQwen35, "qwen35", {"qwen3_5", "qwen3_5_text"}, true, false},
      {Family::kQwen35Moe, "qwen35moe", {"qwen3_5_moe", "qwen3_5_moe_text"}, true, false},
      {Family::kQwen3, "qwen3", {"qwen3"}, false, false},
      {Family::kQwen3Moe, "qwen3moe", {"qwen3_moe"}, false, false},
      {Family::kQwen2, "qwen2", {"qwen2"}, false, false},
      {Family::kLlama, "llama", {"llama"}, false, false},
      {Family::kGemma3, "gemma3", {"gemma3", "gemma3_text"}, true, true},
  }};
  return table;
}

Result<Family> find_family(const ConfigView& root, const ConfigView& text) {
  CREST_TRY(const std::string type, text.string_or("model_type", ""));
  CREST_TRY(const std::string outer, root.string_or("model_type", ""));
  for (const std::string& name : {type, outer}) {
    for (const FamilyInfo& family : families()) {
      if (std::ranges::find(family.types, name) != family.types.end()) return family.family;
    }
  }
  return root.error(ErrorCode::kUnsupported, "model_type \"{}\" is not supported; supported are {}",
                    escaped(outer.empty() ? type : outer), supported_model_types());
}

// Only models that predict the next token: a classifier's or an embedder's head is not what callers expect.
Status check_class(const ConfigView& root) {
  if (!root.has("architectures")) return {};
  CREST_TRY(const auto names, root.strings("architectures"));
  for (const std::string& name : names) {
    if (name.ends_with("ForCausalLM") || name.ends_with("ForConditionalGeneration")) return {};
  }
  return root.error(ErrorCode::kUnsupported,
                    "architectures is [{}]; supported are language models (…ForCausalLM, …ForConditionalGeneration)",
                    escaped(fmt::format("{}", fmt::join(names, ", "))));
}

struct Reader {
  const ConfigView& text;
  HfConfig& config;

  void set(std::string_view suffix, int64_t value) {
    config.metadata.set(key(suffix), Value::u32(static_cast<uint32_t>(value)));
  }
  std::string key(std::string_view suffix) const {
    return fmt::format("{}.{}", config.family_info().gguf_name, suffix);
  }
  bool is(Family family) const { return config.family == family; }
  bool hybrid() const { return is(Family::kQwen35) || is(Family::kQwen35Moe); }
  bool moe() const { return is(Family::kQwen35Moe) || is(Family::kQwen3Moe); }

  // transformers' class defaults, for files that leave them out.
  Status sizes() {
    const bool gemma = is(Family::kGemma3);
    const auto size = [&](std::string_view field, int64_t gemma_default, int64_t max) {
      return gemma ? text.integer_or(field, gemma_default, 1, max) : text.integer(field, 1, max);
    };
    CREST_TRY(config.layers, size("num_hidden_layers", 26, kMaxLayers));
    CREST_TRY(config.hidden, size("hidden_size", 2304, kMaxWidth));
    CREST_TRY(config.heads, size("num_attention_heads", 8, kMaxHeads));
    CREST_TRY(config.kv_heads, text.integer_or("num_key_value_heads", gemma ? 4 : config.heads, 1, kMaxHeads));
    if (config.heads % config.kv_heads != 0)
      return text.error(ErrorCode::kInvalidFile, "num_attention_heads {} is no multiple of num_key_value_heads {}",
                        config.heads, config.kv_heads);
    int64_t head_dim = std::max<int64_t>(1, config.hidden / config.heads);
    if (hybrid() || gemma) head_dim = 256;
    if (is(Family::kQwen3)) head_dim = 128;
    CREST_TRY(config.head_dim, text.integer_or("head_dim", head_dim, 1, 4096));
    if (config.head_dim % 2 != 0)
      return text.error(ErrorCode::kInvalidFile, "head_dim is {}, expected an even number", config.head_dim);
    CREST_RETURN_IF_ERROR(limit_width("num_attention_heads", config.heads, "head_dim", config.head_dim));
    CREST_TRY(config.vocab, text.integer_or("vocab_size", 0, 1, kMaxVocab));
    CREST_TRY(config.context, size("max_position_embeddings", 131072, int64_t{1} << 31));
    if (!moe()) {
      CREST_TRY(config.ffn, size("intermediate_size", 9216, kMaxWidth));
    }
    set("context_length", config.context);
    set("embedding_length", config.hidden);
    if (config.ffn > 0) set("feed_forward_length", config.ffn);
    set("attention.head_count", config.heads);
    set("attention.head_count_kv", config.kv_heads);
    set("attention.key_length", config.head_dim);
    set("attention.value_length", config.head_dim);
    CREST_TRY(const double epsilon, text.number_or("rms_norm_eps", 1e-6, 0, 1));
    config.metadata.set(key("attention.layer_norm_rms_epsilon"), Value::f32(static_cast<float>(epsilon)));
    return {};
  }

  Status activation() {
    const std::string_view wanted = is(Family::kGemma3) ? "gelu_pytorch_tanh" : "silu";
    for (const char* field : {"hidden_act", "hidden_activation"}) {
      CREST_TRY(const std::string found, text.string_or(field, wanted));
      if (found != wanted)
        return text.error(ErrorCode::kUnsupported, "{} is \"{}\", supported is \"{}\"", field, escaped(found), wanted);
    }
    return {};
  }

  // Orders of channels are built from these before any tensor is looked at.
  Status limit_width(std::string_view heads_field, int64_t heads, std::string_view size_field, int64_t size) {
    if (heads * size <= kMaxWidth) return {};
    return text.error(ErrorCode::kInvalidFile, "{} {} times {} {} is above {}", heads_field, heads, size_field, size,
                      kMaxWidth);
  }

  // qwen2 and qwen3 name a window that is off unless use_sliding_window says otherwise.
  Status no_window() {
    CREST_TRY(const bool window, text.boolean_or("use_sliding_window", false));
    if (window)
      return text.error(ErrorCode::kUnsupported,
                        "use_sliding_window is true; sliding windows are supported for gemma3");
    return {};
  }

  Status experts() {
    const char* field = text.has("num_experts") ? "num_experts" : "num_local_experts";
    CREST_TRY(config.experts, text.integer(field, 1, kMaxExperts));
    CREST_TRY(config.experts_used, text.integer("num_experts_per_tok", 1, config.experts));
    CREST_TRY(config.expert_ffn, text.integer("moe_intermediate_size", 1, kMaxWidth));
    set("expert_count", config.experts);
    set("expert_used_count", config.experts_used);
    set("expert_feed_forward_length", config.expert_ffn);
    if (hybrid()) {
      CREST_TRY(config.shared_ffn, text.integer("shared_expert_intermediate_size", 1, kMaxWidth));
      set("expert_shared_feed_forward_length", config.shared_ffn);
      return {};
    }
    CREST_TRY(const int64_t step, text.integer_or("decoder_sparse_step", 1, 1, kMaxLayers));
    const nlohmann::json* dense = text.find("mlp_only_layers");
    if (step != 1 || (dense != nullptr && !dense->empty()))
      return text.error(
          ErrorCode::kUnsupported,
          "decoder_sparse_step and mlp_only_layers: only models with experts in every layer are supported");
    CREST_TRY(const bool normalised, text.boolean_or("norm_topk_prob", false));
    if (!normalised) return text.error(ErrorCode::kUnsupported, "norm_topk_prob is false; only true is supported");
    return {};
  }

  Status delta_net() {
    CREST_TRY(config.key_heads, text.integer("linear_num_key_heads", 1, kMaxHeads));
    CREST_TRY(config.value_heads, text.integer("linear_num_value_heads", 1, kMaxHeads));
    CREST_TRY(config.key_head_dim, text.integer("linear_key_head_dim", 1, 4096));
    CREST_TRY(config.value_head_dim, text.integer("linear_value_head_dim", 1, 4096));
    CREST_TRY(config.conv_kernel, text.integer("linear_conv_kernel_dim", 1, 64));
    if (config.value_heads % config.key_heads != 0)
      return text.error(ErrorCode::kInvalidFile, "linear_num_value_heads {} is no multiple of linear_num_key_heads {}",
                        config.value_heads, config.key_heads);
    CREST_RETURN_IF_ERROR(
        limit_width("linear_num_value_heads", config.value_heads, "linear_value_head_dim", config.value_head_dim));
    if (config.key_head_dim != config.value_head_dim)
      return text.error(ErrorCode::kUnsupported, "linear_key_head_dim {} and linear_value_head_dim {} must be equal",
                        config.key_head_dim, config.value_head_dim);
    CREST_TRY(const bool gate, text.boolean_or("attn_output_gate", true));
    if (!gate) return text.error(ErrorCode::kUnsupported, "attn_output_gate is false; only true is supported");
    // It names the activation of the mixer's gated norm; the attention's own gate is a sigmoid in every model.
    CREST_TRY(const std::string norm_gate, text.string_or("output_gate_type", "swish"));
    if (norm_gate != "swish" && norm_gate != "silu")
      return text.error(ErrorCode::kUnsupported, "output_gate_type is \"{}\"; supported are swish and silu",
                        escaped(norm_gate));
    set("ssm.conv_kernel", config.conv_kernel);
    set("ssm.state_size", config.key_head_dim);
    set("ssm.group_count", config.key_heads);
    set("ssm.time_step_rank", config.value_heads);
    set("ssm.inner_size", config.value_heads * config.value_head_dim);
    return layer_kinds();
  }

  Status layer_kinds() {
    CREST_TRY(const int64_t interval, text.integer_or("full_attention_interval", 4, 1, kMaxLayers));
    config.linear_layer.resize(static_cast<size_t>(config.layers));
    bool regular = true;
    if (text.has("layer_types")) {
      CREST_TRY(const auto types, layer_types("linear_attention"));
      for (size_t i = 0; i < types.size(); ++i) {
        config.linear_layer[i] = types[i];
        regular = regular && types[i] == ((static_cast<int64_t>(i) + 1) % interval != 0);
      }
    } else {
      for (int64_t i = 0; i < config.layers; ++i) config.linear_layer[static_cast<size_t>(i)] = (i + 1) % interval != 0;
    }
    set("full_attention_interval", interval);
    if (!regular) config.metadata.set(key("attention.recurrent_layers"), Value::bools(config.linear_layer));
    return {};
  }

  // For each layer, whether it is of the given kind; any other kind must be full_attention.
  Result<std::vector<bool>> layer_types(std::string_view kind) const {
    CREST_TRY(const auto names, text.strings("layer_types"));
    if (static_cast<int64_t>(names.size()) != config.layers)
      return text.error(ErrorCode::kInvalidFile, "layer_types has {} entries, expected {} (num_hidden_layers)",
                        names.size(), config.layers);
    std::vector<bool> result;
    for (const std::string& name : names) {
      if (name != kind && name != "full_attention")
        return text.error(ErrorCode::kUnsupported, "layer_types[{}] is \"{}\"; supported are {} and full_attention",
                          result.size(), escaped(name), kind);
      result.push_back(name == kind);
    }
    return result;
  }

  Status gemma() {
    CREST_TRY(const int64_t window, text.integer_or("sliding_window", 4096, 1, int64_t{1} << 31));
    set("attention.sliding_window", window);
    std::vector<bool> sliding;
    if (text.has("layer_types")) {
      CREST_TRY(sliding, layer_types("sliding_attention"));
    } else {
      const char* field = text.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
      CREST_TRY(const int64_t pattern, text.integer_or(field, 6, 1, kMaxLayers));
      for (int64_t i = 0; i < config.layers; ++i) sliding.push_back((i + 1) % pattern != 0);
    }
    config.metadata.set(key("attention.sliding_window_pattern"), Value::bools(sliding));
    CREST_TRY(const double scalar, text.number_or("query_pre_attn_scalar", 256, 1e-3, 1e9));
    if (scalar != static_cast<double>(config.head_dim))
      config.metadata.set(key("attention.scale"), Value::f32(static_cast<float>(1 / std::sqrt(scalar))));
    for (const auto& [field, name] : {std::pair{"final_logit_softcapping", "final_logit_softcapping"},
                                      {"attn_logit_softcapping", "attn_logit_softcapping"}}) {
      if (!text.has(field)) continue;
      CREST_TRY(const double cap, text.number(field, 1e-3, 1e9));
      config.metadata.set(key(name), Value::f32(static_cast<float>(cap)));
    }
    CREST_TRY(const bool bidirectional, text.boolean_or("use_bidirectional_attention", false));
    if (bidirectional)
      return text.error(ErrorCode::kUnsupported,
                        "use_bidirectional_attention is true; only causal models are supported");
    return {};
  }

  Status read() {
    CREST_RETURN_IF_ERROR(sizes());
    CREST_RETURN_IF_ERROR(activation());
    if (moe()) CREST_RETURN_IF_ERROR(experts());
    if (hybrid()) CREST_RETURN_IF_ERROR(delta_net());
    if (is(Family::kGemma3)) CREST_RETURN_IF_ERROR(gemma());
    if (is(Family::kQwen2) || is(Family::kQwen3) || is(Family::kQwen3Moe)) CREST_RETURN_IF_ERROR(no_window());
    return parse_rope(text, config);
  }
};

Status read_quantisation(const ConfigView& root, const ConfigView& text, HfConfig& config) {
  const ConfigView& place = root.has("quantization_config") ? root : text;
  if (!place.has("quantization_config")) return {};
  CREST_TRY(const ConfigView quant, place.object("quantization_config"));
  CREST_TRY(const std::string method, quant.string_or("quant_method", ""));
  if (method != "paroquant")
    return quant.error(ErrorCode::kUnsupported,
                       "quant_method is \"{}\"; supported are paroquant and checkpoints that are not quantised",
                       escaped(method));
  CREST_RETURN_IF_ERROR(quant.integer_or("bits", 4, 4, 4));
  CREST_RETURN_IF_ERROR(quant.integer_or("group_size", 128, 128, 128));
  config.paroquant = true;
  return {};
}

}  // namespace

const FamilyInfo& info(Family family) { return families()[static_cast<size_t>(family)]; }

std::string supported_model_types() {
  std::string names;
  for (const FamilyInfo& family : families())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", family.types.front());
  return names;
}

Result<HfConfig> parse_hf_config(std::string_view content, const std::string& source) {
  CREST_TRY(const nlohmann::json json, parse_json(content, source));
  CREST_TRY(const ConfigView root, ConfigView::create(json, source));
  CREST_TRY(const ConfigView text, root.has("text_config") ? root.object("text_config") : Result<ConfigView>(root));
  HfConfig config;
  config.source = source;
  CREST_TRY(config.family, find_family(root, text));
  CREST_RETURN_IF_ERROR(check_class(root));
  config.metadata = Metadata(source);
  config.metadata.set("general.architecture", Value::string(std::string(config.family_info().gguf_name)));
  config.metadata.set("general.type", Value::string("model"));
  CREST_RETURN_IF_ERROR((Reader{text, config}.read()));
  CREST_TRY(const bool tied, text.boolean_or("tie_word_embeddings", config.family_info().tied_by_default));
  CREST_TRY(const bool root_tied, root.boolean_or("tie_word_embeddings", tied));
  config.tied = tied || root_tied;
  CREST_RETURN_IF_ERROR(read_quantisation(root, text, config));
  return config;
}

}  // namespace crest::format
