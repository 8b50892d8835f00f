// What a launch executed: how often each instruction, how faithfully, and which source lines. Attach it to launches as
// an observer, then ask for the report.
//
//   crest_sim::Profile profile;
//   config.observers.push_back(&profile);
//   device->launch(*module, "vadd", config, arguments.bytes());
//   puts(profile.report().to_text().c_str());
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "crest_sim/observer.h"

namespace crest_sim {

struct ProfileOptions {
  /// Follow the results of approximate instructions through registers, LDS, scratch and memory, and say whether one
  /// reached an address or a branch. Slow.
  bool follow_approximate = false;
  /// Read the line tables of objects that have them.
  bool source_lines = true;
};

/// One executed mnemonic.
struct MnemonicUse {
  std::string name;
  Fidelity fidelity = Fidelity::kExact;
  uint64_t count = 0;            ///< wave instructions
  uint64_t sites = 0;            ///< places in the code that were executed
  bool reached_address = false;  ///< a result of it (only if followed, and only if approximate)
  bool reached_branch = false;
};

/// One instruction of a kernel.
struct InstructionUse {
  uint64_t pc = 0;  ///< byte offset in the code section
  std::string disassembly;
  std::string file;  ///< empty without line tables
  uint32_t line = 0;
  Fidelity fidelity = Fidelity::kExact;
  uint64_t count = 0;         ///< wave instructions
  uint64_t active_lanes = 0;  ///< lanes of EXEC, summed over `count`
};

/// One source line that has code.
struct LineUse {
  std::string file;
  uint32_t line = 0;
  uint64_t count = 0;  ///< of its most executed instruction; 0: never reached
};

struct KernelUse {
  std::string kernel;
  std::string arch;
  uint64_t launches = 0, workgroups = 0, waves = 0, wave_instructions = 0;
  bool followed = false;
  std::vector<MnemonicUse> mnemonics;        ///< most executed first
  std::vector<InstructionUse> instructions;  ///< in the order of the code
  std::vector<LineUse> lines;

  uint64_t executed_instructions() const;  ///< of `instructions`
  uint64_t covered_lines() const;
  uint64_t count(Fidelity fidelity) const;
};

struct ProfileReport {
  std::vector<KernelUse> kernels;

  /// A table for people.
  std::string to_text() const;
  /// The same as JSON; `instructions` adds the listing.
  std::string to_json(bool instructions = false) const;
};

std::string_view fidelity_name(Fidelity fidelity);

/// May be attached to any number of launches, also at the same time.
class Profile : public Observer {
 public:
  explicit Profile(ProfileOptions options = {});
  ~Profile() override;

  void launch_begin(const LaunchContext& context) override;
  std::unique_ptr<WorkgroupObserver> begin_workgroup(Workgroup& workgroup) override;
  void end_workgroup(Workgroup& workgroup, std::unique_ptr<WorkgroupObserver> observer) override;
  void launch_end(const LaunchContext& context) override;

  /// Of everything up to now.
  ProfileReport report() const;

 private:
  struct KernelData;
  KernelData& data_of(const LaunchContext& context);

  ProfileOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<KernelData>> kernels_;  // by architecture, kernel and code
  std::map<const LaunchContext*, KernelData*> active_;
  struct Following;
  std::unique_ptr<Following> following_;
};

}  // namespace crest_sim
