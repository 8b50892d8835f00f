#pragma once

#include "core/result.h"
#include "core/thread_pool.h"

namespace crest::ops {

/// What the machine can do now, with all threads of a pool: the limits that a benchmark is set against. Others may
/// share the machine, so the figures belong to the run that measured them.
struct MachinePeaks {
  double read_gb_s = 0;    // sequential reads of memory that no cache holds
  double fp32_gflops = 0;  // multiply-adds (2 operations) in the widest registers that CREST_CPU allows
  double int8_gops = 0;    // byte products of the best instruction for them, tiles included; 0: generic
};

/// Takes about half a second. Errors: no memory for the buffer that is read (256 MiB).
Result<MachinePeaks> measure_machine_peaks(core::ThreadPool& pool);

}  // namespace crest::ops
