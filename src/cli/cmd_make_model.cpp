#include "cli/app.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "core/thread_pool.h"
#include "format/make_model.h"

namespace crest::cli {
namespace {

struct MakeModelArguments {
  std::string output, tokenizer;
  format::MakeModelOptions options;
  std::optional<int64_t> layers, experts, vocab;
  int64_t seed = 0, threads = 0;
};

Result<int> make(MakeModelArguments& a) {
  const InterruptGuard guard;
  if (const auto size = format::find_model_size(a.options.like); !size.ok()) return usage_error("{}", size.error().message);
  core::ThreadPool pool(static_cast<int>(a.threads));
  ProgressBar bar("Writing", ProgressBar::Unit::kBytes);
  a.options.layers = a.layers;
  a.options.experts = a.experts;
  a.options.vocab = a.vocab;
  a.options.tokenizer = a.tokenizer;
  a.options.seed = static_cast<uint64_t>(a.seed);
  a.options.progress = [&bar](uint64_t done, uint64_t total) {
    bar.update(done, total);
    return !InterruptGuard::interrupted();
  };
  CREST_TRY(const auto report, format::make_model(a.output, a.options, pool));
  bar.finish();
  print_note(fmt::format("{}: {:.3f} billion random parameters, {} tensors, {}", a.output, static_cast<double>(report.parameters) * 1e-9, report.tensors,
                         human_bytes(report.bytes)));
  return kExitOk;
}

std::string size_list() {
  std::vector<std::string_view> names;
  for (const auto& size : format::model_sizes()) names.push_back(size.name);
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

void add_make_model_command(Application& application) {
  auto a = std::make_shared<MakeModelArguments>();
  constexpr Range<int64_t> kCount{1, 1 << 24};
  application
      .add_command("make-model", "Write random weights in the shapes of a public model, for measuring speed and memory. Sizes: " + size_list(),
                   {"crest make-model --like qwen3-0.6b --type q4_k_m -o random.gguf", "crest make-model --like qwen3.6-35b-a3b --layers 4 --experts 32 --type q8_0 -o moe.gguf"},
                   [a] { return make(*a); })
      .option("--like", a->options.like, "SIZE", "Public model whose shapes to take")
      .required()
      .option("-o,--output", a->output, "OUT.gguf", "File to write")
      .required()
      .option("--type", a->options.type, "TYPE", "A type of crest quantize (default: q4_k_m)")
      .option("--layers", a->layers, kCount, "Number of layers in place of the model's")
      .option("--experts", a->experts, kCount, "Number of experts in place of the model's")
      .option("--vocab", a->vocab, kCount, "Size of the vocabulary in place of the model's")
      .flag("--mtp", a->options.mtp, "Add the head for multi-token prediction (Qwen 3.5 and 3.6)")
      .option("--tokenizer", a->tokenizer, "FILE", "Copy the tokenizer of this tokenizer.json, GGUF file or folder")
      .option("--seed", a->seed, Range<int64_t>{0, INT64_MAX}, "Seed of the weights")
      .option("-t,--threads", a->threads, Range<int64_t>{0, 1024}, "Threads; 0: one per processor");
}

}  // namespace crest::cli
