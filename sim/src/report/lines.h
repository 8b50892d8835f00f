// Line tables (DWARF) of code objects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "crest_sim/code_object.h"

namespace crest_sim {

struct SourceLine {
  std::string file;
  uint32_t line = 0;
};

/// The line of each address (in the image); empty if the object has no line tables or none for the address.
std::vector<SourceLine> source_lines(const CodeObject& object, const std::vector<uint64_t>& addresses);

}  // namespace crest_sim
