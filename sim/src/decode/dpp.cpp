// Lane patterns of DPP. Controls: AMD's ISA documents, "DPP_CTRL".
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "decode/decoder.h"

namespace crest_sim {
namespace {

/// Source lane of `lane`, or -1 if it lies outside the row or the wave.
int dpp16_source(uint32_t control, int lane, int lanes) {
  int row = lane & ~15, i = lane & 15, n = static_cast<int>(control & 15);
  if (control < 0x100) return (lane & ~3) | ((control >> ((lane & 3) * 2)) & 3);
  if (control > 0x100 && control < 0x110) return i + n < 16 ? row + i + n : -1;  // row_shl
  if (control > 0x110 && control < 0x120) return i - n >= 0 ? row + i - n : -1;  // row_shr
  if (control > 0x120 && control < 0x130) return row + ((i - n) & 15);           // row_ror
  if (control >= 0x150 && control < 0x160) return row + n;                       // row_share, row_newbcast
  if (control >= 0x160 && control < 0x170) return row + (i ^ n);                 // row_xmask
  switch (control) {
    case 0x130:
      return lane + 1 < lanes ? lane + 1 : -1;  // wave_shl:1
    case 0x134:
      return (lane + 1) % lanes;  // wave_rol:1
    case 0x138:
      return lane - 1;  // wave_shr:1
    case 0x13c:
      return (lane + lanes - 1) % lanes;  // wave_ror:1
    case 0x140:
      return row + 15 - i;  // row_mirror
    case 0x141:
      return row + (i & 8) + 7 - (i & 7);  // row_half_mirror
    case 0x142:
      return lane >= 16 ? row - 1 : -1;  // row_bcast:15
    case 0x143:
      return lane >= 32 ? 31 : -1;  // row_bcast:31
    default:
      return -1;
  }
}

}  // namespace

const LaneMap* lane_map(bool dpp8, uint32_t control, uint32_t lanes) {
  static std::mutex mutex;
  static std::map<std::tuple<bool, uint32_t, uint32_t>, std::unique_ptr<LaneMap>> maps;
  std::lock_guard lock(mutex);
  auto& map = maps[{dpp8, control, lanes}];
  if (map) return map.get();
  map = std::make_unique<LaneMap>();
  map->valid = 0;
  for (int lane = 0; lane < 64; ++lane) {
    int source = dpp8 ? (lane & ~7) | static_cast<int>((control >> ((lane & 7) * 3)) & 7)
                      : dpp16_source(control, lane, static_cast<int>(lanes));
    if (source >= 0 && lane < static_cast<int>(lanes)) map->valid |= uint64_t(1) << lane;
    map->source[lane] = static_cast<uint8_t>(source < 0 ? lane : source);
  }
  return map.get();
}

}  // namespace crest_sim
