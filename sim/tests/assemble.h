// Assembles single instructions with llvm-mc at test time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace crest_sim::test {

struct Assembled {
  std::string text;
  std::vector<uint8_t> bytes;  ///< empty: the assembler refused the line
};

/// One element per line, in order.
std::vector<Assembled> assemble(const std::string& cpu, uint32_t wave_size, const std::vector<std::string>& lines);

}  // namespace crest_sim::test
