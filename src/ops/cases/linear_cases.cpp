#include "ops/cases/internal.h"
#include "ops/cases/weights.h"
#include "ops/ops.h"

namespace crest::ops {
namespace {

using tensor::DType;

/// Error of a product with activations rounded to 8 bits: each is off by at most half a step of its block's largest
/// value / 127; over random signs the error of the sum is about 0.4 % of its standard deviation, and five times that
/// bounds the worst of a few thousand.
double linear_tolerance(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 ? 4e-6 : 0.03;
}

void linear_case(Cases& cases, DType dtype, int64_t tokens, int64_t rows, int64_t cols) {
  const int64_t bytes = rows * (dtype == DType::kParoW4 ? cols / kParoGroup * static_cast<int64_t>(sizeof(ParoBlock))
                                                        : tensor::row_bytes(dtype, cols));
  add_case(cases, "linear", fmt::format("{} tokens={} rows={} cols={}", tensor::name(dtype), tokens, rows, cols),
           linear_tolerance(dtype), bytes + tokens * (rows + cols) * kFloatBytes, 2 * tokens * rows * cols,
           [=](CaseData& data) {
             const Weight* raw = data.keep(random_weight(dtype, rows, cols, 1, 1.0f, data.random()));
             const float* x = data.input(tokens * cols);
             const float* bias = data.input(rows);
             float* out = data.output(tokens * rows);
             data.on_run([=, prepared = std::make_shared<Weight>()](Context& context) -> Status {
               if (prepared->empty()) {
                 CREST_TRY(*prepared, prepare_weight(*raw, {}));
               }
               const KernelOverrides& overrides =
                   context.overrides != nullptr ? *context.overrides : KernelOverrides::from_environment();
               const auto& forced = overrides.forced("linear");
               const bool plain = !forced.empty() && forced[0] == "reference";
               return linear({.x = x, .tokens = tokens, .in_features = cols},
                             {.weight = plain ? raw : prepared.get(), .out = out, .bias = bias}, context);
             });
           });
}

void add_correctness(Cases& cases) {
  for (const DType dtype : weight_types()) {
    const int64_t block = tensor::info(dtype).block_size;
    for (const auto& [tokens, rows, blocks] : {std::array<int64_t, 3>{1, 64, 2},
                                               {1, 8, 1},
                                               {2, 40, 3},
                                               {3, 72, 1},
                                               {5, 136, 2},
                                               {7, 8, 5},
                                               {40, 72, 1},
                                               {65, 136, 3}}) {
      linear_case(cases, dtype, tokens, rows, block == 1 ? 61 * blocks : block * blocks);
      if (dtype != DType::kParoW4)
        linear_case(cases, dtype, tokens, rows - 5, block == 1 ? 64 * blocks : block * blocks);
    }
  }
}

/// Quantised rows, read back.
void quantize_case(Cases& cases, int64_t tokens, int64_t cols) {
  add_case(cases, "quantize_activations", fmt::format("tokens={} cols={}", tokens, cols), 1e-7,
           tokens * cols * (kFloatBytes + 1), 4 * tokens * cols, [=](CaseData& data) {
             const float* x = data.input(tokens * cols, 3.0f);
             float* back = data.output(tokens * cols);
             float* sums = data.output(tokens * cols * 3 / 32);
             data.on_run([=](Context& context) -> Status {
               Workspace::Scope scope(context.workspace);
               const Activations rows{ActivationFormat::kF32, tokens, cols, reinterpret_cast<const std::byte*>(x),
                                      cols * kFloatBytes};
               CREST_TRY(const Activations quantised, quantize_activations(rows, context));
               for (int64_t t = 0; t < tokens; ++t) {
                 for (int64_t c = 0; c < cols; ++c) {
                   const QuantTile& tile = *quantised.tile(t, c / 256);
                   const int64_t at = c % 256;
                   back[t * cols + c] = static_cast<float>(tile.quants[at]) * tile.scales[at / 32];
                   float* row_sums = sums + t * cols * 3 / 32;
                   if (c % 32 == 0) row_sums[c / 32] = tile.sums32[at / 32];
                   if (c % 16 == 0) row_sums[cols / 32 + c / 16] = tile.sums16[at / 16];
                 }
               }
               return {};
             });
           });
}

}  // namespace

void add_linear_cases(Cases& cases, bool benchmark) {
  if (!benchmark) {
    for (const int64_t tokens : {1, 7, 65}) quantize_case(cases, tokens, tokens == 7 ? 96 : 32 * tokens);
    return add_correctness(cases);
  }
  quantize_case(cases, 512, 4096);
  for (const DType dtype :
       {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    for (const int64_t tokens : {1, 8, 512}) linear_case(cases, dtype, tokens, 3072, 1024);
  }
}

}  // namespace crest::ops
