#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/app.h"
#include "cli/bench_ops.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"

namespace crest::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchOptions {
  ModelOptions model;
  std::string prompts = "512", generations = "128", depths = "0", format = "md";
  int64_t repetitions = 5;
  bool operators = false;
};

Result<std::vector<int64_t>> parse_list(const char* option, const std::string& text) {
  std::vector<int64_t> values;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t value = -1;
    const auto [stop, code] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (code != std::errc() || stop != text.data() + end || value < 0 || value > (int64_t{1} << 24)) {
      return usage_error("{} is '{}'; allowed: whole numbers from 0 to {}, separated by commas", option, text,
                         int64_t{1} << 24);
    }
    values.push_back(value);
    begin = end + 1;
  }
  return values;
}

/// Fixed pseudo-random ids: what they are does not matter, that they differ does (experts, embedding rows).
std::vector<int32_t> random_ids(int64_t count, int64_t vocab, uint64_t seed) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  uint64_t state = seed * 2 + 1;
  for (auto& id : ids) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    id = static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab));
  }
  return ids;
}

class Bench {
 public:
  /// log: where --explain wants the kernels counted, or null.
  Bench(engine::Engine& engine, const BenchOptions& options, ops::KernelLog* log)
      : engine_(engine), options_(options), log_(log), logits_(static_cast<size_t>(engine.model().vocab_size())) {
    engine_.set_kernel_log(log_);
  }

  /// One line of the table: n_prompt or n_gen tokens behind `depth` others.
  Result<BenchResult> measure(int64_t n_prompt, int64_t n_gen, int64_t depth) {
    BenchResult result{.n_prompt = n_prompt, .n_gen = n_gen, .n_depth = depth, .seconds = {}};
    CREST_RETURN_IF_ERROR(once(std::min<int64_t>(n_prompt, 64), std::min<int64_t>(n_gen, 1), 0));  // warm-up
    for (int64_t r = 0; r < options_.repetitions; ++r) {
      CREST_TRY(const double seconds, once(n_prompt, n_gen, depth, r == 0 ? &result.work : nullptr));
      result.seconds.push_back(seconds);
    }
    return result;
  }

 private:
  /// Seconds; what the linear layers did goes to `work`.
  Result<double> once(int64_t n_prompt, int64_t n_gen, int64_t depth, ops::KernelWork* work = nullptr) {
    CREST_TRY(const auto sequence, engine_.create_sequence());
    CREST_RETURN_IF_ERROR(feed(*sequence, depth, 1));
    ops::KernelLog log;
    if (work != nullptr && log_ == nullptr) engine_.set_kernel_log(&log);
    const auto before = log_ != nullptr ? log_->total_work() : ops::KernelWork{};
    const auto start = Clock::now();
    CREST_RETURN_IF_ERROR(feed(*sequence, n_prompt, 2));
    for (int64_t i = 0; i < n_gen; ++i) CREST_RETURN_IF_ERROR(feed(*sequence, 1, static_cast<uint64_t>(3 + i)));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    engine_.set_kernel_log(log_);
    if (work != nullptr) {
      const auto after = (log_ != nullptr ? *log_ : log).total_work();
      *work = {after.weight_bytes - before.weight_bytes, after.operations - before.operations};
    }
    return seconds;
  }

  Status feed(engine::Sequence& sequence, int64_t count, uint64_t seed) {
    const auto ids = random_ids(count, engine_.model().vocab_size(), seed);
    for (int64_t done = 0; done < count;) {
      if (InterruptGuard::interrupted()) return Error{ErrorCode::kCancelled, "interrupted"};
      const int64_t part = std::min(engine_.options().chunk_size, count - done);
      const engine::StepItem item{
          .sequence = &sequence,
          .tokens = std::span(ids).subspan(static_cast<size_t>(done), static_cast<size_t>(part)),
          .logits = done + part == count ? logits_.data() : nullptr};
      CREST_RETURN_IF_ERROR(engine_.step({&item, 1}));
      done += part;
    }
    return {};
  }

  engine::Engine& engine_;
  const BenchOptions& options_;
  ops::KernelLog* log_;
  std::vector<float> logits_;
};

Result<ops::MachinePeaks> measure_machine(int64_t threads) {
  core::ThreadPool pool(static_cast<int>(threads));
  return ops::measure_machine_peaks(pool);
}

Result<int> bench(const BenchOptions& o) {
  if (o.operators) return bench_ops(o.model.threads, o.repetitions, o.format);
  if (o.model.model.empty()) return usage_error("bench needs a model (-m MODEL) or --ops");
  const InterruptGuard guard;
  CREST_TRY(const auto prompts, parse_list("-p", o.prompts));
  CREST_TRY(const auto generations, parse_list("-n", o.generations));
  CREST_TRY(const auto depths, parse_list("-d", o.depths));
  int64_t longest = 0;
  for (const int64_t d : depths) {
    for (const int64_t n : prompts) longest = std::max(longest, d + n);
    for (const int64_t n : generations) longest = std::max(longest, d + n);
  }
  ModelOptions model = o.model;
  if (model.context == 0) model.context = longest + 1;
  CREST_TRY(const auto peaks, measure_machine(model.threads));
  CREST_TRY(const auto engine, load_engine(model));
  ops::KernelLog log;
  Bench bench(*engine, o, model.explain ? &log : nullptr);
  BenchReport report(*engine, model, o.format, peaks);
  report.begin();
  for (const int64_t depth : depths) {
    for (const bool prompt : {true, false}) {
      for (const int64_t n : prompt ? prompts : generations) {
        if (n == 0) continue;
        CREST_TRY(const BenchResult result, bench.measure(prompt ? n : 0, prompt ? 0 : n, depth));
        report.add(result);
      }
    }
  }
  report.end();
  if (model.explain) print_kernel_log(log);
  return kExitOk;
}

}  // namespace

void add_bench_command(Application& application) {
  auto o = std::make_shared<BenchOptions>();
  Command command = application.add_command(
      "bench", "Measure prompt and generation speed",
      {"crest bench -m model.gguf", "crest bench -m model.gguf -p 512 -n 128 -d 0,4096 -r 5 -o json",
       "crest bench --ops -t 2"},
      [o] { return bench(*o); });
  add_model_options(command, o->model, false);
  command.option("-p,--n-prompt", o->prompts, "N,...", "Prompt lengths (default: 512)");
  command.option("-n,--n-gen", o->generations, "N,...", "Tokens to generate (default: 128)");
  command.option("-d,--n-depth", o->depths, "N,...", "Tokens already in the context (default: 0)");
  command.option("-r,--repetitions", o->repetitions, Range<int64_t>{1, 1000}, "Repetitions");
  command.flag("--ops", o->operators, "Time single operators instead of a model");
  command.choice("-o,--output", o->format, {"md", "csv", "json"}, "Form of the result");
}

}  // namespace crest::cli
