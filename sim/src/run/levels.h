// The interpreter exists once per x86-64 level (see sim_levels.cmake); this is the table of the one that is used.
#pragma once

#include <string>
#include <string_view>

#include "crest_sim/instruction.h"
#include "crest_sim/observer.h"
#include "crest_sim/target.h"

namespace crest_sim {

struct Level {
  std::string_view name;
  /// Chooses the handler for a decoded instruction; false if its semantics are not known.
  bool (*bind)(Instruction& instruction, const std::string& base_mnemonic, const TargetInfo& target, uint32_t lanes);
  /// Joins the halves of a VOPD instruction.
  void (*bind_pair)(Instruction& instruction);
  ExecuteFn unknown;
  ExecuteFn register_range;  ///< replaces instructions that name registers beyond the kernel's allocation
  /// Runs a wave for at most `budget` instructions.
  void (*run)(Wave& wave, uint32_t budget);
  void (*run_observed)(Wave& wave, uint32_t budget);
};

/// The best level that this machine has, or the one named by CREST_SIM_LEVEL ("v2", "v3", "v4").
const Level& levels();

}  // namespace crest_sim
