#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/app.h"
#include "engine/generation.h"

namespace crest::cli {

/// Sampling flags, named as llama.cpp's users know them, with its defaults.
struct SamplingOptions {
  double temperature = 0.8;
  int64_t top_k = 40;
  double top_p = 0.95;
  double min_p = 0.05;
  double repeat_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  int64_t repeat_last_n = -1;
  std::optional<int64_t> seed;
  std::vector<std::string> logit_bias;
  std::vector<std::string> stop;
  int64_t max_tokens = -1;
  std::optional<int64_t> logprobs;
};

void add_sampling_options(Command& command, SamplingOptions& options);

/// A seed that was not given is drawn. Errors: a logit bias that is not ID=VALUE.
Result<engine::GenerateOptions> generate_options(const SamplingOptions& options);

}  // namespace crest::cli
