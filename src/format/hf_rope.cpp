#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "format/escape.h"
#include "format/hf_config.h"
#include "format/json.h"

namespace crest::format {
namespace {

constexpr double kMaxTheta = 1e12;
constexpr double kMaxFactor = 1e6;

// New files: rope_parameters, for gemma3 one object for each kind of layer. Old ones: rope_scaling, beside rope_theta.
Result<ConfigView> rope_object(const ConfigView& text) {
  if (text.has("rope_parameters")) {
    CREST_TRY(const ConfigView rope, text.object("rope_parameters"));
    return rope.has("full_attention") ? rope.object("full_attention") : Result<ConfigView>(rope);
  }
  if (text.has("rope_scaling")) return text.object("rope_scaling");
  static const nlohmann::json kEmpty = nlohmann::json::object();
  return ConfigView::create(kEmpty, text.source());
}

double default_theta(Family family) { return family == Family::kGemma3 ? 1e6 : 1e4; }

Result<double> theta_of(const ConfigView& text, const ConfigView& rope, Family family) {
  if (rope.has("rope_theta")) return rope.number("rope_theta", 1, kMaxTheta);
  if (family == Family::kQwen35 || family == Family::kQwen35Moe) return text.number("rope_theta", 1, kMaxTheta);
  return text.number_or("rope_theta", default_theta(family), 1, kMaxTheta);
}

Status parse_yarn(const ConfigView& rope, HfConfig& config, const std::string& prefix) {
  Metadata& m = config.metadata;
  CREST_TRY(const int64_t original,
            rope.integer_or("original_max_position_embeddings", config.context, 1, int64_t{1} << 31));
  config.rope_scaling.original_context = static_cast<double>(original);
  m.set(prefix + "scaling.type", Value::string("yarn"));
  m.set(prefix + "scaling.factor", Value::f32(static_cast<float>(config.rope_scaling.factor)));
  m.set(prefix + "scaling.original_context_length", Value::u32(static_cast<uint32_t>(original)));
  if (rope.has("mscale") || rope.has("mscale_all_dim"))
    return rope.error(ErrorCode::kUnsupported, "mscale and mscale_all_dim of yarn are not supported");
  CREST_TRY(const bool truncate, rope.boolean_or("truncate", true));
  if (!truncate) return rope.error(ErrorCode::kUnsupported, "truncate is false; only true is supported for yarn");
  for (const auto& [field, key] : {std::pair{"attention_factor", "scaling.yarn_attn_factor"},
                                   {"beta_fast", "scaling.yarn_beta_fast"},
                                   {"beta_slow", "scaling.yarn_beta_slow"}}) {
    if (!rope.has(field)) continue;
    CREST_TRY(const double value, rope.number(field, 1e-6, kMaxFactor));
    m.set(prefix + key, Value::f32(static_cast<float>(value)));
  }
  return {};
}

Status parse_scaling(const ConfigView& rope, HfConfig& config, const std::string& prefix) {
  CREST_TRY(std::string type, rope.string_or("type", "default"));
  CREST_TRY(type, rope.string_or("rope_type", type));
  if (type == "default" || type == "mrope") return {};
  if (type != "linear" && type != "yarn" && type != "llama3")
    return rope.error(ErrorCode::kUnsupported, "rope_type is \"{}\"; supported are default, linear, yarn and llama3",
                      escaped(type));
  RopeScaling& scaling = config.rope_scaling;
  CREST_TRY(scaling.factor, rope.number("factor", 1e-3, kMaxFactor));
  if (type == "linear") {
    scaling.kind = RopeScaling::Kind::kLinear;
    config.metadata.set(prefix + "scaling.type", Value::string("linear"));
    config.metadata.set(prefix + "scaling.factor", Value::f32(static_cast<float>(scaling.factor)));
    return {};
  }
  if (type == "yarn") {
    scaling.kind = RopeScaling::Kind::kYarn;
    return parse_yarn(rope, config, prefix);
  }
  scaling.kind = RopeScaling::Kind::kLlama3;
  CREST_TRY(scaling.low_freq_factor, rope.number("low_freq_factor", 1e-3, kMaxFactor));
  CREST_TRY(scaling.high_freq_factor, rope.number("high_freq_factor", 1e-3, kMaxFactor));
  if (scaling.high_freq_factor <= scaling.low_freq_factor)
    return rope.error(ErrorCode::kInvalidFile, "high_freq_factor {} is not above low_freq_factor {}",
                      scaling.high_freq_factor, scaling.low_freq_factor);
  CREST_TRY(const int64_t original, rope.integer("original_max_position_embeddings", 1, int64_t{1} << 31));
  scaling.original_context = static_cast<double>(original);
  return {};
}

// Layers with a sliding window turn with a frequency of their own and without scaling.
Status parse_local(const ConfigView& text, HfConfig& config, const std::string& prefix) {
  double theta = 1e4;
  if (text.has("rope_parameters")) {
    CREST_TRY(const ConfigView both, text.object("rope_parameters"));
    if (both.has("sliding_attention")) {
      CREST_TRY(const ConfigView local, both.object("sliding_attention"));
      CREST_TRY(const std::string type, local.string_or("rope_type", "default"));
      if (type != "default")
        return local.error(ErrorCode::kUnsupported, "rope_type is \"{}\"; supported is default", escaped(type));
      CREST_TRY(theta, local.number_or("rope_theta", theta, 1, kMaxTheta));
    }
  }
  CREST_TRY(theta, text.number_or("rope_local_base_freq", theta, 1, kMaxTheta));
  config.metadata.set(prefix + "freq_base_swa", Value::f32(static_cast<float>(theta)));
  return {};
}

}  // namespace

Status parse_rope(const ConfigView& text, HfConfig& config) {
  const std::string prefix = fmt::format("{}.rope.", config.family_info().gguf_name);
  const bool hybrid = config.family == Family::kQwen35 || config.family == Family::kQwen35Moe;
  CREST_TRY(const ConfigView rope, rope_object(text));
  CREST_TRY(const double theta, theta_of(text, rope, config.family));
  CREST_TRY(double partial, text.number_or("partial_rotary_factor", hybrid ? 0.25 : 1.0, 1e-3, 1));
  CREST_TRY(partial, rope.number_or("partial_rotary_factor", partial, 1e-3, 1));
  config.rotary_dim = static_cast<int64_t>(partial * static_cast<double>(config.head_dim));
  if (config.rotary_dim < 2 || config.rotary_dim % 2 != 0)
    return rope.error(ErrorCode::kInvalidFile,
                      "partial_rotary_factor {} of head_dim {} gives {} rotated dimensions; "
                      "expected an even number from 2",
                      partial, config.head_dim, config.rotary_dim);
  if (config.family == Family::kLlama && config.rotary_dim != config.head_dim)
    return rope.error(ErrorCode::kUnsupported, "partial_rotary_factor is {}; llama models turn whole heads", partial);
  config.metadata.set(prefix + "dimension_count", Value::u32(static_cast<uint32_t>(config.rotary_dim)));
  config.metadata.set(prefix + "freq_base", Value::f32(static_cast<float>(theta)));
  if (hybrid) {
    std::vector<int64_t> sections = {11, 11, 10};
    if (rope.has("mrope_section")) {
      CREST_TRY(sections, rope.integers("mrope_section", 0, 4096));
      if (sections.size() > 4)
        return rope.error(ErrorCode::kInvalidFile, "mrope_section has {} entries, at most 4 are allowed",
                          sections.size());
    }
    sections.resize(4, 0);
    const std::vector<int32_t> values(sections.begin(), sections.end());
    config.metadata.set(prefix + "dimension_sections", Value::i32s(values));
  }
  CREST_RETURN_IF_ERROR(parse_scaling(rope, config, prefix));
  if (config.family == Family::kGemma3) CREST_RETURN_IF_ERROR(parse_local(text, config, prefix));
  return {};
}

std::vector<float> llama3_rope_factors(const RopeScaling& scaling, double theta, int64_t rotary_dim) {
  std::vector<float> factors;
  const double low_wavelength = scaling.original_context / scaling.low_freq_factor;
  const double high_wavelength = scaling.original_context / scaling.high_freq_factor;
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim));
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < high_wavelength) {
      factors.push_back(1);
    } else if (wavelength > low_wavelength) {
      factors.push_back(static_cast<float>(scaling.factor));
    } else {
      const double smooth = (scaling.original_context / wavelength - scaling.low_freq_factor) /
                            (scaling.high_freq_factor - scaling.low_freq_factor);
      factors.push_back(static_cast<float>(1 / ((1 - smooth) / scaling.factor + smooth)));
    }
  }
  return factors;
}

}  // namespace crest::format
