#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/version.h"

namespace crest::cli {

void add_version_command(Application& application) {
  auto json = std::make_shared<bool>(false);
  application
      .add_command("version", "Print version, compiler and back ends", {"crest version", "crest version --json"},
                   [json]() -> Result<int> {
                     if (*json) {
                       const nlohmann::ordered_json object = {{"version", kVersion},
                                                              {"commit", kCommit},
                                                              {"compiler", kCompiler},
                                                              {"build_type", kBuildType},
                                                              {"backends", {"cpu"}}};
                       write_stdout(object.dump(2) + "\n");
                     } else {
                       write_stdout(fmt::format("crest {} (commit {}, {}, {})\nback ends: cpu\n", kVersion, kCommit,
                                                kCompiler, kBuildType));
                     }
                     return kExitOk;
                   })
      .flag("--json", *json, "Print one JSON object");
}

}  // namespace crest::cli
