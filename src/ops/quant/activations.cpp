#include "ops/quant/activations.h"

#include <chrono>

#include "ops/quant/internal.h"
#include "ops/quant/quantize_row.h"

namespace crest::ops {

std::string_view name(ActivationFormat format) { return format == ActivationFormat::kF32 ? "f32" : "q8"; }

namespace {

Status quantize_reference(const QuantizeProblem& problem, const QuantizeArgs& args, Launch&) {
  quantize_row(args.x, problem.cols, args.tiles, args.tile_stride);
  return {};
}

}  // namespace

const Operator<QuantizeProblem, QuantizeArgs>& quantize_activations_operator() {
  static const Operator<QuantizeProblem, QuantizeArgs> op(
      "quantize_activations", {{.name = "reference", .launch = quantize_reference}, kQuantizeActivationsAvx2});
  return op;
}

Result<Activations> quantize_activations(const Activations& x, Context& context) {
  CREST_CHECK(x.format == ActivationFormat::kF32 && x.cols % kActivationBlock == 0);
  const QuantizeProblem problem{x.cols};
  CREST_TRY(const auto choice, quantize_activations_operator().choose(problem, context));
  const int64_t blocks = (x.cols + QuantTile::kCols - 1) / QuantTile::kCols;
  CREST_TRY(QuantTile * tiles, context.workspace.allocate<QuantTile>(x.tokens * blocks));
  const Activations q{.format = ActivationFormat::kQ8,
                      .tokens = x.tokens,
                      .cols = x.cols,
                      .data = reinterpret_cast<const std::byte*>(tiles),
                      .row_bytes = sizeof(QuantTile),
                      .block_bytes = x.tokens * static_cast<int64_t>(sizeof(QuantTile))};
  choice.calls->fetch_add(1, std::memory_order_relaxed);
  const auto start = std::chrono::steady_clock::now();
  const int64_t grain = std::max<int64_t>(1, 16384 / x.cols);
  context.pool.parallel_for(x.tokens, grain, [&](int64_t begin, int64_t end) {
    Launch launch{context.pool, {}};
    for (int64_t t = begin; t < end; ++t) (void)choice.kernel->launch(problem, {x.f32(t), tiles + t, x.tokens}, launch);
  });
  if (context.log != nullptr) {
    const auto time = std::chrono::steady_clock::now() - start;
    context.log->record(quantize_activations_operator().name(), choice.kernel->name, {}, choice.reason,
                        std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  }
  return q;
}

}  // namespace crest::ops
