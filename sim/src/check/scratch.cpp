// Scratch: definedness only, since no other lane sees it.
#include <bit>

#include "check/state.h"

namespace crest_sim {

void check_scratch(Wave& wave, const Instruction& i, const CheckPlan& plan, const MemoryAccess& m) {
  WaveCheck& c = check_of(wave);
  if (!check_of(*wave.workgroup).launch->options[CheckKind::kUninitialised]) return;
  bool load = m.kind == AccessKind::kLoad;
  uint32_t dwords = (m.bytes + 3u) / 4;
  const Operand& data = i.src[1];
  for (uint32_t k = 0; k < dwords; ++k) {
    uint64_t undefined = 0;
    for (uint64_t lanes = m.lanes; lanes; lanes &= lanes - 1) {
      int l = std::countr_zero(lanes);
      uint64_t bit = uint64_t(1) << l, d = m.address[0][l] / 4 + k;
      if (d >= c.undefined_scratch.size()) continue;
      uint64_t& shadow = c.undefined_scratch[d];
      if (load)
        undefined |= shadow & bit;
      else
        shadow = (shadow & ~bit) |
                 (data.is_vector() ? c.undefined[data.reg + std::min<uint32_t>(k, data.dwords - 1u)] & bit : 0);
    }
    if (load && plan.writes && k < plan.write[0].count) set_undefined(c, plan.write[0].first + k, m.lanes, undefined);
  }
}

}  // namespace crest_sim
