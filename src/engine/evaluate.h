#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/result.h"
#include "engine/cancel.h"
#include "engine/engine.h"

namespace crest::engine {

struct EvaluateOptions {
  int64_t chunk_size = 0;  // tokens of one forward; 0: the engine's
  bool hidden = false;
  bool mtp = false;  // needs a model with the head and EngineOptions::mtp_cache
  std::function<void(int64_t done, int64_t total)> progress = nullptr;
  const CancelToken* cancel = nullptr;
};

/// What a model makes of a text, position by position. All fp32, row-major.
struct Evaluation {
  int64_t tokens = 0;
  std::vector<float> logits;  // [tokens, vocab]
  std::vector<float>
      hidden;  // [layers + 1, tokens, hidden]: embedding, output of each layer, the last one after the final norm
  std::vector<float> mtp_logits;  // [tokens - 1, vocab]: of the head, given the hidden state of t and token t + 1
};

/// Evaluates ids from an empty state. Errors: no ids, more than the context, ids out of range, no MTP head.
Result<Evaluation> evaluate(Engine& engine, std::span<const int32_t> ids, const EvaluateOptions& options);

/// Rows of token ids, each evaluated from an empty state.
using TokenRows = std::vector<std::vector<int32_t>>;

struct LikelihoodOptions {
  int64_t skip = 0;  // tokens of each row that are only context: the first one scored is number max(skip, 1)
  std::function<void(int64_t done, int64_t total)> progress = nullptr;  // rows
  const CancelToken* cancel = nullptr;
};

struct Likelihood {
  int64_t tokens = 0;           // scored
  double nll = 0;               // mean negative log-likelihood, natural logarithm
  double nll_deviation = 0;     // standard deviation of one token's
  std::vector<double> row_nll;  // mean of each row
  double perplexity() const;
};

/// How well the model predicts the rows: -log p(token | those before it).
Result<Likelihood> likelihood(Engine& engine, const TokenRows& rows, const LikelihoodOptions& options);

struct Comparison {
  Likelihood first, second;
  double mean_kl = 0;  // of first to second, KL(first || second), natural logarithm, over the scored positions
  double median_kl = 0;
  double max_kl = 0;
  double top1_agreement = 0;  // share of positions with the same most likely token
};

/// Two models on the same rows. Their vocabularies must have the same size.
Result<Comparison> compare(Engine& first, Engine& second, const TokenRows& rows, const LikelihoodOptions& options);

/// Cuts a text into rows of `length` tokens; what is left over at the end is dropped.
TokenRows split_rows(std::span<const int32_t> ids, int64_t length);

}  // namespace crest::engine
