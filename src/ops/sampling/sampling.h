#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "ops/registry.h"

namespace crest::ops {

/// Random numbers of sampling: Philox4x32-10 (Salmon et al., SC 2011), key = seed, counter = draw number. The same on
/// every platform; draw n does not depend on the others, so a sequence samples alike alone and in a batch. The number
/// picks from the running sum of the remaining tokens' probabilities: best first after top-k or top-p, else by id.
class SamplingRng {
 public:
  explicit SamplingRng(uint64_t seed) : seed_(seed) {}
  /// Number n in [0, 1): (word1 << 32 | word0) >> 11, times 2^-53, of block n.
  double uniform(uint64_t n) const;
  /// The four words of block n.
  std::array<uint32_t, 4> block(uint64_t n) const;

 private:
  uint64_t seed_;
};

/// Order: logit bias, penalties, then temperature 0 takes the best (ties: lowest id); else top-k, top-p, min-p,
/// temperature, draw. (The order of llama.cpp's default chain.) Values that switch a step off are the defaults.
struct SamplingParams {
  float temperature = 1.0f;         // >= 0
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0f;               // (0, 1]: smallest set of best tokens whose probability reaches it
  float min_p = 0.0f;               // [0, 1]: at least this fraction of the best token's probability
  float repetition_penalty = 1.0f;  // > 0 (CTRL, arXiv 1909.05858): of tokens in the prompt or generated
  float presence_penalty = 0.0f;    // subtracted once from tokens already generated
  float frequency_penalty = 0.0f;   // subtracted for each time that the token was generated
  int32_t penalty_last_n = -1;      // how many of the last tokens the penalties look at; -1: all, 0: none
  std::vector<std::pair<int32_t, float>> logit_bias{};  // -infinity bans a token
  uint64_t seed = 0;
};
/// Names the parameter, its value and what is allowed. Bias ids must be in [0, vocab).
Status check(const SamplingParams& params, int64_t vocab);

struct SampleInput {
  std::span<const float> logits{};    // [vocab], raw; not changed
  std::span<const int32_t> prompt{};  // ids outside [0, vocab) are ignored
  std::span<const int32_t> generated{};
  uint64_t draw = 0;      // number of tokens already drawn for this sequence
  int32_t logprobs = -1;  // how many alternatives to report; -1: none, not even the token's own
};
struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // natural logarithm
};
struct SampleResult {
  int32_t token = 0;
  float logprob = 0;                // of token under the raw logits, when asked for
  std::vector<TokenLogprob> top{};  // best first, ties by id; from the raw logits, whatever the parameters
};
struct SampleProblem {
  int64_t vocab = 0;
};
struct SampleArgs {
  const SamplingParams* params = nullptr;
  const SampleInput* input = nullptr;
  SampleResult* result = nullptr;
};
/// Errors: NaN or +infinity among the logits (the id is named), nothing left to choose from (all -infinity).
Result<SampleResult> sample(const SamplingParams& params, const SampleInput& input, Context& context);
const Operator<SampleProblem, SampleArgs>& sample_operator();

/// Log-softmax of the raw logits in double: log-probabilities of the best `count` tokens (ties by id).
Result<std::vector<TokenLogprob>> top_logprobs(std::span<const float> logits, int32_t count);
/// log(sum(exp(logits))), for perplexity and log-probabilities of given tokens.
double log_sum_exp(std::span<const float> logits);

}  // namespace crest::ops
