// Checks of a launch: what real hardware would not tell. Chosen with LaunchConfig::checks; findings come back in
// LaunchResult::reports. Accesses outside every allocation (and after free) are faults: they end the launch and are
// found whether checks are on or not.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crest_sim/result.h"
#include "crest_sim/wave.h"

namespace crest_sim {

enum class CheckKind : uint8_t {
  kUninitialised,     ///< a register, LDS or memory value nobody wrote reaches an address, a branch or a store
  kMissingWait,       ///< a register or LDS data is used before a counter proves that it arrived
  kLdsRace,           ///< two waves touch LDS between the same barriers, at least one writes
  kGlobalRace,        ///< two workgroups (or waves) touch memory without an order, at least one writes
  kDivergentBarrier,  ///< waves of a workgroup wait at different barriers, or some have ended
  kMisalignedLds,     ///< 8-byte LDS access not aligned to 8, 12- and 16-byte access not aligned to 16
  kHazard,            ///< too few instructions between two that the hardware does not order
  kBufferBounds,      ///< a buffer access that the range check of the descriptor drops
};
inline constexpr int kCheckKinds = 8;

/// "uninitialised", "wait", "lds-race", "global-race", "barrier", "alignment", "hazard", "buffer-bounds".
std::string_view check_name(CheckKind kind);

struct CheckOptions {
  std::array<bool, kCheckKinds> enabled{};

  bool operator[](CheckKind kind) const { return enabled[static_cast<size_t>(kind)]; }
  bool any() const;
  CheckOptions with(CheckKind kind, bool on = true) const;

  static CheckOptions none() { return {}; }
  /// Every check whose findings are always faults of the kernel: all but kBufferBounds, since kernels may rely on the
  /// range check.
  static CheckOptions standard();
  static CheckOptions all();
  /// A comma-separated list of names, applied from left to right: "all", "standard", "none", a check's name, or a name
  /// with "-" or "no-" in front to switch it off. Empty is "standard".
  static Result<CheckOptions> parse(std::string_view text);
};

/// One side of a finding.
struct CheckPlace {
  uint64_t pc = 0;  ///< byte offset in the code section
  std::string disassembly;
  std::string source;  ///< "file:line" if the object has line tables
  Dim3 workgroup{0, 0, 0};
  int wave = -1;
  int lane = -1;
};

struct CheckReport {
  CheckKind kind = CheckKind::kUninitialised;
  std::string kernel;
  std::string message;  ///< names the register or address
  uint64_t address = 0;
  CheckPlace place;
  CheckPlace other;  ///< races: the earlier access; waits and hazards: what was not waited for
  bool has_other = false;
  uint64_t count = 1;  ///< findings of this kind at these two instructions; the first one is shown

  std::string to_string() const;
};

}  // namespace crest_sim
