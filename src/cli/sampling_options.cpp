#include "cli/sampling_options.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <random>

namespace crest::cli {
namespace {

Result<std::pair<int32_t, float>> parse_bias(const std::string& text) {
  const size_t equals = text.find('=');
  int32_t id = -1;
  double bias = 0;
  bool good = equals != std::string::npos;
  if (good) {
    const char* middle = text.data() + equals;
    const char* end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), middle, id);
    const auto second = std::from_chars(middle + 1, end, bias);
    good = first.ec == std::errc() && first.ptr == middle && id >= 0 && second.ec == std::errc() && second.ptr == end && !std::isnan(bias) &&
           bias < std::numeric_limits<float>::max();
  }
  if (!good) return usage_error("--logit-bias is '{}'; allowed: ID=NUMBER, for example 42=-5.5 or 42=-inf", text);
  return std::pair{id, static_cast<float>(bias)};
}

}  // namespace

void add_sampling_options(Command& command, SamplingOptions& o) {
  constexpr Range<int64_t> kTokens{-1, std::numeric_limits<int32_t>::max()};
  command.option("-n,--n-predict", o.max_tokens, kTokens, "Most tokens to generate; -1: until the model ends");
  command.option("--temp,--temperature", o.temperature, Range<double>{0, 1e6}, "Temperature; 0 takes the most likely token");
  command.option("--top-k", o.top_k, Range<int64_t>{0, std::numeric_limits<int32_t>::max()}, "Only the K most likely tokens; 0: all");
  command.option("--top-p", o.top_p, Range<double>{0, 1}, "Only the likeliest tokens that together reach this probability; 1: all");
  command.option("--min-p", o.min_p, Range<double>{0, 1}, "Only tokens at least this fraction as likely as the best; 0: all");
  command.option("--seed,-s", o.seed, Range<int64_t>{-1, std::numeric_limits<int64_t>::max()}, "Seed of the random numbers; -1 or none: drawn");
  command.option("--repeat-penalty", o.repeat_penalty, Range<double>{1e-3, 1e3}, "Divide the logits of tokens seen before; 1: off");
  command.option("--presence-penalty", o.presence_penalty, Range<double>{-1e3, 1e3}, "Subtract from tokens already generated");
  command.option("--frequency-penalty", o.frequency_penalty, Range<double>{-1e3, 1e3}, "Subtract for each time a token was generated");
  command.option("--repeat-last-n", o.repeat_last_n, kTokens, "How many of the last tokens the penalties look at; -1: all");
  command.option("--logit-bias", o.logit_bias, "ID=B", "Add B to a token's logit; may be given several times");
  command.option("--stop", o.stop, "TEXT", "End the answer where this text appears; may be given several times");
}

Result<engine::GenerateOptions> generate_options(const SamplingOptions& o) {
  engine::GenerateOptions g;
  g.sampling.temperature = static_cast<float>(o.temperature);
  g.sampling.top_k = static_cast<int32_t>(o.top_k);
  // 0 keeps at least the best token, which is what the smallest positive value does.
  g.sampling.top_p = std::max(static_cast<float>(o.top_p), std::numeric_limits<float>::min());
  g.sampling.min_p = static_cast<float>(o.min_p);
  g.sampling.repetition_penalty = static_cast<float>(o.repeat_penalty);
  g.sampling.presence_penalty = static_cast<float>(o.presence_penalty);
  g.sampling.frequency_penalty = static_cast<float>(o.frequency_penalty);
  g.sampling.penalty_last_n = static_cast<int32_t>(o.repeat_last_n);
  g.sampling.seed = o.seed && *o.seed >= 0 ? static_cast<uint64_t>(*o.seed) : std::random_device()();
  for (const std::string& text : o.logit_bias) {
    CREST_TRY(const auto bias, parse_bias(text));
    g.sampling.logit_bias.push_back(bias);
  }
  g.max_tokens = o.max_tokens;
  g.stop = o.stop;
  if (o.logprobs) g.logprobs = static_cast<int32_t>(*o.logprobs);
  return g;
}

}  // namespace crest::cli
