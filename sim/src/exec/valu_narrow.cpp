// Conversions to and from bf16 and the small formats, and floating-point dot products: see sim/src/matrix.
#include "exec/registry.h"
#include "matrix/lane_handlers.h"

namespace crest_sim::CREST_SIM_LEVEL {

void register_valu_narrow(Registry& r) {
  register_float_dots(r);
  register_small_float_conversions(r);
  register_scaled_conversions(r);
}

}  // namespace crest_sim::CREST_SIM_LEVEL
