// How handlers report a fault: the exception ends the launch and never leaves the library.
#pragma once

#include <string>

#include "crest_sim/device.h"

namespace crest_sim {

struct FaultException {
  FaultKind kind;
  const Instruction* instruction;
  const Wave* wave;
  int lane;
  uint64_t address;
  std::string message;
};

[[noreturn]] void raise_fault(const Wave& wave, const Instruction& instruction, FaultKind kind, int lane,
                              uint64_t address, const char* message);

/// Out-of-line parts of handlers that need no speed; compiled once.
[[noreturn]] void raise_global(const Wave& wave, const Instruction& instruction, int lane, uint64_t address,
                               uint32_t bytes);
[[noreturn]] void raise_lds(const Wave& wave, const Instruction& instruction, int lane, uint64_t address,
                            uint32_t bytes);
[[noreturn]] void raise_scratch(const Wave& wave, const Instruction& instruction, int lane, uint64_t address,
                                uint32_t bytes);

/// Sets MODE and the host control words that follow from it.
void set_mode(Wave& wave, uint32_t mode);

/// Waits until operations whose order matters may be done by this workgroup (see run/order.h).
void wait_for_turn(const Wave& wave);

/// Finds the allocation that holds [low, high) and makes it the instruction's window; false if there is none.
bool find_window(Workgroup& workgroup, const Instruction& instruction, uint64_t low, uint64_t high);
/// True if [low, high) lies in one allocation.
inline bool in_window(Workgroup& workgroup, const Instruction& instruction, uint64_t low, uint64_t high) {
  const MemoryWindow& window = workgroup.window_of(instruction);
  return (low >= window.begin && low < high && high <= window.end) || find_window(workgroup, instruction, low, high);
}

}  // namespace crest_sim
