// One launch from the command line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "crest_sim/check.h"
#include "crest_sim/device.h"
#include "crest_sim/profile.h"

namespace crest_sim::cli {

enum ExitCode : int { kOk = 0, kFailed = 1, kUsage = 2, kInterrupted = 130 };

/// What all commands that look at an object know.
struct ObjectOptions {
  std::string file;
  std::string arch;  ///< empty: the object's own
  bool json = false;
};

struct RunOptions {
  ObjectOptions object;
  std::string kernel;  ///< may be a part of a name, if only one kernel has it
  std::string grid = "1", block = "1";
  std::vector<std::string> arguments;
  std::string kernarg;  ///< file with the whole argument segment
  uint32_t lds_bytes = 0;
  int threads = 0;
  uint64_t seed = 1, max_instructions = 0;
  bool strict_matrix = false;
  std::string checks = "none";
  std::vector<std::string> outputs, prints, expectations;
  double atol = 0, rtol = 0;
  bool report = false, follow_approximate = false;
  std::string report_file;
  std::string gpu;  ///< a HIP library: the same launch on a real device
};

struct Object {
  std::vector<uint8_t> file;
  std::shared_ptr<Memory> memory;
  std::unique_ptr<Device> device;
  std::shared_ptr<Module> module;
};

/// The object for the named architecture; without a name, the only architecture the file has code for.
Result<Object> load_object(const ObjectOptions& options);

Result<const Kernel*> find_kernel(const CodeObject& object, const std::string& name);

/// "4", "4,2" or "4,2,1".
Result<Dim3> parse_dim3(const std::string& text, const char* what);

struct Launch {
  Object object;
  const Kernel* kernel = nullptr;
  LaunchConfig config;
  BoundArguments arguments;
  CheckOptions checks;
  LaunchResult result;
  std::vector<CheckReport> findings;
};

/// Everything up to the launch.
Result<Launch> prepare(const RunOptions& options);
/// Runs it, with a line of progress on a terminal; Ctrl-C ends the process with kInterrupted.
void run(Launch& launch, Profile* profile);

/// The same launch on a real device through the HIP library `library`; its buffers against the simulator's. Prints a
/// line per buffer; false if one differs beyond the tolerances.
Result<bool> compare_with_gpu(const std::string& library, const Launch& launch,
                              const std::vector<std::vector<uint8_t>>& inputs, double atol, double rtol);

}  // namespace crest_sim::cli
