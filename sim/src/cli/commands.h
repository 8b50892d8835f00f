// The sub-commands. Each returns an exit code.
#pragma once

#include "cli/session.h"

namespace crest_sim::cli {

int list_kernels(const ObjectOptions& options);
int run_kernel(const RunOptions& options);
/// Annotated with counts if `options.arguments`, --grid or --kernarg ask for a run.
int disassemble(const RunOptions& options, bool annotate);

}  // namespace crest_sim::cli
