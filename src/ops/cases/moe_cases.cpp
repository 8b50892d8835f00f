#include <numeric>

#include "ops/cases/internal.h"
#include "ops/ops.h"

namespace crest::ops {
namespace {

void router_case(Cases& cases, int64_t tokens, int64_t experts, int64_t top_k, bool renormalize) {
  add_case(cases, "moe_router",
           fmt::format("tokens={} experts={} top_k={}{}", tokens, experts, top_k, renormalize ? "" : " raw"),
           kFp32Tolerance, tokens * experts * kFloatBytes, 4 * tokens * experts, [=](CaseData& data) {
             const float* logits = data.input(tokens * experts, 2.0f);
             auto* ids = data.keep(std::vector<int32_t>(static_cast<size_t>(tokens * top_k)));
             float* weights = data.output(tokens * top_k);
             float* id_values = data.output(tokens * top_k);
             data.on_run([=](Context& context) -> Status {
               CREST_RETURN_IF_ERROR(
                   moe_router({.tokens = tokens, .experts = experts, .top_k = top_k, .renormalize = renormalize},
                              {.logits = logits, .expert_ids = ids->data(), .weights = weights}, context));
               std::copy(ids->begin(), ids->end(), id_values);
               return {};
             });
           });
}

void sample_case(Cases& cases, int64_t vocab, const SamplingParams& params, const std::string& what) {
  add_case(cases, "sample", fmt::format("16 draws vocab={} {}", vocab, what), 1e-7, 16 * vocab * kFloatBytes, 0,
           [=](CaseData& data) {
             const float* logits = data.input(vocab, 3.0f);
             const auto* kept = data.keep(params);
             float* tokens = data.output(16);
             data.on_run([=](Context& context) -> Status {
               for (uint64_t draw = 0; draw < 16; ++draw) {
                 CREST_TRY(const auto result,
                           sample(*kept, {.logits = {logits, static_cast<size_t>(vocab)}, .draw = draw}, context));
                 tokens[draw] = static_cast<float>(result.token);
               }
               return {};
             });
           });
}

}  // namespace

void add_moe_cases(Cases& cases, bool benchmark) {
  const SamplingParams usual{.temperature = 0.7f, .top_k = 20, .top_p = 0.8f, .seed = 3};
  if (benchmark) {
    router_case(cases, 512, 256, 8, true);
    sample_case(cases, 151936, {.temperature = 0}, "greedy");
    sample_case(cases, 151936, usual, "top_k=20 top_p=0.8");
    sample_case(cases, 151936, {.temperature = 1, .seed = 1}, "temperature=1");
    return;
  }
  for (const bool renormalize : {true, false}) {
    router_case(cases, 1, 1, 1, renormalize);
    router_case(cases, 7, 63, 3, renormalize);
    router_case(cases, 65, 64, 8, renormalize);
    router_case(cases, 3, 257, 10, renormalize);
  }
  for (const int64_t vocab : {1, 7, 65, 1021}) {
    sample_case(cases, vocab, {.temperature = 0}, "greedy");
    sample_case(cases, vocab, usual, "top_k=20 top_p=0.8");
    sample_case(cases, vocab, {.temperature = 1.5f, .min_p = 0.05f, .seed = 1}, "min_p=0.05");
  }
}

}  // namespace crest::ops
