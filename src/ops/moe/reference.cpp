#include <algorithm>
#include <atomic>
#include <cmath>

#include "ops/moe/internal.h"
#include "ops/partition.h"
#include "ops/reference_math.h"

namespace crest::ops {
namespace {

/// False when a logit is NaN.
bool route(const RouterProblem& p, const float* logits, int32_t* ids, float* weights) {
  int64_t chosen = 0;
  for (int64_t e = 0; e < p.experts; ++e) {
    if (std::isnan(logits[e])) return false;
    // Insertion into the list of the best so far; an equal logit stays behind those of lower index.
    int64_t place = chosen;
    while (place > 0 && logits[e] > logits[ids[place - 1]]) --place;
    if (place == p.top_k) continue;
    chosen = std::min(chosen + 1, p.top_k);
    for (int64_t i = chosen - 1; i > place; --i) ids[i] = ids[i - 1];
    ids[place] = static_cast<int32_t>(e);
  }
  const double best = logits[ids[0]];
  if (std::isinf(best)) return false;
  double total = 0;
  const int64_t terms = p.renormalize ? p.top_k : p.experts;
  for (int64_t i = 0; i < terms; ++i) total += std::exp(logits[p.renormalize ? ids[i] : i] - best);
  for (int64_t i = 0; i < p.top_k; ++i) {
    weights[i] = static_cast<float>(std::exp(logits[ids[i]] - best) / total * p.scale);
  }
  return true;
}

Status launch_router(const RouterProblem& p, const RouterArgs& a, Launch& launch) {
  std::atomic<int64_t> bad{p.tokens};
  launch.pool.parallel_for(p.tokens, row_grain(4 * p.experts), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      if (route(p, a.logits + t * p.experts, a.expert_ids + t * p.top_k, a.weights + t * p.top_k)) continue;
      int64_t seen = bad.load();
      while (t < seen && !bad.compare_exchange_weak(seen, t)) {
      }
    }
  });
  if (bad.load() == p.tokens) return {};
  return make_error(ErrorCode::kInternal, "moe_router: the router logits of token {} of the batch are not finite",
                    bad.load());
}

Status launch_shared(const SharedExpertProblem& p, const SharedExpertArgs& a, Launch& launch) {
  launch.pool.parallel_for(p.tokens, row_grain(p.hidden), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      axpy(a.out + t * p.hidden, sigmoid(a.gate[t]), a.shared + t * p.hidden, p.hidden);
    }
  });
  return {};
}

}  // namespace

Kernel<RouterProblem, RouterArgs> moe_router_reference() { return {.name = "reference", .launch = launch_router}; }
Kernel<SharedExpertProblem, SharedExpertArgs> shared_expert_add_reference() {
  return {.name = "reference", .launch = launch_shared};
}

}  // namespace crest::ops
