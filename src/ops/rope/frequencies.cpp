#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/checks.h"
#include "ops/rope/rope.h"

namespace crest::ops {
namespace {

constexpr auto kOp = "rope";
constexpr double kLargest = 1e30;

Status check_config(const RopeConfig& c) {
  CREST_RETURN_IF_ERROR(check_range(kOp, "rotary_dim", c.rotary_dim, 2, 1 << 20));
  if (c.rotary_dim % 2 != 0) {
    return make_error(ErrorCode::kInvalidArgument, "{}: rotary_dim is {}, allowed: even numbers", kOp, c.rotary_dim);
  }
  CREST_RETURN_IF_ERROR(check_finite(kOp, "theta", c.theta, 1e-6, kLargest));
  if (c.scaling != RopeScaling::kNone) CREST_RETURN_IF_ERROR(check_finite(kOp, "scaling factor", c.factor, 1e-6, 1e6));
  if (c.scaling == RopeScaling::kLlama3 || c.scaling == RopeScaling::kYarn) {
    CREST_RETURN_IF_ERROR(check_finite(kOp, "original context length", c.original_context, 1, kLargest));
  }
  if (c.scaling == RopeScaling::kLlama3) {
    CREST_RETURN_IF_ERROR(check_finite(kOp, "low_freq_factor", c.low_freq_factor, 1e-6, 1e6));
    CREST_RETURN_IF_ERROR(check_finite(kOp, "high_freq_factor", c.high_freq_factor, 1e-6, 1e6));
    if (c.high_freq_factor <= c.low_freq_factor) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}: high_freq_factor is {}, allowed: more than low_freq_factor {}", kOp, c.high_freq_factor,
                        c.low_freq_factor);
    }
  }
  if (c.scaling == RopeScaling::kYarn) {
    CREST_RETURN_IF_ERROR(check_finite(kOp, "beta_fast", c.beta_fast, 1e-6, 1e6));
    CREST_RETURN_IF_ERROR(check_finite(kOp, "beta_slow", c.beta_slow, 1e-6, 1e6));
    if (c.theta <= 1)
      return make_error(ErrorCode::kInvalidArgument, "{}: theta is {}, YaRN needs more than 1", kOp, c.theta);
  }
  if (c.attention_factor) CREST_RETURN_IF_ERROR(check_finite(kOp, "attention factor", *c.attention_factor, 1e-6, 1e6));
  if (!c.factors.empty()) {
    CREST_RETURN_IF_ERROR(check_range(kOp, "number of frequency factors", static_cast<int64_t>(c.factors.size()),
                                      c.rotary_dim / 2, c.rotary_dim / 2));
    for (const float factor : c.factors)
      CREST_RETURN_IF_ERROR(check_finite(kOp, "frequency factor", factor, 1e-6, kLargest));
  }
  const auto& sections = c.mrope_sections;
  for (const int32_t s : sections) CREST_RETURN_IF_ERROR(check_range(kOp, "M-RoPE section", s, 0, c.rotary_dim / 2));
  const int64_t sum = int64_t{sections[0]} + sections[1] + sections[2];
  if (sum != 0 && sum != c.rotary_dim / 2) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{}: M-RoPE sections {} + {} + {}, allowed: a sum of rotary_dim/2 = {}", kOp, sections[0],
                      sections[1], sections[2], c.rotary_dim / 2);
  }
  return {};
}

/// Llama 3.1: frequencies whose wavelength exceeds the original context by low_freq_factor are divided by the factor,
/// short wavelengths stay, between them a linear blend.
double llama3(const RopeConfig& c, double inverse) {
  const double wavelength = 2 * std::numbers::pi / inverse;
  if (wavelength < c.original_context / c.high_freq_factor) return inverse;
  if (wavelength > c.original_context / c.low_freq_factor) return inverse / c.factor;
  const double smooth =
      (c.original_context / wavelength - c.low_freq_factor) / (c.high_freq_factor - c.low_freq_factor);
  return (1 - smooth) * inverse / c.factor + smooth * inverse;
}

/// YaRN, section 3.2 ("NTK-by-parts"): dimensions that turn more than beta_fast times over the original context keep
/// their frequency, those that turn less than beta_slow times are divided by the factor.
double yarn(const RopeConfig& c, double inverse, int64_t j) {
  const auto dim = static_cast<double>(c.rotary_dim);
  const auto correction = [&](double rotations) {
    return dim * std::log(c.original_context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(c.theta));
  };
  const double low = std::max(std::floor(correction(c.beta_fast)), 0.0);
  double high = std::min(std::ceil(correction(c.beta_slow)), dim - 1);
  if (high == low) high += 0.001;
  const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
  return inverse / c.factor * ramp + inverse * (1 - ramp);
}

/// j % 3 picks the height (1) and width (2) streams as long as their sections last; the rest is temporal.
uint8_t stream_of(const RopeConfig& c, int64_t j) {
  const auto& sections = c.mrope_sections;
  if (!c.mrope_interleaved) return j < sections[0] ? 0 : j < sections[0] + sections[1] ? 1 : 2;
  if (j % 3 == 1 && j < 3 * int64_t{sections[1]}) return 1;
  if (j % 3 == 2 && j < 3 * int64_t{sections[2]}) return 2;
  return 0;
}

}  // namespace

Result<RopeFrequencies> RopeFrequencies::create(const RopeConfig& config) {
  CREST_RETURN_IF_ERROR(check_config(config));
  RopeFrequencies result;
  const bool mrope = config.mrope_sections != std::array<int32_t, 3>{};
  for (int64_t j = 0; j < config.rotary_dim / 2; ++j) {
    double inverse = std::pow(config.theta, -2.0 * static_cast<double>(j) / static_cast<double>(config.rotary_dim));
    switch (config.scaling) {
      case RopeScaling::kNone:
        break;
      case RopeScaling::kLinear:
        inverse /= config.factor;
        break;
      case RopeScaling::kLlama3:
        inverse = llama3(config, inverse);
        break;
      case RopeScaling::kYarn:
        inverse = yarn(config, inverse, j);
        break;
    }
    if (!config.factors.empty()) inverse /= config.factors[static_cast<size_t>(j)];
    result.inverse.push_back(inverse);
    result.stream.push_back(mrope ? stream_of(config, j) : 0);
  }
  const bool yarn_default = config.scaling == RopeScaling::kYarn && config.factor > 1;
  result.attention_factor = config.attention_factor.value_or(yarn_default ? 0.1 * std::log(config.factor) + 1 : 1);
  return result;
}

}  // namespace crest::ops
