#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "engine/evaluate.h"

namespace crest::cli {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string file, compare;
  int64_t row_tokens = 512, skip = 0, rows = 0;
  bool json = false, special = false;
};

nlohmann::ordered_json likelihood_json(const engine::Likelihood& l) {
  return {{"tokens", l.tokens}, {"nll", l.nll}, {"nll_stddev", l.nll_deviation}, {"perplexity", l.perplexity()}, {"row_nll", l.row_nll}};
}

void print_likelihood(const std::string& model, const engine::Likelihood& l) {
  write_stdout(fmt::format("{}: NLL {:.5f} +- {:.5f}, perplexity {:.4f}, {} tokens\n", model, l.nll, l.nll_deviation / std::sqrt(std::max<double>(1, static_cast<double>(l.tokens))),
                           l.perplexity(), l.tokens));
}

Result<engine::TokenRows> text_rows(const engine::Engine& engine, const PerplexityOptions& o) {
  CREST_TRY(const std::string text, input_text(std::nullopt, o.file));
  CREST_TRY(const auto ids, engine.tokenizer().encode(text, {.parse_special = o.special, .add_special = false}));
  if (ids.size() < 2) return make_error(ErrorCode::kInvalidArgument, "{}: {} tokens, at least 2 are needed", o.file, ids.size());
  engine::TokenRows rows = engine::split_rows(ids, o.row_tokens);
  if (rows.empty()) rows.push_back(ids);
  if (o.rows > 0 && rows.size() > static_cast<size_t>(o.rows)) rows.resize(static_cast<size_t>(o.rows));
  return rows;
}

Result<int> compare_models(const PerplexityOptions& o, engine::Engine& first, const engine::TokenRows& rows, const engine::LikelihoodOptions& options) {
  ModelOptions other = o.model;
  other.model = o.compare;
  CREST_TRY(const auto second, load_engine(other));
  CREST_TRY(const auto c, engine::compare(first, *second, rows, options));
  if (o.json) {
    const nlohmann::ordered_json object = {{"model", likelihood_json(c.first)}, {"compare", likelihood_json(c.second)},      {"mean_kl", c.mean_kl},
                                           {"median_kl", c.median_kl},          {"max_kl", c.max_kl}, {"top1_agreement", c.top1_agreement}};
    write_stdout(object.dump(2) + "\n");
    return kExitOk;
  }
  print_likelihood(o.model.model, c.first);
  print_likelihood(o.compare, c.second);
  write_stdout(fmt::format("KL divergence: mean {:.6f}, median {:.6f}, max {:.6f}; same best token {:.2f} %\n", c.mean_kl, c.median_kl, c.max_kl, 100 * c.top1_agreement));
  return kExitOk;
}

Result<int> perplexity(const PerplexityOptions& o) {
  const InterruptGuard guard;
  CREST_TRY(const auto engine, load_engine(o.model));
  CREST_TRY(const auto rows, text_rows(*engine, o));
  ProgressBar bar("Evaluating", ProgressBar::Unit::kItems);
  engine::LikelihoodOptions options;
  options.skip = o.skip;
  options.cancel = &InterruptGuard::token();
  options.progress = [&bar](int64_t done, int64_t total) { bar.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total)); };
  if (!o.compare.empty()) return compare_models(o, *engine, rows, options);
  CREST_TRY(const auto likelihood, engine::likelihood(*engine, rows, options));
  bar.finish();
  if (o.json) {
    write_stdout(likelihood_json(likelihood).dump(2) + "\n");
  } else {
    print_likelihood(o.model.model, likelihood);
  }
  return kExitOk;
}

}  // namespace

void add_perplexity_command(Application& application) {
  auto o = std::make_shared<PerplexityOptions>();
  Command command = application.add_command("perplexity", "Measure how well a model predicts a text, or how far two models are apart",
                                            {"crest perplexity -m model.gguf -f text.txt", "crest perplexity -m model-f16.gguf --compare model-q4.gguf -f text.txt --json"},
                                            [o] { return perplexity(*o); });
  add_model_options(command, o->model);
  command.option("-f,--file", o->file, "FILE", "Text; - is standard input").required();
  command.option("--compare", o->compare, "MODEL", "Second model: print the divergence of its predictions from the first one's");
  command.option("--row-tokens", o->row_tokens, Range<int64_t>{2, 1 << 20}, "The text is cut into rows of so many tokens, each read from an empty state");
  command.option("--skip", o->skip, Range<int64_t>{0, 1 << 20}, "Tokens at the beginning of each row that are not scored");
  command.option("--rows", o->rows, Range<int64_t>{0, 1 << 30}, "At most so many rows; 0: all");
  command.flag("--special", o->special, "Control tokens spelled in the text are control tokens");
  command.flag("--json", o->json, "Print one JSON object");
}

}  // namespace crest::cli
