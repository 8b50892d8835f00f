#pragma once

#include <string>

#include "exec/registry.h"

namespace crest_sim::CREST_SIM_LEVEL {

/// Matrix instructions are found by name in sim/src/matrix.
bool bind_matrix(Instruction& instruction, const std::string& name, const BindContext& context);

const Registry& registry();

void register_valu_special(Registry&);
void register_buffer_format(Registry&);

}  // namespace crest_sim::CREST_SIM_LEVEL
