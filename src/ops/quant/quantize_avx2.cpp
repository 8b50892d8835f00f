#include "ops/quant/internal.h"
#include "ops/quant/quantize_row.h"

namespace crest::ops {
namespace {

Status quantize_avx2(const QuantizeProblem& problem, const QuantizeArgs& args, Launch&) {
  quantize_row(args.x, problem.cols, args.tiles, args.tile_stride);
  return {};
}

}  // namespace

constinit const Kernel<QuantizeProblem, QuantizeArgs> kQuantizeActivationsAvx2 = {
    .name = "avx2", .arch = "avx2", .priority = 10, .launch = quantize_avx2};

}  // namespace crest::ops
