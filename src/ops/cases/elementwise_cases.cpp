#include <cmath>

#include "ops/cases/internal.h"
#include "ops/cases/weights.h"
#include "ops/ops.h"

namespace crest::ops {
namespace {

using tensor::DType;

void norm_case(Cases& cases, int64_t tokens, int64_t heads, int64_t dim, NormWeight weight, bool gated) {
  const int64_t count = tokens * heads * dim;
  add_case(cases, "rms_norm",
           fmt::format("tokens={} heads={} dim={}{}{}", tokens, heads, dim,
                       weight == NormWeight::kPlain ? "" : " zero-centred", gated ? " gated" : ""),
           kFp32Tolerance, (gated ? 3 : 2) * count * kFloatBytes, 4 * count, [=](CaseData& data) {
             const RmsNormArgs args{.x = {data.input(count)},
                                    .weight = data.input(dim),
                                    .gate = {data.input(gated ? count : 1)},
                                    .out = {data.output(count)}};
             data.on_run([=](Context& context) {
               return rms_norm({.tokens = tokens, .heads = heads, .dim = dim, .weight = weight, .gated = gated}, args,
                               context);
             });
           });
}

void activation_case(Cases& cases, int64_t tokens, int64_t dim, GatedActivation kind) {
  const int64_t count = tokens * dim;
  add_case(cases, "gated_activation",
           fmt::format("{} tokens={} dim={}", kind == GatedActivation::kSwiGlu ? "swiglu" : "geglu", tokens, dim),
           kFp32Tolerance, 3 * count * kFloatBytes, 10 * count, [=](CaseData& data) {
             const float* both = data.input(2 * count, 4.0f);
             float* out = data.output(count);
             data.on_run([=](Context& context) {
               return gated_activation(
                   {.tokens = tokens, .dim = dim, .kind = kind},
                   {.gate = both, .up = both + dim, .gate_stride = 2 * dim, .up_stride = 2 * dim, .out = out}, context);
             });
           });
}

void add_shapes(Cases& cases, const std::vector<std::array<int64_t, 3>>& shapes) {
  for (const auto& [tokens, heads, dim] : shapes) {
    for (const NormWeight weight : {NormWeight::kPlain, NormWeight::kZeroCentred})
      norm_case(cases, tokens, heads, dim, weight, false);
    norm_case(cases, tokens, heads, dim, NormWeight::kPlain, true);
    for (const auto kind : {GatedActivation::kSwiGlu, GatedActivation::kGeGluTanh})
      activation_case(cases, tokens, heads * dim, kind);
    const int64_t count = tokens * heads * dim;
    const int64_t tokens_ = tokens, heads_ = heads, dim_ = dim;
    add_case(cases, "add", fmt::format("count={}", count), 1e-7, 3 * count * kFloatBytes, count, [=](CaseData& data) {
      const AddArgs args{data.input(count), data.input(count), data.output(count)};
      data.on_run([=](Context& context) { return add({count}, args, context); });
    });
    add_case(
        cases, "attention_output_gate", fmt::format("tokens={} heads={} dim={}", tokens, heads, dim), kFp32Tolerance,
        3 * count * kFloatBytes, 5 * count, [=](CaseData& data) {
          const OutputGateArgs args{.gate = {data.input(2 * count) + dim_, 2 * heads_ * dim_, 2 * dim_},
                                    .x = {data.in_out(count)}};
          data.on_run([=](Context& context) { return attention_output_gate({tokens_, heads_, dim_}, args, context); });
        });
    add_case(
        cases, "shared_expert_add", fmt::format("tokens={} hidden={}", tokens, heads * dim), kFp32Tolerance,
        3 * count * kFloatBytes, 2 * count, [=](CaseData& data) {
          const SharedExpertArgs args{data.input(tokens_), data.input(count), data.in_out(count)};
          data.on_run([=](Context& context) { return shared_expert_add({tokens_, heads_ * dim_}, args, context); });
        });
  }
}

void rope_case(Cases& cases, int64_t tokens, int64_t heads, int64_t head_dim, int64_t rotary_dim, RopeStyle style) {
  add_case(cases, "rope",
           fmt::format("{} tokens={} heads={} dim={}/{}", style == RopeStyle::kNeox ? "neox" : "normal", tokens, heads,
                       rotary_dim, head_dim),
           kFp32Tolerance, 2 * tokens * heads * rotary_dim * kFloatBytes, 3 * tokens * heads * rotary_dim,
           [=](CaseData& data) {
             // Rotations, so that a benchmark may repeat them in place for ever.
             const int64_t count = tokens * rotary_dim / 2;
             float* cosines = data.uniform_input(count, -1, 1);
             float* sines = data.input(count);
             for (int64_t i = 0; i < count; ++i) sines[i] = std::sqrt(1 - cosines[i] * cosines[i]);
             const RopeArgs args{.x = {data.in_out(tokens * heads * head_dim)}, .cosines = cosines, .sines = sines};
             data.on_run([=](Context& context) {
               return rope(
                   {.tokens = tokens, .heads = heads, .head_dim = head_dim, .rotary_dim = rotary_dim, .style = style},
                   args, context);
             });
           });
}

void embedding_case(Cases& cases, DType dtype, int64_t tokens, int64_t dim) {
  constexpr int64_t kVocab = 37;
  add_case(cases, "embedding", fmt::format("{} tokens={} dim={}", tensor::name(dtype), tokens, dim), 1e-7,
           tokens * (tensor::row_bytes(dtype, dim) + dim * kFloatBytes), tokens * dim, [=](CaseData& data) {
             const Weight* table = data.keep(random_weight(dtype, kVocab, dim, 1, 1.0f, data.random()));
             auto* ids = data.keep(std::vector<int32_t>(static_cast<size_t>(tokens)));
             for (auto& id : *ids) id = static_cast<int32_t>(data.random().below(kVocab));
             float* out = data.output(tokens * dim);
             data.on_run([=](Context& context) { return embedding(*table, *ids, 1.5f, out, context); });
           });
}

void rope_table_case(Cases& cases, int64_t tokens, int64_t rotary_dim) {
  add_case(cases, "rope_table", fmt::format("tokens={} dim={}", tokens, rotary_dim), kFp32Tolerance,
           tokens * rotary_dim * kFloatBytes, 0, [=](CaseData& data) {
             const auto* frequencies =
                 data.keep(RopeFrequencies::create({.rotary_dim = rotary_dim, .theta = 1e7}).value());
             auto* positions = data.keep(std::vector<int32_t>(static_cast<size_t>(tokens)));
             for (auto& position : *positions) position = static_cast<int32_t>(data.random().below(262144));
             float* cosines = data.output(tokens * rotary_dim / 2);
             float* sines = data.output(tokens * rotary_dim / 2);
             data.on_run([=](Context& context) {
               return rope_table(
                   {.tokens = tokens, .rotary_dim = rotary_dim},
                   {.frequencies = frequencies, .positions = positions->data(), .cosines = cosines, .sines = sines},
                   context);
             });
           });
}

void rotate_case(Cases& cases, int64_t tokens, int64_t cols) {
  add_case(cases, "rotate", fmt::format("tokens={} cols={}", tokens, cols), kFp32Tolerance,
           2 * tokens * cols * kFloatBytes, tokens * cols * 24, [=](CaseData& data) {
             const Weight* weight = data.keep(random_weight(DType::kParoW4, 8, cols, 1, 1.0f, data.random()));
             const float* x = data.input(tokens * cols);
             float* out = data.output(tokens * cols);
             data.on_run([=](Context& context) {
               const Rotation& rotation = *weight->rotation;
               return rotate({.tokens = tokens, .cols = cols, .rounds = rotation.rounds},
                             {.x = x, .rotation = &rotation, .out = out}, context);
             });
           });
}

}  // namespace

void add_elementwise_cases(Cases& cases, bool benchmark) {
  if (benchmark) {
    add_shapes(cases, {{1, 1, 1024}, {512, 1, 1024}, {512, 16, 128}});
    rope_case(cases, 512, 16, 128, 128, RopeStyle::kNeox);
    rope_table_case(cases, 512, 128);
    embedding_case(cases, DType::kQ6_K, 512, 1024);
    rotate_case(cases, 1, 2048);
    rotate_case(cases, 512, 2048);
    return;
  }
  add_shapes(cases, {{1, 1, 1}, {7, 1, 63}, {3, 5, 64}, {2, 7, 65}, {64, 2, 128}, {5, 1, 1021}});
  for (const RopeStyle style : {RopeStyle::kNeox, RopeStyle::kNormal}) {
    rope_case(cases, 1, 1, 2, 2, style);
    rope_case(cases, 7, 3, 64, 64, style);
    rope_case(cases, 65, 2, 80, 32, style);
    rope_case(cases, 3, 5, 256, 64, style);
  }
  for (const int64_t tokens : {1, 7, 65}) {
    rope_table_case(cases, tokens, 64);
    rotate_case(cases, tokens, 384);
    for (const DType dtype : weight_types()) {
      if (dtype != DType::kParoW4) embedding_case(cases, dtype, tokens, 256);
    }
  }
}

}  // namespace crest::ops
