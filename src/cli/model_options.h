#pragma once

#include <memory>
#include <string>

#include "cli/app.h"
#include "engine/engine.h"

namespace crest::cli {

/// The options of every command that runs a model.
struct ModelOptions {
  std::string model;
  std::string device = "cpu";
  std::string kv_type = "f16";
  int64_t threads = 0;
  int64_t context = 0;
  bool no_repack = false;
  bool explain = false;
};

/// need_model: the command line without -m is an error.
void add_model_options(Command& command, ModelOptions& options, bool need_model = true);

/// Loads with a progress bar; Ctrl-C stops it.
Result<std::unique_ptr<engine::Engine>> load_engine(const ModelOptions& options, engine::EngineOptions wanted = {});

/// What --explain prints on standard error: which kernels ran.
void print_kernel_log(const ops::KernelLog& log);

uint64_t peak_memory_bytes();

}  // namespace crest::cli
