// The parts of an AMD GPU ELF file that execution needs. All offsets and counts are checked against the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "crest_sim/code_object.h"

namespace crest_sim {

struct ElfSection {
  std::string name;
  uint32_t type = 0;
  uint64_t address = 0, offset = 0, size = 0, entry_size = 0;
  uint32_t link = 0;
};

struct ElfRelocation {
  uint64_t offset;
  uint32_t type;
  uint64_t symbol_value;
  int64_t addend;
};

struct ElfFile {
  uint8_t abi_version = 0;
  uint32_t flags = 0;
  std::vector<uint8_t> image;
  std::vector<ElfSection> sections;
  std::vector<Symbol> symbols;
  std::vector<ElfRelocation> relocations;
  std::vector<std::span<const uint8_t>> metadata;  ///< NT_AMDGPU_METADATA notes

  static Result<ElfFile> parse(std::span<const uint8_t> file);
  const ElfSection* find_section(std::string_view name) const;
};

/// Fills `kernels` (found through their descriptors) with what the notes say.
Status read_metadata(std::span<const uint8_t> note, std::vector<Kernel>& kernels);

}  // namespace crest_sim
