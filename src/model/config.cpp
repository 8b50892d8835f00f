#include "model/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace crest::model {
namespace {

constexpr std::array<std::pair<Architecture, std::string_view>, 7> kArchitectures{{
    {Architecture::kLlama, "llama"},
    {Architecture::kQwen2, "qwen2"},
    {Architecture::kQwen3, "qwen3"},
    {Architecture::kQwen3Moe, "qwen3moe"},
    {Architecture::kGemma3, "gemma3"},
    {Architecture::kQwen35, "qwen35"},
    {Architecture::kQwen35Moe, "qwen35moe"},
}};

// Far above any published model, low enough that no product of two or three of them overflows 64 bits.
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxHeads = 1 << 14;
constexpr int64_t kMaxHeadDim = 1 << 13;
constexpr int64_t kMaxExperts = 1 << 14;
constexpr int64_t kMaxContext = int64_t{1} << 30;

constexpr int32_t kGemmaWindowPattern = 6;
constexpr double kGemmaLocalTheta = 10000.0;
constexpr size_t kGemma27bLayers = 62;

bool is_moe(Architecture a) { return a == Architecture::kQwen3Moe || a == Architecture::kQwen35Moe; }
bool is_hybrid(Architecture a) { return a == Architecture::kQwen35 || a == Architecture::kQwen35Moe; }

/// Metadata with the architecture's prefix in front of each key.
class Keys {
 public:
  Keys(const format::Metadata& metadata, std::string_view prefix) : metadata_(metadata), prefix_(prefix) {}

  const format::Metadata& metadata() const { return metadata_; }
  std::string key(std::string_view name) const { return fmt::format("{}.{}", prefix_, name); }
  bool has(std::string_view name) const { return metadata_.contains(key(name)); }
  const format::Value* find(std::string_view name) const { return metadata_.find(key(name)); }

  Result<int32_t> integer(std::string_view name, int64_t min, int64_t max) const {
    CREST_TRY(const int64_t value, metadata_.integer(key(name), min, max));
    return static_cast<int32_t>(value);
  }
  Result<int32_t> integer_or(std::string_view name, int64_t otherwise, int64_t min, int64_t max) const {
    CREST_TRY(const int64_t value, metadata_.integer_or(key(name), otherwise, min, max));
    return static_cast<int32_t>(value);
  }
  Result<double> number_or(std::string_view name, double otherwise, double min, double max) const {
    return metadata_.number_or(key(name), otherwise, min, max);
  }
  Result<std::vector<int64_t>> per_layer(std::string_view name, int64_t count, int64_t min, int64_t max) const {
    return metadata_.integer_per_layer(key(name), count, min, max);
  }
  template <typename... Args>
  Error error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) const {
    return metadata_.error(code, format, std::forward<Args>(args)...);
  }

 private:
  const format::Metadata& metadata_;
  std::string prefix_;
};

Result<Architecture> parse_architecture(const format::Metadata& metadata) {
  CREST_TRY(const std::string found, metadata.string("general.architecture"));
  for (const auto& [architecture, name] : kArchitectures) {
    if (found == name) return architecture;
  }
  return metadata.error(ErrorCode::kUnsupported, "architecture '{}' is not supported; supported are {}", found,
                        supported_architectures());
}

Status parse_rope(const Keys& keys, ModelConfig& config) {
  auto& rope = config.rope;
  rope.neox = config.architecture != Architecture::kLlama;
  CREST_TRY(rope.dims, keys.integer_or("rope.dimension_count", config.head_dim, 2, kMaxHeadDim));
  if (rope.dims > config.head_dim || rope.dims % 2 != 0) {
    return keys.error(ErrorCode::kInvalidFile, "{} is {}, allowed are even numbers up to the head dimension {}",
                      keys.key("rope.dimension_count"), rope.dims, config.head_dim);
  }
  CREST_TRY(rope.theta, keys.number_or("rope.freq_base", 10000.0, 1.0, 1e15));
  CREST_TRY(const std::string type, keys.metadata().string_or(keys.key("rope.scaling.type"), "none"));
  if (type == "none" || type == "default") return {};
  if (type != "linear" && type != "yarn") {
    return keys.error(ErrorCode::kUnsupported, "{} is '{}'; supported are none, linear and yarn",
                      keys.key("rope.scaling.type"), type);
  }
  rope.scaling = type == "yarn" ? RopeScaling::kYarn : RopeScaling::kLinear;
  CREST_TRY(rope.factor, keys.number_or("rope.scaling.factor", 1.0, 1e-3, 1e6));
  if (rope.scaling == RopeScaling::kLinear) return {};
  CREST_TRY(rope.original_context, keys.metadata().integer_or(keys.key("rope.scaling.original_context_length"),
                                                              config.context_length, 1, kMaxContext));
  // yarn_attn_factor is the whole factor (attention_factor of a Hugging Face configuration), attn_factor comes on top.
  const double usual = rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1;
  CREST_TRY(const double whole, keys.number_or("rope.scaling.yarn_attn_factor", usual, 1e-3, 1e3));
  CREST_TRY(const double extra, keys.number_or("rope.scaling.attn_factor", 1.0, 1e-3, 1e3));
  rope.attention_factor = whole * extra;
  CREST_TRY(rope.beta_fast, keys.number_or("rope.scaling.yarn_beta_fast", 32.0, 1e-3, 1e6));
  CREST_TRY(rope.beta_slow, keys.number_or("rope.scaling.yarn_beta_slow", 1.0, 1e-3, 1e6));
  return {};
}

Status parse_attention(const Keys& keys, size_t blocks, ModelConfig& config) {
  CREST_TRY(const auto heads, keys.per_layer("attention.head_count", static_cast<int64_t>(blocks), 0, kMaxHeads));
  config.heads = static_cast<int32_t>(*std::max_element(heads.begin(), heads.end()));
  for (const int64_t count : heads) {
    // Files of hybrids may write 0 on layers that have no attention.
    if (count != config.heads && !(count == 0 && is_hybrid(config.architecture))) {
      return keys.error(ErrorCode::kUnsupported, "{} has both {} and {}; layers must have equal head counts",
                        keys.key("attention.head_count"), count, config.heads);
    }
  }
  if (config.heads == 0) {
    return keys.error(ErrorCode::kInvalidFile, "{} is 0, allowed are 1 to {}", keys.key("attention.head_count"),
                      kMaxHeads);
  }
  int64_t head_dim = 0;
  if (keys.has("attention.key_length")) {
    CREST_TRY(head_dim, keys.integer("attention.key_length", 1, kMaxHeadDim));
  } else if (config.hidden % config.heads != 0) {
    return keys.error(ErrorCode::kInvalidFile, "{} = {} is no multiple of {} = {}", keys.key("embedding_length"),
                      config.hidden, keys.key("attention.head_count"), config.heads);
  } else {
    head_dim = config.hidden / config.heads;
  }
  config.head_dim = static_cast<int32_t>(head_dim);
  CREST_TRY(const int32_t value_length, keys.integer_or("attention.value_length", head_dim, 1, kMaxHeadDim));
  if (value_length != head_dim) {
    return keys.error(ErrorCode::kUnsupported, "{} is {}, supported is the key length {}",
                      keys.key("attention.value_length"), value_length, head_dim);
  }
  double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  // Gemma 3 27B scales by the width a head would have without its own head_dim; its files do not say so.
  if (config.architecture == Architecture::kGemma3 && blocks == kGemma27bLayers) {
    scale = 1.0 / std::sqrt(static_cast<double>(config.hidden) / config.heads);
  }
  CREST_TRY(const double chosen, keys.number_or("attention.scale", scale, 1e-9, 1e9));
  config.attention_scale = static_cast<float>(chosen);
  CREST_TRY(const double attention_cap, keys.number_or("attn_logit_softcapping", 0.0, 0.0, 1e6));
  CREST_TRY(const double final_cap, keys.number_or("final_logit_softcapping", 0.0, 0.0, 1e6));
  config.attention_soft_cap = static_cast<float>(attention_cap);
  config.final_soft_cap = static_cast<float>(final_cap);
  return {};
}

Status parse_kv_heads(const Keys& keys, std::vector<LayerConfig>& layers, const ModelConfig& config) {
  const std::string name = keys.has("attention.head_count_kv") ? "attention.head_count_kv" : "attention.head_count";
  CREST_TRY(const auto counts, keys.per_layer(name, static_cast<int64_t>(layers.size()), 0, kMaxHeads));
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].mixer != Mixer::kAttention) continue;
    layers[i].kv_heads = static_cast<int32_t>(counts[i]);
    if (counts[i] == 0 || config.heads % counts[i] != 0) {
      return keys.error(ErrorCode::kInvalidFile, "{} of layer {} is {}, allowed are divisors of the {} query heads",
                        keys.key(name), i, counts[i], config.heads);
    }
  }
  return {};
}

/// Which layers are gated DeltaNet: the explicit list, or all but every interval-th.
Status parse_mixers(const Keys& keys, size_t main_layers, std::vector<LayerConfig>& layers) {
  if (const auto* list = keys.find("attention.recurrent_layers")) {
    if (!list->is_array() || (list->count() != main_layers && list->count() != layers.size())) {
      return keys.error(ErrorCode::kInvalidFile, "{} is {} of {}, expected an array of {} booleans",
                        keys.key("attention.recurrent_layers"), list->type_name(), list->count(), main_layers);
    }
    CREST_TRY(const auto flags, keys.metadata().integers(keys.key("attention.recurrent_layers"), 0, 1));
    for (size_t i = 0; i < main_layers; ++i)
      layers[i].mixer = flags[i] != 0 ? Mixer::kGatedDeltaNet : Mixer::kAttention;
    return {};
  }
  CREST_TRY(const int32_t interval, keys.integer_or("full_attention_interval", 4, 1, kMaxLayers));
  for (size_t i = 0; i < main_layers; ++i) {
    layers[i].mixer = (i + 1) % static_cast<size_t>(interval) == 0 ? Mixer::kAttention : Mixer::kGatedDeltaNet;
  }
  return {};
}

Status parse_delta_net(const Keys& keys, ModelConfig& config) {
  auto& net = config.delta_net;
  CREST_TRY(net.conv_kernel, keys.integer("ssm.conv_kernel", 2, 64));
  CREST_TRY(net.key_dim, keys.integer("ssm.state_size", 1, kMaxHeadDim));
  CREST_TRY(net.key_heads, keys.integer("ssm.group_count", 1, kMaxHeads));
  CREST_TRY(net.value_heads, keys.integer("ssm.time_step_rank", 1, kMaxHeads));
  CREST_TRY(const int32_t inner, keys.integer("ssm.inner_size", 1, kMaxWidth));
  if (net.value_heads % net.key_heads != 0) {
    return keys.error(ErrorCode::kInvalidFile, "{} = {} is no multiple of {} = {}", keys.key("ssm.time_step_rank"),
                      net.value_heads, keys.key("ssm.group_count"), net.key_heads);
  }
  if (inner % net.value_heads != 0 || inner / net.value_heads > kMaxHeadDim) {
    return keys.error(ErrorCode::kInvalidFile, "{} = {} is not {} (the {} heads of {}) times 1 to {}",
                      keys.key("ssm.inner_size"), inner, net.value_heads, net.value_heads,
                      keys.key("ssm.time_step_rank"), kMaxHeadDim);
  }
  net.value_dim = inner / net.value_heads;
  CREST_TRY(const std::string order, keys.metadata().string_or("crest.v_head_order", "tiled"));
  if (order != "tiled" && order != "grouped") {
    return keys.error(ErrorCode::kInvalidFile, "crest.v_head_order is '{}', allowed are tiled and grouped", order);
  }
  net.tiled = order == "tiled";
  return {};
}

Status parse_moe(const Keys& keys, ModelConfig& config) {
  CREST_TRY(config.moe.experts, keys.integer("expert_count", 1, kMaxExperts));
  CREST_TRY(config.moe.used, keys.integer("expert_used_count", 1, config.moe.experts));
  CREST_TRY(config.moe.ffn, keys.integer("expert_feed_forward_length", 1, kMaxWidth));
  CREST_TRY(config.moe.normalise, keys.metadata().boolean_or(keys.key("expert_weights_norm"), true));
  if (config.architecture == Architecture::kQwen35Moe) {
    CREST_TRY(config.moe.shared_ffn, keys.integer("expert_shared_feed_forward_length", 1, kMaxWidth));
  }
  return {};
}

Status parse_windows(const Keys& keys, std::vector<LayerConfig>& layers, ModelConfig& config) {
  CREST_TRY(const int32_t window, keys.integer("attention.sliding_window", 1, kMaxContext));
  const std::string key = keys.key("attention.sliding_window_pattern");
  std::vector<int64_t> sliding(layers.size());
  const auto* pattern = keys.metadata().find(key);
  if (pattern != nullptr && pattern->is_array()) {
    if (pattern->count() != layers.size()) {
      return keys.error(ErrorCode::kInvalidFile, "{} has {} entries, expected one for each of the {} layers", key,
                        pattern->count(), layers.size());
    }
    CREST_TRY(sliding, keys.metadata().integers(key, 0, 1));
  } else {
    CREST_TRY(const int64_t every, keys.metadata().integer_or(key, kGemmaWindowPattern, 1, kMaxLayers));
    for (size_t i = 0; i < layers.size(); ++i) sliding[i] = (static_cast<int64_t>(i) + 1) % every != 0;
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].window = sliding[i] != 0 ? window : 0;
    layers[i].local_rope = sliding[i] != 0;
  }
  config.local_rope = RopeConfig{.neox = true, .dims = config.rope.dims};
  CREST_TRY(config.local_rope.theta, keys.number_or("rope.freq_base_swa", kGemmaLocalTheta, 1.0, 1e15));
  return {};
}

Status parse_ffn(const Keys& keys, std::vector<LayerConfig>& layers) {
  CREST_TRY(const auto widths,
            keys.per_layer("feed_forward_length", static_cast<int64_t>(layers.size()), 1, kMaxWidth));
  for (size_t i = 0; i < layers.size(); ++i) layers[i].ffn = static_cast<int32_t>(widths[i]);
  return {};
}

}  // namespace

std::string_view name(Architecture architecture) {
  return std::find_if(kArchitectures.begin(), kArchitectures.end(),
                      [&](const auto& entry) { return entry.first == architecture; })
      ->second;
}

std::string supported_architectures() {
  std::vector<std::string_view> names;
  for (const auto& entry : kArchitectures) names.push_back(entry.second);
  return fmt::format("{}", fmt::join(names, ", "));
}

bool ModelConfig::is_recurrent() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const auto& layer) { return layer.mixer == Mixer::kGatedDeltaNet; });
}

Result<ModelConfig> parse_config(const format::Metadata& metadata) {
  ModelConfig config;
  CREST_TRY(config.architecture, parse_architecture(metadata));
  const Keys keys(metadata, name(config.architecture));
  CREST_TRY(config.name, metadata.string_or("general.name", ""));
  CREST_TRY(const int32_t blocks, keys.integer("block_count", 1, kMaxLayers));
  CREST_TRY(const int32_t mtp, is_hybrid(config.architecture)
                                   ? keys.integer_or("nextn_predict_layers", 0, 0, blocks - 1)
                                   : Result<int32_t>(0));
  CREST_TRY(config.hidden, keys.integer("embedding_length", 1, kMaxWidth));
  CREST_TRY(config.context_length, metadata.integer(keys.key("context_length"), 1, kMaxContext));
  CREST_TRY(const double eps, metadata.number(keys.key("attention.layer_norm_rms_epsilon"), 0.0, 1.0));
  config.norm_eps = static_cast<float>(eps);
  if (config.architecture == Architecture::kGemma3)
    config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  if (!is_moe(config.architecture)) {
    CREST_TRY(const int64_t experts, metadata.integer_or(keys.key("expert_count"), 0, 0, kMaxExperts));
    if (experts != 0) {
      return metadata.error(
          ErrorCode::kUnsupported,
          "architecture '{}' with {} = {}: mixtures of experts are supported for qwen3moe and qwen35moe",
          name(config.architecture), keys.key("expert_count"), experts);
    }
  }

  std::vector<LayerConfig> layers(static_cast<size_t>(blocks));
  const size_t main_layers = layers.size() - static_cast<size_t>(mtp);
  CREST_RETURN_IF_ERROR(parse_attention(keys, layers.size(), config));
  CREST_RETURN_IF_ERROR(parse_rope(keys, config));
  if (is_hybrid(config.architecture)) {
    CREST_RETURN_IF_ERROR(parse_mixers(keys, main_layers, layers));
    CREST_RETURN_IF_ERROR(parse_delta_net(keys, config));
  }
  CREST_RETURN_IF_ERROR(parse_kv_heads(keys, layers, config));
  if (config.architecture == Architecture::kGemma3) CREST_RETURN_IF_ERROR(parse_windows(keys, layers, config));
  if (is_moe(config.architecture)) {
    CREST_RETURN_IF_ERROR(parse_moe(keys, config));
  } else {
    CREST_RETURN_IF_ERROR(parse_ffn(keys, layers));
  }
  const auto split = layers.begin() + static_cast<ptrdiff_t>(main_layers);
  config.layers.assign(layers.begin(), split);
  config.mtp_layers.assign(split, layers.end());
  return config;
}

}  // namespace crest::model
