// Code objects: ELF files of the AMD GPU ABI (code object versions 4 to 6), plain or inside an offload bundle.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crest_sim/instruction.h"
#include "crest_sim/result.h"
#include "crest_sim/target.h"

namespace crest_sim {

/// The 64-byte kernel descriptor (symbol `<name>.kd`).
struct KernelDescriptor {
  uint32_t group_segment_bytes = 0;    ///< static LDS
  uint32_t private_segment_bytes = 0;  ///< scratch per lane
  uint32_t kernarg_bytes = 0;
  int64_t entry_offset = 0;  ///< from the descriptor
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;
  uint16_t preload = 0;

  bool wave32() const { return properties & (1u << 10); }
  bool dynamic_stack() const { return properties & (1u << 11); }
  uint32_t user_sgprs() const { return (rsrc2 >> 1) & 31; }
  uint32_t float_mode() const { return (rsrc1 >> 12) & 255; }
};

struct KernelArgument {
  std::string name;
  std::string value_kind;  ///< "global_buffer", "by_value", "hidden_block_count_x", …
  std::string address_space;
  uint32_t offset = 0;
  uint32_t size = 0;

  bool hidden() const { return value_kind.starts_with("hidden_"); }
};

struct Kernel {
  std::string name;
  KernelDescriptor descriptor;
  uint64_t descriptor_address = 0;  ///< in the image
  uint64_t entry_address = 0;       ///< in the image
  uint32_t wave_size = 64;
  uint32_t vgprs = 0;  ///< allocated architectural VGPRs (rows 0 …)
  uint32_t agprs = 0;  ///< allocated AGPRs (rows 256 …)
  // From the metadata note; zero or empty if the object has none.
  uint32_t kernarg_segment_size = 0;
  uint32_t max_flat_workgroup_size = 0;
  uint32_t sgpr_count = 0, vgpr_count = 0, agpr_count = 0;
  uint32_t sgpr_spill_count = 0, vgpr_spill_count = 0;
  uint32_t required_workgroup_size[3] = {0, 0, 0};
  std::vector<KernelArgument> arguments;

  /// Bytes of explicit arguments: what the caller passes. Hidden ones are filled by the launch.
  uint32_t explicit_bytes() const;
};

/// Instructions of the code section for one wave size.
struct Code {
  const TargetInfo* target = nullptr;
  uint32_t wave_size = 64;
  uint64_t section_address = 0;  ///< in the image
  std::vector<Instruction> instructions;
  std::vector<int32_t> index_of_word;  ///< (pc / 4) → instruction index, -1 inside an instruction
  std::vector<std::string> unknown;    ///< "pc: word" of everything that could not be decoded or has no semantics

  /// -1 if no instruction starts there.
  int32_t index_at(uint64_t image_address) const;
  /// Text as LLVM prints it. Made on demand: only errors and listings need it.
  std::string disassembly(const Instruction& instruction) const;

  std::vector<uint8_t> bytes;
  std::vector<std::unique_ptr<Instruction>> second_halves;
};

struct Symbol {
  std::string name;
  uint64_t address = 0;
  uint64_t size = 0;
  bool is_code = false;
};

/// A loaded ELF file. Immutable, except that code is decoded on first use (thread-safe).
class CodeObject {
 public:
  /// `file` is an ELF code object. Every field is checked against the file's size; a bad file gives a message that
  /// names the field, its value and what is allowed.
  static Result<std::shared_ptr<const CodeObject>> parse(std::span<const uint8_t> file);
  ~CodeObject();

  const TargetInfo& target() const;
  uint32_t code_object_version() const;
  const std::vector<Kernel>& kernels() const;
  const Kernel* find_kernel(std::string_view name) const;
  const std::vector<Symbol>& symbols() const;
  /// Loaded segments, address 0 first; relocations not applied.
  std::span<const uint8_t> image() const;
  /// Writes absolute addresses into a copy of the image that is loaded at `base`.
  void relocate(std::span<uint8_t> image, uint64_t base) const;
  const Code& code(uint32_t wave_size) const;
  /// The ELF file itself (for line tables).
  std::span<const uint8_t> file() const;

 private:
  struct Impl;
  explicit CodeObject(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Picks the code object for `arch` out of what hipModuleLoadData may be given: a plain ELF file, an uncompressed
/// ("__CLANG_OFFLOAD_BUNDLE__") or a compressed ("CCOB") offload bundle. A generic target ("gfx9-4-generic") serves its
/// family if no exact one is present.
Result<std::vector<uint8_t>> extract_code_object(std::span<const uint8_t> data, Arch arch);

/// Self-check of the LLVM that was found: names the target or encoding that is missing or decodes differently.
Status check_llvm();

}  // namespace crest_sim
