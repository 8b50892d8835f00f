#include "crest_sim/target.h"

#include <array>

namespace crest_sim {
namespace {

constexpr std::array<TargetInfo, 4> kTargets{{
    {Arch::kGfx942, "gfx942", true, true, 0x4c, 65536, 304, 512, 64},
    {Arch::kGfx950, "gfx950", true, false, 0x4f, 163840, 256, 512, 64},
    {Arch::kGfx1100, "gfx1100", false, false, 0x41, 65536, 96, 256, 32},
    {Arch::kGfx1151, "gfx1151", false, false, 0x4a, 65536, 40, 256, 32},
}};

}  // namespace

const TargetInfo& target_info(Arch arch) { return kTargets[static_cast<size_t>(arch)]; }

std::span<const TargetInfo> all_targets() { return kTargets; }

std::optional<Arch> parse_arch(std::string_view text) {
  if (size_t at = text.rfind("gfx"); at != std::string_view::npos) text.remove_prefix(at);
  text = text.substr(0, text.find(':'));
  for (const TargetInfo& target : kTargets)
    if (target.name == text) return target.arch;
  return std::nullopt;
}

}  // namespace crest_sim
