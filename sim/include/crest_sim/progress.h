// How far launches are: for a line on the screen while a long one runs.
#pragma once

#include <cstdint>

namespace crest_sim {

/// Workgroups that all launches of this process have finished so far.
uint64_t finished_workgroups();

}  // namespace crest_sim
