#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "format/metadata.h"

namespace crest::model {

enum class Architecture { kLlama, kQwen2, kQwen3, kQwen3Moe, kGemma3, kQwen35, kQwen35Moe };

/// Name as in general.architecture ("qwen35moe").
std::string_view name(Architecture architecture);
/// All names, comma-separated, for messages.
std::string supported_architectures();

enum class Mixer : uint8_t { kAttention, kGatedDeltaNet };
enum class RopeScaling : uint8_t { kNone, kLinear, kYarn };

/// Rotary position embedding (Su et al. 2021) of the first `dims` values of each query and key head.
struct RopeConfig {
  bool neox = true;  // pairs (i, i + dims/2); otherwise (2i, 2i + 1)
  int32_t dims = 0;
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // linear and YaRN
  int64_t original_context = 0;   // YaRN: context length before scaling
  double attention_factor = 1.0;  // YaRN: on cosine and sine
  double beta_fast = 32.0;
  double beta_slow = 1.0;
};

struct LayerConfig {
  Mixer mixer = Mixer::kAttention;
  int32_t kv_heads = 0;     // of attention layers
  int32_t ffn = 0;          // dense intermediate size
  int32_t window = 0;       // tokens that a query sees, itself included; 0: all before it
  bool local_rope = false;  // ModelConfig::local_rope instead of rope
};

struct MoeConfig {
  int32_t experts = 0;  // 0: dense
  int32_t used = 0;     // per token
  int32_t ffn = 0;
  int32_t shared_ffn = 0;  // 0: no shared expert
  bool normalise = true;   // the chosen experts' weights sum to one
};

struct DeltaNetConfig {
  int32_t key_heads = 0;
  int32_t value_heads = 0;
  int32_t key_dim = 0;    // per head
  int32_t value_dim = 0;  // per head
  int32_t conv_kernel = 0;
  bool tiled = true;  // value head h reads key head h % key_heads; otherwise h / (value_heads / key_heads)

  int32_t conv_dim() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
};

/// Every dimension of a model, taken from its metadata (GGUF keys) and checked.
struct ModelConfig {
  Architecture architecture = Architecture::kLlama;
  std::string name;  // general.name, or empty
  int32_t hidden = 0;
  int32_t heads = 0;
  int32_t head_dim = 0;
  int64_t context_length = 0;  // trained for
  float norm_eps = 0;
  float attention_scale = 0;     // of query times key
  float attention_soft_cap = 0;  // 0: none
  float final_soft_cap = 0;      // 0: none
  float embedding_scale = 1;
  RopeConfig rope;
  RopeConfig local_rope;
  MoeConfig moe;
  DeltaNetConfig delta_net;
  std::vector<LayerConfig> layers;      // the main decoder
  std::vector<LayerConfig> mtp_layers;  // multi-token prediction blocks announced by the file, blk.<layers.size() + i>

  bool has_attention_gate() const {
    return architecture == Architecture::kQwen35 || architecture == Architecture::kQwen35Moe;
  }
  bool is_recurrent() const;
};

/// Reads and checks. Errors name the key, its value and what is allowed; an unknown architecture is named together with
/// the supported ones.
Result<ModelConfig> parse_config(const format::Metadata& metadata);

}  // namespace crest::model
