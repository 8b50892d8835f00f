// One wave with registers, LDS and scratch, to execute single instructions on.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "crest_sim/device.h"
#include "decode/decoder.h"
#include "run/fault.h"
#include "run/levels.h"

namespace crest_sim::test {

/// A decoded instruction (and its second half for VOPD).
struct Decoded {
  bool ok = false;
  std::string text, problem;
  Instruction instruction;
  std::unique_ptr<Instruction> second;
};

inline Decoded decode_one(const TargetInfo& target, uint32_t wave_size, std::vector<uint8_t> bytes) {
  Decoded d;
  bytes.resize(bytes.size() + 16);  // the disassembler looks ahead
  Disassembler disassembler(target, wave_size);
  RawInstruction raw;
  if (!disassembler.decode(bytes, 0, raw)) {
    d.problem = "LLVM does not decode it";
    return d;
  }
  d.text = raw.text;
  d.problem = cross_check(raw, parse_text(raw.text));
  std::vector<Instruction> parts;
  std::vector<std::string> bases;
  if (!decode_instruction(target, wave_size, raw, bytes, parts, bases)) {
    d.problem = "operands of \"" + raw.text + "\" are not understood";
    return d;
  }
  bool bound = true;
  for (size_t k = 0; k < parts.size(); ++k) bound = levels().bind(parts[k], bases[k], target, wave_size) && bound;
  if (!bound) {
    d.problem = "no semantics for \"" + raw.text + "\"";
    return d;
  }
  d.instruction = parts[0];
  if (parts.size() == 2) {
    d.second = std::make_unique<Instruction>(parts[1]);
    d.instruction.second = d.second.get();
    levels().bind_pair(d.instruction);
  }
  d.ok = d.problem.empty();
  return d;
}

class Machine {
 public:
  Machine(Arch arch, uint32_t lanes, uint32_t lds_bytes = 4096)
      : target(target_info(arch)), lanes_(lanes), lds(lds_bytes), scratch(size_t(256) * lanes) {
    registers.reset(static_cast<uint32_t*>(std::aligned_alloc(64, size_t(512) * lanes * 4)));
    launch.target = &target;
    code.target = &target;
    launch.code = &code;
    group.launch = &launch;
    group.access = &access;
    group.lds = lds.data();
    group.lds_bytes = lds_bytes;
    group.scratch = scratch.data();
    group.scratch_bytes = 256;
    wave.v = registers.get();
    wave.lanes = lanes;
    wave.full_exec = lanes == 64 ? ~uint64_t(0) : 0xffffffff;
    wave.workgroup = &group;
    wave.vgpr_limit = 256;
    wave.agpr_limit = 256;
    std::fill(std::begin(wave.s), std::end(wave.s), 0u);
    set_mode(wave, 0x3f0);  // nearest, denormals on, IEEE, DX10 clamp
    set_exec(wave.full_exec);
  }

  uint32_t& v(int reg, int lane) { return wave.v[size_t(reg) * lanes_ + static_cast<size_t>(lane)]; }
  uint64_t v64(int reg, int lane) { return uint64_t(v(reg + 1, lane)) << 32 | v(reg, lane); }
  void set_v64(int reg, int lane, uint64_t x) {
    v(reg, lane) = static_cast<uint32_t>(x);
    v(reg + 1, lane) = static_cast<uint32_t>(x >> 32);
  }
  void set_exec(uint64_t mask) {
    wave.write64(cell::kExec, mask & wave.full_exec);
    wave.mask_exec = ~(mask & wave.full_exec);
  }
  void use_memory(std::shared_ptr<Memory> m) {
    memory = std::move(m);
    table = memory->table();
    group.memory = table.get();
    std::fill(std::begin(group.windows), std::end(group.windows), MemoryWindow{});
  }
  /// Executes the instruction once, in the wave's host mode.
  void run(const Decoded& d) {
    Instruction program[2] = {d.instruction, Instruction{}};
    program[1].execute = levels().unknown;
    program[0].step = 1;
    wave.code = wave.pc = program;
    levels().run(wave, 1);
  }
  std::vector<uint32_t> snapshot() const { return {wave.v, wave.v + size_t(512) * lanes_}; }

  TargetInfo target;
  uint32_t lanes_;
  Code code;
  LaunchContext launch;
  Workgroup group;
  Wave wave;
  MemoryAccess access;
  std::vector<uint8_t> lds, scratch;
  std::shared_ptr<Memory> memory;
  std::shared_ptr<const AllocationTable> table;
  std::unique_ptr<uint32_t[], void (*)(uint32_t*)> registers{nullptr, +[](uint32_t* p) { std::free(p); }};
};

}  // namespace crest_sim::test
