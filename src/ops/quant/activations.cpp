#include "ops/quant/activations.h"

#include <chrono>

#include "ops/quant/internal.h"
#include "ops/quant/quantize_row.h"

namespace crest::ops {

std::string_view name(ActivationFormat format) { return format == ActivationFormat::kF32 ? "f32" : "q8"; }

int64_t activation_row_bytes(ActivationFormat format, int64_t cols) {
  const int64_t bytes = format == ActivationFormat::kF32 ? 4 * cols : quant_row_floats(cols) + cols / 16 * 16;
  return (bytes + 63) / 64 * 64;
}

QuantRow quant_row(const Activations& x, int64_t token) {
  const std::byte* row = x.data + token * x.row_bytes;
  const auto* floats = reinterpret_cast<const float*>(row + quant_row_floats(x.cols));
  const int64_t blocks = x.cols / kActivationBlock;
  return {reinterpret_cast<const int8_t*>(row), floats, floats + blocks, floats + 2 * blocks};
}

namespace {

Status quantize_reference(const QuantizeProblem& problem, const QuantizeArgs& args, Launch&) {
  quantize_row(args.x, problem.cols, args.row);
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
  Activations q{ActivationFormat::kQ8, x.tokens, x.cols, nullptr, activation_row_bytes(ActivationFormat::kQ8, x.cols)};
  CREST_TRY(std::byte * memory, context.workspace.allocate<std::byte>(x.tokens * q.row_bytes));
  q.data = memory;
  choice.calls->fetch_add(1, std::memory_order_relaxed);
  const auto start = std::chrono::steady_clock::now();
  const int64_t grain = std::max<int64_t>(1, 16384 / x.cols);
  context.pool.parallel_for(x.tokens, grain, [&](int64_t begin, int64_t end) {
    Launch launch{context.pool, {}};
    for (int64_t t = begin; t < end; ++t)
      (void)choice.kernel->launch(problem, {x.f32(t), memory + t * q.row_bytes}, launch);
  });
  if (context.log != nullptr) {
    const auto time = std::chrono::steady_clock::now() - start;
    context.log->record(quantize_activations_operator().name(), choice.kernel->name, {}, choice.reason,
                        std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  }
  return q;
}

}  // namespace crest::ops
