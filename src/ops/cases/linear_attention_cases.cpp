#include "ops/cases/internal.h"
#include "ops/ops.h"

namespace crest::ops {
namespace {

struct DeltaShape {
  std::vector<int64_t> lengths;
  int64_t k_heads, v_heads, k_dim, v_dim;
  HeadOrder order = HeadOrder::kTiled;
};

struct Packing {
  std::vector<int32_t> cu_seqlens{0}, slots;
  std::vector<uint8_t> has_state;
  int64_t tokens = 0, longest = 0;

  explicit Packing(const std::vector<int64_t>& lengths) {
    for (const int64_t length : lengths) {
      slots.push_back(static_cast<int32_t>(lengths.size() - slots.size()));  // one more slot than sequences, in reverse
      has_state.push_back(slots.size() % 2);
      cu_seqlens.push_back(static_cast<int32_t>(cu_seqlens.back() + length));
      longest = std::max(longest, length);
    }
    tokens = cu_seqlens.back();
  }
};

std::string join(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) text += fmt::format("{}{}", text.empty() ? "" : "+", value);
  return text;
}

/// The recurrence carries fp32 rounding from token to token, in another order in each form: some 1e-6 of the state.
void delta_case(Cases& cases, const DeltaShape& shape) {
  const Packing counts(shape.lengths);
  const int64_t state = shape.v_heads * shape.k_dim * shape.v_dim;
  const auto sequences = static_cast<int64_t>(shape.lengths.size());
  add_case(cases, "gated_delta",
           fmt::format("tokens={} heads={}/{} dims={}/{}", join(shape.lengths), shape.k_heads, shape.v_heads,
                       shape.k_dim, shape.v_dim),
           2e-5, 2 * sequences * state * kFloatBytes, 8 * counts.tokens * state, [=](CaseData& data) {
             const auto* packing = data.keep(Packing(shape.lengths));
             const int64_t tokens = packing->tokens, q_width = shape.k_heads * shape.k_dim;
             const int64_t width = 2 * q_width + shape.v_heads * shape.v_dim;
             const float* mixed = data.input(tokens * width);
             const GatedDeltaArgs args{.q = {mixed, width, shape.k_dim},
                                       .k = {mixed + q_width, width, shape.k_dim},
                                       .v = {mixed + 2 * q_width, width, shape.v_dim},
                                       .g = data.uniform_input(tokens * shape.v_heads, -2, 0),
                                       .beta = data.uniform_input(tokens * shape.v_heads, 0, 1),
                                       .cu_seqlens = packing->cu_seqlens.data(),
                                       .state_slots = packing->slots.data(),
                                       .has_state = packing->has_state.data(),
                                       .state = data.in_out((sequences + 1) * state),
                                       .out = {data.output(tokens * shape.v_heads * shape.v_dim)}};
             const GatedDeltaProblem problem{.tokens = tokens,
                                             .sequences = sequences,
                                             .max_q_len = packing->longest,
                                             .k_heads = shape.k_heads,
                                             .v_heads = shape.v_heads,
                                             .k_dim = shape.k_dim,
                                             .v_dim = shape.v_dim,
                                             .slots = sequences + 1,
                                             .order = shape.order};
             data.on_run([=](Context& context) { return gated_delta(problem, args, context); });
           });
}

void conv_case(Cases& cases, const std::vector<int64_t>& lengths, int64_t channels, int64_t width) {
  const Packing counts(lengths);
  const auto sequences = static_cast<int64_t>(lengths.size());
  add_case(cases, "causal_conv1d", fmt::format("tokens={} channels={} width={}", join(lengths), channels, width),
           kFp32Tolerance, (2 * counts.tokens + 2 * sequences * (width - 1)) * channels * kFloatBytes,
           2 * counts.tokens * channels * width, [=](CaseData& data) {
             const auto* packing = data.keep(Packing(lengths));
             const CausalConv1dArgs args{.x = data.input(packing->tokens * channels),
                                         .weight = data.input(channels * width, 0.5f),
                                         .cu_seqlens = packing->cu_seqlens.data(),
                                         .state_slots = packing->slots.data(),
                                         .has_state = packing->has_state.data(),
                                         .state = data.in_out((sequences + 1) * (width - 1) * channels),
                                         .out = data.output(packing->tokens * channels)};
             data.on_run([=](Context& context) {
               return causal_conv1d({.tokens = packing->tokens,
                                     .sequences = sequences,
                                     .channels = channels,
                                     .width = width,
                                     .slots = sequences + 1},
                                    args, context);
             });
           });
}

void gates_case(Cases& cases, int64_t tokens, int64_t heads) {
  add_case(cases, "delta_gates", fmt::format("tokens={} heads={}", tokens, heads), kFp32Tolerance,
           4 * tokens * heads * kFloatBytes, 0, [=](CaseData& data) {
             const DeltaGatesArgs args{.a = data.input(tokens * heads, 3.0f),
                                       .b = data.input(tokens * heads, 3.0f),
                                       .a_scale = data.uniform_input(heads, -8, 0),
                                       .dt_bias = data.input(heads),
                                       .g = data.output(tokens * heads),
                                       .beta = data.output(tokens * heads)};
             data.on_run([=](Context& context) { return delta_gates({tokens, heads}, args, context); });
           });
}

}  // namespace

void add_linear_attention_cases(Cases& cases, bool benchmark) {
  if (benchmark) {
    delta_case(cases, {{1}, 16, 32, 128, 128});
    delta_case(cases, {{512}, 16, 32, 128, 128});
    conv_case(cases, {1}, 8192, 4);
    conv_case(cases, {512}, 8192, 4);
    gates_case(cases, 512, 32);
    return;
  }
  delta_case(cases, {{1}, 1, 1, 16, 16});
  delta_case(cases, {{7, 1, 64, 0, 65}, 2, 4, 16, 24});
  delta_case(cases, {{63}, 2, 6, 32, 32, HeadOrder::kGrouped});
  delta_case(cases, {{131}, 1, 2, 128, 128});
  delta_case(cases, {{15, 16, 17}, 1, 3, 7, 5});
  conv_case(cases, {1}, 1, 4);
  conv_case(cases, {7, 1, 2, 0}, 63, 4);
  conv_case(cases, {64, 3}, 65, 4);
  conv_case(cases, {5}, 200, 2);
  for (const int64_t tokens : {1, 7, 65}) gates_case(cases, tokens, 5);
}

}  // namespace crest::ops
