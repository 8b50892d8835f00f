// Checks of launches: what real hardware would not tell.
//
//   crest_sim::Checker checker;
//   config.observers.push_back(&checker);
//   device->launch(module, "kernel", config, arguments);
//   for (const crest_sim::CheckReport& r : checker.take_reports()) puts(r.to_string().c_str());
//
// Accesses outside every allocation (and after free) are faults: they end the launch and are found without a checker.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "crest_sim/observer.h"
#include "crest_sim/result.h"

namespace crest_sim {

enum class CheckKind : uint8_t {
  kUninitialised,     ///< a register, LDS or memory value nobody wrote reaches an address, a branch or a store
  kMissingWait,       ///< a register or LDS data is used before a counter proves that it arrived
  kLdsRace,           ///< two waves touch LDS between the same barriers, at least one writes
  kGlobalRace,        ///< two workgroups (or waves) touch memory without an order, at least one writes
  kDivergentBarrier,  ///< some waves of a workgroup have ended while others wait at a barrier
  kMisalignedLds,     ///< 8-byte LDS access not aligned to 8, 12- and 16-byte access not aligned to 16
  kHazard,            ///< too few instructions between two that the hardware does not order
  kBufferBounds,      ///< a buffer access that the range check of the descriptor drops
  kBarrierPairs,      ///< waves of a workgroup meet at different barrier instructions
};
inline constexpr int kCheckKinds = 9;

/// "uninitialised", "wait", "lds-race", "global-race", "barrier", "alignment", "hazard", "buffer-bounds",
/// "barrier-pairs".
std::string_view check_name(CheckKind kind);

struct CheckOptions {
  std::array<bool, kCheckKinds> enabled{};

  bool operator[](CheckKind kind) const { return enabled[static_cast<size_t>(kind)]; }
  bool any() const;
  CheckOptions with(CheckKind kind, bool on = true) const;

  static CheckOptions none() { return {}; }
  /// Every check whose findings are faults: all but kBufferBounds and kBarrierPairs, since kernels may rely on the
  /// range check, and waves with different roles meet at barriers of their own.
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

/// Follows launches and collects what it finds. One checker may serve several launches, also at the same time. A launch
/// that is checked for global races uses one host thread.
class Checker : public Observer {
 public:
  explicit Checker(const CheckOptions& options = CheckOptions::standard());
  ~Checker() override;

  const CheckOptions& options() const;
  /// Findings since the last call.
  std::vector<CheckReport> take_reports();

  /// Memory that counts as not written. Allocations are zeroed and count as written unless they are marked. Whoever
  /// writes marked memory (copies, fills, kernels that run without this checker) says so; kernels that run with it do
  /// it themselves.
  void mark_uninitialised(uint64_t base, uint64_t bytes);
  void mark_initialised(uint64_t base, uint64_t bytes);

  void launch_begin(const LaunchContext& context) override;
  std::unique_ptr<WorkgroupObserver> begin_workgroup(Workgroup& workgroup) override;
  void end_workgroup(Workgroup& workgroup, std::unique_ptr<WorkgroupObserver> observer) override;
  void launch_end(const LaunchContext& context) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace crest_sim
