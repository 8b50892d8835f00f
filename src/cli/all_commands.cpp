#include "cli/app.h"
#include "cli/commands.h"

namespace crest::cli {

void add_all_commands(Application& application) {
  add_run_command(application);
  add_chat_command(application);
  add_tokenize_command(application);
  add_logits_command(application);
  add_inspect_command(application);
  add_convert_command(application);
  add_quantize_command(application);
  add_imatrix_command(application);
  add_perplexity_command(application);
  add_bench_command(application);
  add_make_model_command(application);
  add_devices_command(application);
  add_version_command(application);
}

}  // namespace crest::cli
