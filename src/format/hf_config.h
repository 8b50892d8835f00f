#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "format/metadata.h"

namespace crest::format {

class ConfigView;

/// A decoder family that Hugging Face folders may hold.
enum class Family { kQwen35, kQwen35Moe, kQwen3, kQwen3Moe, kQwen2, kLlama, kGemma3 };

struct FamilyInfo {
  Family family;
  std::string_view gguf_name;           // general.architecture
  std::vector<std::string_view> types;  // model_type of the (text) configuration
  bool shifted_norms;                   // norm weights are stored minus one
  bool tied_by_default;
};
const FamilyInfo& info(Family family);
/// "qwen3_5, qwen3_5_moe, …" for messages.
std::string supported_model_types();

/// How RoPE frequencies are changed. Sources: transformers' modeling_rope_utils, Llama 3.1 model card.
struct RopeScaling {
  enum class Kind { kNone, kLinear, kYarn, kLlama3 };
  Kind kind = Kind::kNone;
  double factor = 1;
  double original_context = 0;  // yarn, llama3
  double low_freq_factor = 1, high_freq_factor = 4;
};

/// What config.json says, checked: every size is within the limits of what the rest of the program computes with.
struct HfConfig {
  std::string source;  // the file's path
  Family family = Family::kLlama;
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, rotary_dim = 0, context = 0;
  int64_t vocab = 0;  // 0 when not given: the embedding decides
  int64_t ffn = 0;    // 0 for models whose layers all have experts
  int64_t experts = 0, experts_used = 0, expert_ffn = 0, shared_ffn = 0;
  int64_t key_heads = 0, value_heads = 0, key_head_dim = 0, value_head_dim = 0, conv_kernel = 0;
  std::vector<bool> linear_layer;  // gated DeltaNet
  bool tied = false;               // output = embedding when there is no lm_head or this is set
  RopeScaling rope_scaling;
  bool paroquant = false;
  /// Under GGUF keys; without tokenizer, block_count and nextn_predict_layers, which need the weights.
  Metadata metadata;

  const FamilyInfo& family_info() const { return info(family); }
};

/// Reads config.json (nested text_config or flat, rope_parameters or rope_scaling/rope_theta). An unsupported
/// architecture or feature is an error that says what is supported.
Result<HfConfig> parse_hf_config(std::string_view text, const std::string& source);

/// RoPE fields of a (text) configuration into config.rope_scaling, rotary_dim and metadata.
Status parse_rope(const ConfigView& text, HfConfig& config);

/// Frequency divisors of llama3 scaling, [rotary_dim/2]: GGUF's rope_freqs.weight.
std::vector<float> llama3_rope_factors(const RopeScaling& scaling, double theta, int64_t rotary_dim);

}  // namespace crest::format
