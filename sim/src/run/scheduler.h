// Runs the workgroups of a launch on host threads so that results do not depend on how many there are.
//
// Workgroups are taken in dispatch order. Operations whose order shows in memory (floating-point and returning atomics,
// coherent loads) wait until every workgroup before this one has finished its turn, so they happen in dispatch order
// whatever the number of threads. A workgroup that seems to wait for another one (sleeps, polls) or has run for very
// long is put aside ("parked") and goes on in the next round, after all others had theirs; so workgroups that wait for
// later ones make progress. Who takes part in a round depends on the program only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "crest_sim/device.h"

namespace crest_sim {

struct FaultException;

class Scheduler {
 public:
  Scheduler(LaunchContext& context, const LaunchConfig& config, const Kernel& kernel, const Instruction* code,
            std::shared_ptr<const AllocationTable> memory, uint32_t scratch_bytes);
  LaunchResult run();
  /// Blocks until no earlier workgroup of this round is running.
  void wait_for_turn(const Workgroup& workgroup);

 private:
  struct Resident {
    Workgroup workgroup;
    std::vector<std::unique_ptr<WorkgroupObserver>> observers;
    std::unique_ptr<WorkgroupObserver> fan_out;
    MemoryAccess access;
  };
  enum class Turn { kFinished, kParked };

  void work();
  /// Null when all is done.
  std::unique_ptr<Resident> take(std::unique_lock<std::mutex>& lock);
  void start(Resident& resident, uint64_t linear);
  WorkgroupObserver* follow(Resident& resident);
  void start_wave(Workgroup& workgroup, uint32_t index);
  void load_scalars(Wave& wave, const Workgroup& workgroup);
  Turn run_turn(Resident& resident);
  void finish(Resident& resident);
  void report(const FaultException& fault);

  LaunchContext& context_;
  const LaunchConfig& config_;
  const Kernel& kernel_;
  const Instruction* code_;
  std::shared_ptr<const AllocationTable> memory_;
  uint32_t scratch_bytes_;
  uint32_t block_size_, wave_count_, rows_;
  uint64_t total_, max_resident_;
  int32_t entry_index_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Resident>> waiting_, parked_, spare_;
  size_t next_waiting_ = 0;
  uint64_t next_new_ = 0, next_sequence_ = 0, instructions_ = 0;
  std::set<uint64_t> running_;
  std::atomic<uint64_t> oldest_{0};
  std::atomic<bool> stopped_{false};
  LaunchResult result_;
  uint64_t fault_linear_ = ~uint64_t(0);
};

}  // namespace crest_sim
