#pragma once

namespace crest::cli {

class Application;

/// One function a sub-command, each in its own file.
void add_run_command(Application& application);
void add_chat_command(Application& application);
void add_tokenize_command(Application& application);
void add_logits_command(Application& application);
void add_inspect_command(Application& application);
void add_convert_command(Application& application);
void add_quantize_command(Application& application);
void add_imatrix_command(Application& application);
void add_perplexity_command(Application& application);
void add_bench_command(Application& application);
void add_make_model_command(Application& application);
void add_devices_command(Application& application);
void add_version_command(Application& application);

void add_all_commands(Application& application);

}  // namespace crest::cli
