// Settings of the HIP interface: the CREST_SIM_* variables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crest_sim/check.h"
#include "crest_sim/result.h"
#include "crest_sim/target.h"

namespace crest_sim::hip {

struct Options {
  std::vector<Arch> devices;           ///< CREST_SIM_DEVICES, by ordinal; gfx942 if not set
  int threads = 0;                     ///< CREST_SIM_THREADS: host threads of a launch; 0: one per core
  bool strict_matrix = false;          ///< CREST_SIM_STRICT_MATRIX
  uint64_t max_wave_instructions = 0;  ///< CREST_SIM_MAX_INSTRUCTIONS, per workgroup; 0: no limit
  CheckOptions checks;                 ///< CREST_SIM_CHECKS: names as CheckOptions::parse takes them; none if not set
  std::string report_file;             ///< CREST_SIM_REPORT: fidelity and coverage, written when the process ends
  bool follow_approximate = false;     ///< CREST_SIM_FOLLOW_APPROXIMATE
  uint64_t memory_bytes = 0;           ///< CREST_SIM_MEMORY_GIB of each device; 0: what the real device has
};

/// The error names the variable, its value and what is allowed.
Result<Options> options_from_environment();

}  // namespace crest_sim::hip
