#include "cli/model_options.h"

#include <sys/resource.h>

#include <algorithm>

#include "cli/signals.h"
#include "cli/terminal.h"

namespace crest::cli {

void add_model_options(Command& command, ModelOptions& o, bool need_model) {
  command.option("-m,--model", o.model, "MODEL", "GGUF file or Hugging Face folder").env("CREST_MODEL");
  if (need_model) command.required();
  command.choice("--device", o.device, {"cpu"}, "Where to run");
  command.option("-t,--threads", o.threads, Range<int64_t>{0, 1024}, "Threads; 0: one per processor")
      .env("CREST_THREADS");
  command.option("-c,--ctx-size", o.context, Range<int64_t>{0, int64_t{1} << 24},
                 "Context in tokens; 0: what the model was trained for, at most 32768");
  command.choice("--kv-type", o.kv_type, {"f32", "f16", "bf16", "q8"}, "How keys and values are stored");
  command.flag("--no-repack", o.no_repack, "Leave the weights in the mapped file instead of repacking them for speed");
  command.flag("--explain", o.explain, "List which kernels ran");
}

Result<std::unique_ptr<engine::Engine>> load_engine(const ModelOptions& o, engine::EngineOptions wanted) {
  CREST_TRY(wanted.kv_type, engine::parse_kv_type(o.kv_type));
  wanted.threads = static_cast<int>(o.threads);
  wanted.context_length = o.context;
  wanted.keep_mapping = o.no_repack;
  ProgressBar bar("Loading", ProgressBar::Unit::kBytes);
  wanted.progress = [&bar](uint64_t done, uint64_t total) {
    bar.update(done, total);
    return !InterruptGuard::interrupted();
  };
  return engine::Engine::load(o.model, wanted);
}

void print_kernel_log(const ops::KernelLog& log) {
  print_stderr(
      "operator                kernel              for         chosen by      calls       ms    GB/s   GOP/s\n");
  for (const auto& [key, entry] : log.entries()) {
    const auto nanoseconds = static_cast<double>(std::max<int64_t>(1, entry.nanoseconds));
    std::string rates;
    if (entry.work.operations > 0) {
      rates = fmt::format(" {:>7.1f} {:>7.1f}", static_cast<double>(entry.work.weight_bytes) / nanoseconds,
                          static_cast<double>(entry.work.operations) / nanoseconds);
    }
    print_stderr(fmt::format("{:<23} {:<19} {:<11} {:<11} {:>8} {:>8.1f}{}\n", key.op, key.kernel, key.detail,
                             ops::name(key.reason), entry.calls, nanoseconds * 1e-6, rates));
  }
}

uint64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace crest::cli
