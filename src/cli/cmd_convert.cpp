#include "cli/app.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "core/thread_pool.h"
#include "format/convert.h"

namespace crest::cli {
namespace {

struct ConvertArguments {
  std::string folder, output, type = "auto";
  int64_t threads = 0;
};

Result<int> convert(const ConvertArguments& a) {
  const InterruptGuard guard;
  core::ThreadPool pool(static_cast<int>(a.threads));
  ProgressBar bar("Converting", ProgressBar::Unit::kBytes);
  format::ConvertOptions options{.type = a.type, .progress = [&bar](uint64_t done, uint64_t total) {
                                   bar.update(done, total);
                                   return !InterruptGuard::interrupted();
                                 }};
  CREST_TRY(const auto report, format::convert(a.folder, a.output, options, pool));
  bar.finish();
  if (!report.fallbacks.empty()) {
    print_note(fmt::format("{} tensors got another type, because their rows are no multiple of its block", report.fallbacks.size()));
  }
  print_note(fmt::format("{}: {} tensors, {}", a.output, report.tensors, human_bytes(report.bytes)));
  return kExitOk;
}

}  // namespace

void add_convert_command(Application& application) {
  auto a = std::make_shared<ConvertArguments>();
  application
      .add_command("convert", "Turn a Hugging Face folder into a GGUF file",
                   {"crest convert Qwen3-0.6B -o qwen3-0.6b.gguf", "crest convert Qwen3-0.6B -o qwen3-0.6b-q4.gguf --type q4_k_m"}, [a] { return convert(*a); })
      .positional("folder", a->folder, "Hugging Face folder: config.json, tokenizer.json, *.safetensors")
      .option("-o,--output", a->output, "OUT.gguf", "File to write")
      .required()
      .option("--type,--outtype", a->type, "TYPE", "auto (as stored), f32, f16, bf16, or a type of crest quantize (default: auto)")
      .option("-t,--threads", a->threads, Range<int64_t>{0, 1024}, "Threads; 0: one per processor");
}

}  // namespace crest::cli
