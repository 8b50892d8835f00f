#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "ops/registry.h"
#include "ops/views.h"

namespace crest::ops {

enum class RopeStyle : uint8_t {
  kNeox,    // dim i pairs with i + rotary_dim/2 (half split: Qwen, Gemma, Hugging Face's Llama)
  kNormal,  // dim 2i pairs with 2i+1 (GGUF's Llama)
};
enum class RopeScaling : uint8_t { kNone, kLinear, kLlama3, kYarn };

/// Where the frequencies of rotary embeddings (arXiv 2104.09864) come from.
struct RopeConfig {
  int64_t rotary_dim = 0;  // even, at most head_dim; the other dims pass through
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;                       // linear, llama3, yarn
  double original_context = 0;               // llama3, yarn: tokens the model was trained for
  double low_freq_factor = 1.0;              // llama3
  double high_freq_factor = 4.0;             // llama3
  double beta_fast = 32.0;                   // yarn (arXiv 2309.00071)
  double beta_slow = 1.0;                    // yarn
  std::optional<double> attention_factor{};  // on cos and sin; unset: 0.1 ln(factor) + 1 for yarn, else 1
  /// rope_freqs tensor, [rotary_dim/2] or empty: frequency j is divided by factors[j].
  std::span<const float> factors{};
  /// M-RoPE: how many frequencies take the temporal, height and width position. All zero: one position stream.
  std::array<int32_t, 3> mrope_sections{};
  bool mrope_interleaved = true;  // j%3 picks the stream (Qwen 3.5); false: consecutive sections (Qwen2-VL)
};

/// Frequencies ready for use. Angles are position * inverse_frequency in double: exact to fp32 at any position.
struct RopeFrequencies {
  std::vector<double> inverse;  // [rotary_dim/2], radians per position
  std::vector<uint8_t> stream;  // [rotary_dim/2]: position stream (0 temporal, 1 height, 2 width)
  double attention_factor = 1.0;

  /// Refuses an odd or non-positive rotary_dim, theta, factor, contexts and factors that are not finite and positive,
  /// sections that do not sum to rotary_dim/2.
  static Result<RopeFrequencies> create(const RopeConfig& config);
};

/// cos and sin of every token, made once per forward and shared by all layers of the same RopeConfig.
struct RopeTableProblem {
  int64_t tokens = 0;
  int64_t rotary_dim = 0;
  int64_t streams = 1;  // 1, or 3 for M-RoPE positions
};
struct RopeTableArgs {
  const RopeFrequencies* frequencies = nullptr;
  const int32_t* positions = nullptr;  // [streams, tokens], any values >= 0
  float* cosines = nullptr;            // [tokens, rotary_dim/2], attention factor included
  float* sines = nullptr;              // [tokens, rotary_dim/2]
};
Status check(const RopeTableProblem& problem, const RopeTableArgs& args);
Status rope_table(const RopeTableProblem& problem, const RopeTableArgs& args, Context& context);
const Operator<RopeTableProblem, RopeTableArgs>& rope_table_operator();

/// Rotates the first rotary_dim dims of every head in place: (a, b) -> (a cos - b sin, b cos + a sin).
struct RopeProblem {
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;
  RopeStyle style = RopeStyle::kNeox;
};
struct RopeArgs {
  MutableHeadsView x{};            // [tokens, heads, head_dim]
  const float* cosines = nullptr;  // [tokens, rotary_dim/2]
  const float* sines = nullptr;
};
Status check(const RopeProblem& problem, const RopeArgs& args);
Status rope(const RopeProblem& problem, const RopeArgs& args, Context& context);
const Operator<RopeProblem, RopeArgs>& rope_operator();

}  // namespace crest::ops
