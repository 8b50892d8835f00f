#include "cli/app.h"
#include "cli/commands.h"

namespace crest::cli {

void add_all_commands(Application& application) {
  add_devices_command(application);
  add_version_command(application);
}

}  // namespace crest::cli
