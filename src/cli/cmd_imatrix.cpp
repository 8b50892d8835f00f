#include "cli/app.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "engine/collect_imatrix.h"
#include "engine/evaluate.h"
#include "format/imatrix.h"

namespace crest::cli {
namespace {

struct ImatrixOptions {
  ModelOptions model;
  std::string file, output;
  int64_t rows = 0, row_tokens = 512;
};

Result<int> collect(const ImatrixOptions& o) {
  const InterruptGuard guard;
  CREST_TRY(const std::string text, input_text(std::nullopt, o.file));
  CREST_TRY(const auto engine, load_engine(o.model));
  const std::filesystem::path output(o.output), text_file(o.file);
  CREST_RETURN_IF_ERROR(
      refuse_overwriting(std::span(&output, 1), engine->model().file(), std::span(&text_file, 1)));
  CREST_TRY(const auto ids, engine->tokenizer().encode(text, {.add_special = false}));
  engine::TokenRows rows = engine::split_rows(ids, o.row_tokens);
  if (rows.empty())
    return make_error(ErrorCode::kInvalidArgument, "{}: {} tokens, at least {} are needed", o.file, ids.size(),
                      o.row_tokens);
  if (o.rows > 0 && rows.size() > static_cast<size_t>(o.rows)) rows.resize(static_cast<size_t>(o.rows));
  ProgressBar bar("Evaluating", ProgressBar::Unit::kItems);
  engine::LikelihoodOptions options;
  options.cancel = &InterruptGuard::token();
  options.progress = [&bar](int64_t done, int64_t total) {
    bar.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
  };
  CREST_TRY(format::Imatrix imatrix, engine::collect_imatrix(*engine, rows, options));
  bar.finish();
  imatrix.set_dataset(o.file);
  CREST_RETURN_IF_ERROR(imatrix.write(output, {}));
  print_note(fmt::format("{}: {} weights over {} rows of {} tokens", o.output, imatrix.entries().size(), rows.size(),
                         o.row_tokens));
  return kExitOk;
}

}  // namespace

void add_imatrix_command(Application& application) {
  auto o = std::make_shared<ImatrixOptions>();
  Command command = application.add_command(
      "imatrix", "Measure how much each input of each weight matters, for crest quantize",
      {"crest imatrix -m model-f16.gguf -f calibration.txt -o model.imatrix"}, [o] { return collect(*o); });
  add_model_options(command, o->model);
  command.option("-f,--file", o->file, "FILE", "Calibration text").required();
  command.option("-o,--output", o->output, "OUT", "Importance matrix to write (GGUF)").required();
  command.option("--chunks", o->rows, Range<int64_t>{0, 1 << 30}, "At most so many rows of text; 0: all");
  command.option("--row-tokens", o->row_tokens, Range<int64_t>{2, 1 << 20}, "Tokens of a row");
}

}  // namespace crest::cli
