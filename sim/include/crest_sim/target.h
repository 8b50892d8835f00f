// The machines that the simulator knows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace crest_sim {

enum class Arch : uint8_t { kGfx942, kGfx950, kGfx1100, kGfx1151 };

struct TargetInfo {
  Arch arch;
  std::string_view name;  ///< "gfx942"
  bool cdna;              ///< gfx9 encodings, wave64 only, AGPRs, MFMA; otherwise RDNA3 (WMMA, VOPD, wave32 or wave64)
  bool fnuz_fp8;          ///< fp8 is E4M3/E5M2 FNUZ (gfx942); otherwise OCP
  uint32_t elf_machine;   ///< EF_AMDGPU_MACH of e_flags
  uint32_t lds_bytes;     ///< largest LDS allocation of one workgroup
  uint32_t compute_units;
  uint32_t max_vgprs;  ///< architectural VGPRs (256) + AGPRs
  uint32_t default_wave_size;
};

const TargetInfo& target_info(Arch arch);
std::span<const TargetInfo> all_targets();

/// "gfx942", also with feature suffixes ("gfx942:sramecc+:xnack-") or a full triple before it
/// ("amdgcn-amd-amdhsa--gfx942").
std::optional<Arch> parse_arch(std::string_view text);

}  // namespace crest_sim
