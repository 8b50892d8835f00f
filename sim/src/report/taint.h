// Follows the results of approximate instructions. A label is a bit per mnemonic; registers have labels per lane,
// memory per dword. Where an instruction mixes lanes (shuffles, matrix operations) or the exact path would be long, the
// union is taken: the answer "reached" may be too cautious, "not reached" is right.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "crest_sim/observer.h"

namespace crest_sim {

using TaintLabel = uint32_t;

/// Which bit stands for which mnemonic, and what the labels have reached. Shared by all launches.
class TaintLabels {
 public:
  TaintLabel label_of(uint16_t mnemonic);
  void reach_address(TaintLabel label) { address_ |= label; }
  void reach_branch(TaintLabel label) { branch_ |= label; }
  bool reached_address(uint16_t mnemonic) const { return (address_ & find(mnemonic)) != 0; }
  bool reached_branch(uint16_t mnemonic) const { return (branch_ & find(mnemonic)) != 0; }

 private:
  TaintLabel find(uint16_t mnemonic) const;
  mutable std::mutex mutex_;
  std::map<uint16_t, TaintLabel> known_;
  std::atomic<TaintLabel> address_{0}, branch_{0};
};

/// Labels of device memory, by dword.
class TaintMemory {
 public:
  bool empty() const { return empty_.load(std::memory_order_relaxed); }
  TaintLabel load(uint64_t address, uint32_t bytes) const;
  /// Whole dwords are replaced, parts of dwords are added to.
  void store(uint64_t address, uint32_t bytes, TaintLabel label);

 private:
  static constexpr uint64_t kPage = 4096;
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::vector<TaintLabel>> pages_;
  std::atomic<bool> empty_{true};
};

/// One workgroup.
class Taint {
 public:
  Taint(Workgroup& workgroup, TaintLabels& labels, TaintMemory& memory, bool strict_matrix);
  void before(Wave& wave, const Instruction& instruction);
  void after(Wave& wave, const Instruction& instruction, const MemoryAccess* access);

 private:
  struct WaveTaint {
    std::vector<TaintLabel> v;  ///< [row][lane]
    TaintLabel s[cell::kCount] = {};
    std::unordered_map<uint64_t, TaintLabel> scratch;  ///< by lane and dword
  };

  TaintLabel scalar(const WaveTaint& t, const Operand& o) const;
  void add_source(const WaveTaint& t, const Operand& o, bool mix, TaintLabel* out) const;
  TaintLabel any_lane(const WaveTaint& t, const Operand& o) const;
  void write(WaveTaint& t, const Operand& o, const TaintLabel* value, uint64_t lanes, bool keep);
  void write_scalar(WaveTaint& t, uint16_t cell, uint32_t count, TaintLabel value);
  void note_address(const WaveTaint& t, const Instruction& i);
  void memory(WaveTaint& t, const Instruction& i, const MemoryAccess& a);
  TaintLabel load(WaveTaint& t, const MemoryAccess& a, int part, int lane, uint32_t offset, uint32_t bytes);
  void store(WaveTaint& t, const MemoryAccess& a, int part, int lane, uint32_t offset, uint32_t bytes, TaintLabel x);

  TaintLabels& labels_;
  TaintMemory& memory_;
  const bool strict_;
  uint32_t lanes_;
  bool clean_ = true;  ///< of all waves and LDS
  std::vector<WaveTaint> waves_;
  std::vector<TaintLabel> lds_;
  // Of the instruction being executed:
  TaintLabel result_[64] = {};
  TaintLabel implicit_ = 0;
  uint64_t exec_ = 0;
  bool skip_ = true;
};

/// What a report says of an instruction: matrix operations have a fidelity of their own in fast arithmetic.
Fidelity fidelity_of(const Instruction& instruction, bool strict_matrix);

}  // namespace crest_sim
