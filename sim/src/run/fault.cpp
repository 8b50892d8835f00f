#include "run/fault.h"

#include <fmt/format.h>

#include "run/scheduler.h"

namespace crest_sim {

void raise_fault(const Wave& wave, const Instruction& instruction, FaultKind kind, int lane, uint64_t address,
                 const char* message) {
  throw FaultException{kind, &instruction, &wave, lane, address, message};
}

void raise_global(const Wave& wave, const Instruction& instruction, int lane, uint64_t address, uint32_t bytes) {
  throw FaultException{FaultKind::kGlobalAddress,
                       &instruction,
                       &wave,
                       lane,
                       address,
                       fmt::format("access of {} bytes at {:#x} outside every allocation: {}", bytes, address,
                                   wave.workgroup->memory->describe(address))};
}

void raise_lds(const Wave& wave, const Instruction& instruction, int lane, uint64_t address, uint32_t bytes) {
  throw FaultException{
      FaultKind::kLdsAddress,
      &instruction,
      &wave,
      lane,
      address,
      fmt::format("access of {} bytes at LDS offset {:#x}: the workgroup has {} bytes, and atomics must be aligned",
                  bytes, address, wave.workgroup->lds_bytes)};
}

void raise_scratch(const Wave& wave, const Instruction& instruction, int lane, uint64_t address, uint32_t bytes) {
  throw FaultException{FaultKind::kScratchAddress,
                       &instruction,
                       &wave,
                       lane,
                       address,
                       fmt::format("access of {} bytes at scratch offset {:#x}: a lane has {} bytes", bytes, address,
                                   wave.workgroup->scratch_bytes)};
}

void set_mode(Wave& wave, uint32_t mode) {
  // MODE rounds to nearest, +inf, -inf, zero; MXCSR orders -inf before +inf. Denormal fields: bit 0 inputs, bit 1
  // results.
  constexpr uint32_t kRounding[4] = {0, 2, 1, 3};
  auto control = [&](uint32_t round, uint32_t denormals) {
    return 0x1f80u | kRounding[round] << 13 | (denormals & 1 ? 0u : 0x40u) | (denormals & 2 ? 0u : 0x8000u);
  };
  wave.mode = mode;
  wave.mxcsr = control(mode & 3, (mode >> 4) & 3);
  wave.mxcsr_wide = control((mode >> 2) & 3, (mode >> 6) & 3);
}

bool find_window(Workgroup& workgroup, const Instruction& instruction, uint64_t low, uint64_t high) {
  if (high < low) return false;
  const Allocation* a = workgroup.memory->find(low, high - low);
  if (!a) return false;
  workgroup.window_of(instruction) = {a->base, a->end()};
  return true;
}

void wait_for_turn(const Wave& wave) {
  const Workgroup& g = *wave.workgroup;
  if (g.launch->scheduler) static_cast<Scheduler*>(g.launch->scheduler)->wait_for_turn(g);
}

std::string Fault::to_string() const {
  if (kind == FaultKind::kNone) return "no fault";
  std::string out = fmt::format("kernel {}: {}", kernel, message);
  if (wave < 0) return out;
  out += fmt::format(" [pc {:#x}: {}; workgroup ({}, {}, {}), wave {}", pc, disassembly, workgroup.x, workgroup.y,
                     workgroup.z, wave);
  if (lane >= 0) out += fmt::format(", lane {}", lane);
  return out + "]";
}

}  // namespace crest_sim
