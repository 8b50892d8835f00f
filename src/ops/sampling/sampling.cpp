#include "ops/sampling/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/checks.h"
#include "ops/sampling/internal.h"

namespace crest::ops {
namespace {

constexpr auto kOp = "sample";
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Status check_logits(std::span<const float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == kInfinity) {
      return make_error(ErrorCode::kInternal, "{}: the logit of token {} is {}, so the model's output is unusable", kOp,
                        i, logits[i]);
    }
  }
  return {};
}

}  // namespace

std::array<uint32_t, 4> SamplingRng::block(uint64_t n) const {
  std::array<uint32_t, 4> counter = {static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), 0, 0};
  auto key0 = static_cast<uint32_t>(seed_);
  auto key1 = static_cast<uint32_t>(seed_ >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

double SamplingRng::uniform(uint64_t n) const {
  const auto words = block(n);
  return static_cast<double>((uint64_t{words[1]} << 32 | words[0]) >> 11) * 0x1p-53;
}

Status check(const SamplingParams& p, int64_t vocab) {
  CREST_RETURN_IF_ERROR(check_range(kOp, "vocab", vocab, 1, kMaxExtent - 1));
  CREST_RETURN_IF_ERROR(check_finite(kOp, "temperature", p.temperature, 0, 1e6));
  CREST_RETURN_IF_ERROR(check_range(kOp, "top_k", p.top_k, 0, kMaxExtent));
  if (!(p.top_p > 0 && p.top_p <= 1)) {
    return make_error(ErrorCode::kInvalidArgument, "{}: top_p is {}, allowed: more than 0, up to 1", kOp, p.top_p);
  }
  CREST_RETURN_IF_ERROR(check_finite(kOp, "min_p", p.min_p, 0, 1));
  if (!(p.repetition_penalty > 0 && p.repetition_penalty <= 1e6f)) {
    return make_error(ErrorCode::kInvalidArgument, "{}: repetition_penalty is {}, allowed: more than 0, up to 1e6", kOp,
                      p.repetition_penalty);
  }
  CREST_RETURN_IF_ERROR(check_finite(kOp, "presence_penalty", p.presence_penalty, -1e6, 1e6));
  CREST_RETURN_IF_ERROR(check_finite(kOp, "frequency_penalty", p.frequency_penalty, -1e6, 1e6));
  CREST_RETURN_IF_ERROR(check_range(kOp, "penalty_last_n", p.penalty_last_n, -1, kMaxExtent));
  for (const auto& [token, bias] : p.logit_bias) {
    CREST_RETURN_IF_ERROR(check_range(kOp, "token of a logit bias", token, 0, vocab - 1));
    if (bias != -kInfinity) CREST_RETURN_IF_ERROR(check_finite(kOp, "logit bias", bias, -1e6, 1e6));
  }
  return {};
}

const Operator<SampleProblem, SampleArgs>& sample_operator() {
  static const Operator<SampleProblem, SampleArgs> op("sample", {sample_reference()});
  return op;
}

Result<SampleResult> sample(const SamplingParams& params, const SampleInput& input, Context& context) {
  const auto vocab = static_cast<int64_t>(input.logits.size());
  CREST_RETURN_IF_ERROR(check(params, vocab));
  CREST_RETURN_IF_ERROR(check_range(kOp, "logprobs", input.logprobs, -1, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_logits(input.logits));
  SampleResult result;
  CREST_RETURN_IF_ERROR(
      sample_operator().run({.vocab = vocab}, {.params = &params, .input = &input, .result = &result}, context));
  if (input.logprobs < 0) return result;
  result.logprob = static_cast<float>(input.logits[static_cast<size_t>(result.token)] - log_sum_exp(input.logits));
  CREST_TRY(result.top, top_logprobs(input.logits, input.logprobs));
  return result;
}

double log_sum_exp(std::span<const float> logits) {
  float best = -kInfinity;
  for (const float logit : logits) best = std::max(best, logit);
  if (best == -kInfinity) return best;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - best);
  return best + std::log(sum);
}

Result<std::vector<TokenLogprob>> top_logprobs(std::span<const float> logits, int32_t count) {
  CREST_RETURN_IF_ERROR(check_range(kOp, "number of log-probabilities", count, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_logits(logits));
  const size_t wanted = std::min<size_t>(static_cast<size_t>(count), logits.size());
  std::vector<int32_t> ids(logits.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<int64_t>(wanted), ids.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)];
    const float y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  const double total = log_sum_exp(logits);
  std::vector<TokenLogprob> top;
  for (size_t i = 0; i < wanted; ++i) {
    top.push_back({ids[i], static_cast<float>(logits[static_cast<size_t>(ids[i])] - total)});
  }
  return top;
}

}  // namespace crest::ops
