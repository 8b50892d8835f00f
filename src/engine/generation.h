#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cancel.h"
#include "ops/sampling/sampling.h"

namespace crest::engine {

enum class StopReason : uint8_t {
  kEos,      // the model chose an end-of-generation token
  kStop,     // a stop string was written
  kLength,   // max_tokens
  kContext,  // the context is used up
  kCancelled,
};
std::string_view name(StopReason reason);

struct TokenLogprobs {
  int32_t id = 0;
  float logprob = 0;                   // of the chosen token
  std::vector<ops::TokenLogprob> top;  // the most likely ones, best first
};

/// One token of the answer, as it is told to the caller.
struct TokenEvent {
  int32_t id = 0;
  std::string_view text;  // what may be shown now: whole characters, possibly of earlier tokens, possibly none
  const TokenLogprobs* logprobs = nullptr;  // if asked for
};

struct GenerateOptions {
  ops::SamplingParams sampling{};
  int64_t max_tokens = -1;           // -1: until something else ends it
  std::vector<std::string> stop{};   // see StopStrings; the string itself is not part of the text
  int32_t logprobs = -1;             // alternatives to report for each token; -1: none, not even the token's own
  bool show_control_tokens = false;  // spell control tokens in the text instead of leaving them out
  /// Called for every token. Afterwards one last call with id -1 when text was still held back.
  std::function<void(const TokenEvent&)> on_token = nullptr;
  /// Called after every chunk of the prompt, with tokens done (those that were kept from before included) and in all.
  std::function<void(int64_t done, int64_t total)> on_prompt = nullptr;
  /// Tokens to put behind the one that was just chosen, as though the model had chosen them.
  std::function<std::vector<int32_t>(int32_t)> force_after = nullptr;
  const CancelToken* cancel = nullptr;
};

struct Timings {
  int64_t prompt_tokens = 0;  // in the prompt; of a prompt that was stopped, those that were read
  int64_t cached_tokens = 0;  // of these, kept from before
  int64_t generated_tokens = 0;
  double prompt_seconds = 0;  // evaluating the rest of the prompt
  double generation_seconds = 0;
  double first_token_seconds = 0;  // from the call to the first token

  int64_t evaluated_tokens() const { return prompt_tokens - cached_tokens; }
  /// Of the tokens behind the first, which comes from the prompt's evaluation; 0 with fewer than two.
  double generated_per_second() const {
    return generated_tokens > 1 && generation_seconds > 0
               ? static_cast<double>(generated_tokens - 1) / generation_seconds
               : 0;
  }
};

struct Generation {
  std::string text;
  std::vector<int32_t> ids;  // every token chosen, the one that ended the answer included
  StopReason stop_reason = StopReason::kEos;
  std::string stop_string;  // with kStop
  std::vector<TokenLogprobs> logprobs;
  Timings timings;
};

}  // namespace crest::engine
