// Hooks for checks, timing traces and coverage. With no observer attached the interpreter runs a loop without any of
// these calls; with one, a second instantiation of the loop is used.
#pragma once

#include <memory>

#include "crest_sim/wave.h"

namespace crest_sim {

/// Follows one workgroup. Its calls come from one thread at a time, in program order of each wave.
class WorkgroupObserver {
 public:
  virtual ~WorkgroupObserver() = default;
  /// Operands still hold their old values.
  virtual void before(Wave&, const Instruction&) {}
  /// `access` is null for instructions that touched no memory.
  virtual void after(Wave&, const Instruction&, const MemoryAccess* /*access*/) {}
  /// All waves that have not ended have reached the barrier.
  virtual void barrier_released(Workgroup&) {}
};

/// What a launch looks like to an observer.
struct LaunchContext {
  const CodeObject* object = nullptr;
  const Kernel* kernel = nullptr;
  const Code* code = nullptr;
  const TargetInfo* target = nullptr;
  uint64_t image_base = 0;  ///< device address of the image
  uint64_t kernarg_base = 0;
  uint64_t kernarg_bytes = 0;
  Dim3 grid;               ///< workgroups
  Dim3 block;              ///< work-items per workgroup
  uint32_t lds_bytes = 0;  ///< static + dynamic
  bool strict_matrix = false;
  void* scheduler = nullptr;
};

/// One per launch and kind of observation.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void launch_begin(const LaunchContext&) {}
  /// Called on the thread that will run the workgroup; several workgroups are alive at once.
  virtual std::unique_ptr<WorkgroupObserver> begin_workgroup(Workgroup&) = 0;
  /// After the last instruction (or a fault). May be called from several threads at once.
  virtual void end_workgroup(Workgroup&, std::unique_ptr<WorkgroupObserver>) {}
  virtual void launch_end(const LaunchContext&) {}
};

}  // namespace crest_sim
