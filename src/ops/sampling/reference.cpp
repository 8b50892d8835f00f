#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/checks.h"
#include "ops/sampling/internal.h"

namespace crest::ops {
namespace {

struct Candidate {
  float logit;
  int32_t token;
};
/// Best first, ties by id.
bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

struct Scratch {
  Candidate* candidates;  // [vocab]
  double* masses;         // [vocab]
  float* logits;          // [vocab]: with bias and penalties
  int32_t* counts;        // [vocab]
  explicit Scratch(int64_t vocab, std::byte* memory) {
    candidates = reinterpret_cast<Candidate*>(memory);
    masses = reinterpret_cast<double*>(candidates + vocab);
    logits = reinterpret_cast<float*>(masses + vocab);
    counts = reinterpret_cast<int32_t*>(logits + vocab);
  }
  static int64_t bytes(int64_t vocab) {
    return vocab * static_cast<int64_t>(sizeof(Candidate) + sizeof(double) + sizeof(float) + sizeof(int32_t));
  }
};

int64_t workspace(const SampleProblem& p, int) { return Scratch::bytes(p.vocab); }

/// The last `limit` of prompt + generated, as two spans (limit < 0: all).
struct History {
  std::span<const int32_t> prompt, generated;
  History(const SampleInput& input, int32_t limit) : prompt(input.prompt), generated(input.generated) {
    if (limit < 0) return;
    generated = generated.last(std::min<size_t>(static_cast<size_t>(limit), generated.size()));
    prompt = prompt.last(std::min<size_t>(static_cast<size_t>(limit) - generated.size(), prompt.size()));
  }
};

bool penalizes(const SamplingParams& p) {
  return p.repetition_penalty != 1.0f || p.presence_penalty != 0 || p.frequency_penalty != 0;
}

void apply_penalties(const SamplingParams& p, const SampleInput& input, int64_t vocab, const Scratch& s) {
  const History history(input, p.penalty_last_n);
  const auto valid = [&](int32_t token) { return token >= 0 && token < vocab; };
  std::fill(s.counts, s.counts + vocab, 0);
  for (const int32_t token : history.generated) {
    if (valid(token)) ++s.counts[token];
  }
  const auto penalize = [&](std::span<const int32_t> tokens) {
    for (const int32_t token : tokens) {
      if (!valid(token) || s.counts[token] < 0) continue;
      float& logit = s.logits[token];
      logit = logit > 0 ? logit / p.repetition_penalty : logit * p.repetition_penalty;
      const int32_t count = s.counts[token];
      if (count > 0) logit -= static_cast<float>(count) * p.frequency_penalty + p.presence_penalty;
      s.counts[token] = -1;  // done
    }
  };
  penalize(history.generated);
  penalize(history.prompt);
}

/// Logits with bias and penalties: the input itself when there are none.
const float* adjusted(const SamplingParams& p, const SampleInput& input, int64_t vocab, const Scratch& s) {
  if (p.logit_bias.empty() && !penalizes(p)) return input.logits.data();
  std::copy(input.logits.begin(), input.logits.end(), s.logits);
  for (const auto& [token, bias] : p.logit_bias) s.logits[token] += bias;
  if (penalizes(p)) apply_penalties(p, input, vocab, s);
  return s.logits;
}

/// The best `count` of the logits into candidates, in no order: a heap whose root is the worst of them.
void select_best(const float* logits, int64_t vocab, int64_t count, Candidate* candidates) {
  for (int64_t i = 0; i < count; ++i) candidates[i] = {logits[i], static_cast<int32_t>(i)};
  std::make_heap(candidates, candidates + count, better);
  for (int64_t i = count; i < vocab; ++i) {
    // An equal logit of a higher id is not better.
    if (!(logits[i] > candidates[0].logit)) continue;
    std::pop_heap(candidates, candidates + count, better);
    candidates[count - 1] = {logits[i], static_cast<int32_t>(i)};
    std::push_heap(candidates, candidates + count, better);
  }
}

/// Number of best candidates, sorted to the front, whose probability among the first `count` reaches top_p.
int64_t nucleus(Candidate* candidates, int64_t count, double top_p, bool sorted, double best) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += std::exp(candidates[i].logit - best);
  double mass = 0;
  int64_t ready = sorted ? count : 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i == ready) {
      // Sorting a growing front is cheap: a nucleus is seldom large.
      ready = std::min(count, std::max<int64_t>(256, 4 * ready));
      if (ready < count) std::nth_element(candidates + i, candidates + ready, candidates + count, better);
      std::sort(candidates + i, candidates + ready, better);
    }
    mass += std::exp(candidates[i].logit - best);
    if (mass >= top_p * total) return i + 1;
  }
  return count;
}

int32_t draw(const SamplingParams& p, uint64_t number, const Candidate* candidates, int64_t count, double best,
             double* masses) {
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    total += std::exp((candidates[i].logit - best) / p.temperature);
    masses[i] = total;
  }
  const double target = SamplingRng(p.seed).uniform(number) * total;
  const int64_t index = std::upper_bound(masses, masses + count, target) - masses;
  return candidates[std::min(index, count - 1)].token;
}

Status launch(const SampleProblem& problem, const SampleArgs& args, Launch& launch) {
  const SamplingParams& p = *args.params;
  const SampleInput& input = *args.input;
  const int64_t vocab = problem.vocab;
  const Scratch s(vocab, launch.workspace.data());
  const float* logits = adjusted(p, input, vocab, s);

  const int64_t best_token = std::max_element(logits, logits + vocab) - logits;  // the first of equal ones
  const double best = logits[best_token];
  if (std::isinf(best)) {
    return make_error(ErrorCode::kInvalidArgument, "sample: every token is banned, nothing is left to choose from");
  }
  if (p.temperature == 0) {
    args.result->token = static_cast<int32_t>(best_token);
    return {};
  }
  int64_t count = vocab;
  bool sorted = false;  // best first; otherwise by id
  if (p.top_k > 0 && p.top_k < vocab) {
    count = p.top_k;
    select_best(logits, vocab, count, s.candidates);
    std::sort(s.candidates, s.candidates + count, better);
    sorted = true;
  } else {
    for (int64_t i = 0; i < vocab; ++i) s.candidates[i] = {logits[i], static_cast<int32_t>(i)};
  }
  if (p.top_p < 1) count = nucleus(s.candidates, count, p.top_p, sorted, best);
  if (p.min_p > 0) {
    const double least = best + std::log(double{p.min_p});
    count = std::remove_if(s.candidates, s.candidates + count, [&](const Candidate& c) { return c.logit < least; }) -
            s.candidates;
  }
  args.result->token = draw(p, input.draw, s.candidates, count, best, s.masses);
  return {};
}

}  // namespace

Kernel<SampleProblem, SampleArgs> sample_reference() {
  return {.name = "reference", .workspace = workspace, .launch = launch};
}

}  // namespace crest::ops
