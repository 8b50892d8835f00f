#include "cli/app.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "core/thread_pool.h"
#include "format/imatrix.h"
#include "format/quantize.h"

namespace crest::cli {
namespace {

struct QuantizeArguments {
  std::string input, output, type, imatrix;
  int64_t threads = 0;
  bool allow_requantize = false;
};

Result<int> quantize(const QuantizeArguments& a) {
  const InterruptGuard guard;
  if (!format::find_quant_mix(a.type).ok()) return usage_error("{}", format::find_quant_mix(a.type).error().message);
  core::ThreadPool pool(static_cast<int>(a.threads));
  std::optional<format::Imatrix> imatrix;
  format::QuantizeOptions options;
  options.allow_requantize = a.allow_requantize;
  if (!a.imatrix.empty()) {
    CREST_TRY(imatrix, format::Imatrix::read(a.imatrix));
    options.imatrix = &*imatrix;
    options.imatrix_name = a.imatrix;
  }
  ProgressBar bar("Quantising", ProgressBar::Unit::kItems);
  options.progress = [&bar](const format::QuantizeProgress& p) {
    bar.update(p.elements_done, p.elements);
    return !InterruptGuard::interrupted();
  };
  CREST_TRY(const auto report, format::quantize_file(a.input, a.output, a.type, options, pool));
  bar.finish();
  if (report.fallbacks > 0) {
    print_note(fmt::format("{} of {} tensors fell back to another type, because their rows are no multiple of its block", report.fallbacks, report.tensors.size()));
  }
  if (report.no_importance > 0) print_note(fmt::format("{} tensors have no entry in {} and were quantised without", report.no_importance, a.imatrix));
  print_note(fmt::format("{}: {} -> {}, {} of {} tensors changed", a.output, human_bytes(report.input_bytes), human_bytes(report.output_bytes), report.quantised,
                         report.tensors.size()));
  return kExitOk;
}

std::string type_list() {
  std::vector<std::string_view> names;
  for (const auto& mix : format::quant_mixes()) names.push_back(mix.name);
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

void add_quantize_command(Application& application) {
  auto a = std::make_shared<QuantizeArguments>();
  application
      .add_command("quantize", "Rewrite a model with smaller weights. Types: " + type_list(),
                   {"crest quantize model-f16.gguf model-q4_k_m.gguf Q4_K_M", "crest quantize model.gguf small.gguf Q3_K_M --imatrix model.imatrix"}, [a] { return quantize(*a); })
      .positional("input", a->input, "GGUF file or Hugging Face folder")
      .positional("output", a->output, "GGUF file to write")
      .positional("type", a->type, "Type or mix")
      .option("--imatrix", a->imatrix, "FILE", "Importance matrix made by crest imatrix (or llama.cpp's)")
      .flag("--allow-requantize", a->allow_requantize, "Accept an input that is quantised already")
      .option("-t,--threads", a->threads, Range<int64_t>{0, 1024}, "Threads; 0: one per processor");
}

}  // namespace crest::cli
