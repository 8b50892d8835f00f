#include <dlfcn.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/cpu_features.h"
#include "core/thread_pool.h"

namespace crest::cli {
namespace {

uint64_t physical_memory() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// GPU run-time libraries are looked for so that a user learns why a card is not used.
std::string gpu_library_state(const char* library) {
  void* handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return "library not found";
  ::dlclose(handle);
  return "library found; this version of crest has no back end for it";
}

nlohmann::ordered_json devices_json() {
  const core::CpuFeatures& features = core::cpu_features();
  nlohmann::ordered_json devices = nlohmann::ordered_json::array();
  devices.push_back({{"name", "cpu"},
                     {"available", true},
                     {"description", features.model_name},
                     {"threads", core::usable_processors()},
                     {"memory_bytes", physical_memory()},
                     {"features", core::feature_names(features)}});
  for (const auto& [name, library] : {std::pair{"hip", "libamdhip64.so"}, {"cuda", "libcuda.so.1"}}) {
    devices.push_back(
        {{"name", name}, {"available", false}, {"description", library}, {"reason", gpu_library_state(library)}});
  }
  return devices;
}

}  // namespace

void add_devices_command(Application& application) {
  auto json = std::make_shared<bool>(false);
  application
      .add_command(
          "devices", "List the devices that can run a model, and why others cannot",
          {"crest devices", "crest devices --json"},
          [json]() -> Result<int> {
            const auto devices = devices_json();
            if (*json) {
              write_stdout(devices.dump(2) + "\n");
              return kExitOk;
            }
            for (const auto& device : devices) {
              if (device["available"]) {
                write_stdout(fmt::format("{}: {}, {} threads, {}, features: {}\n", device["name"].get<std::string>(),
                                         device["description"].get<std::string>(), device["threads"].get<int>(),
                                         human_bytes(device["memory_bytes"]),
                                         fmt::join(device["features"].get<std::vector<std::string>>(), " ")));
              } else {
                write_stdout(fmt::format("{}: not available ({}: {})\n", device["name"].get<std::string>(),
                                         device["description"].get<std::string>(),
                                         device["reason"].get<std::string>()));
              }
            }
            return kExitOk;
          })
      .flag("--json", *json, "Print one JSON array");
}

}  // namespace crest::cli
