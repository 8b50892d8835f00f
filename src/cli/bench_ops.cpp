#include "cli/bench_ops.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/app.h"
#include "cli/bench_report.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "core/cpu_features.h"
#include "core/version.h"
#include "ops/cases/op_cases.h"
#include "ops/probe/machine_peaks.h"

namespace crest::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct OpResult {
  const ops::OpCase* op_case = nullptr;
  std::string kernel;
  double seconds = 0;  // median of the repetitions

  double gb_s() const { return static_cast<double>(op_case->bytes) / seconds * 1e-9; }
  double gops() const { return static_cast<double>(op_case->flops) / seconds * 1e-9; }
};

double seconds_of(ops::CaseInstance& instance, ops::Context& context, int calls, Status& status) {
  const auto start = Clock::now();
  for (int i = 0; i < calls && status.ok(); ++i) status = instance.run(context);
  return std::chrono::duration<double>(Clock::now() - start).count() / calls;
}

Result<OpResult> measure(const ops::OpCase& op_case, ops::Context& context, int64_t repetitions) {
  constexpr double kLeastSeconds = 0.02;  // of one repetition, so that the clock and the threads' wake-up do not count
  ops::KernelLog log;
  const auto instance = op_case.make();
  instance->reset();
  Status status;
  context.log = &log;
  seconds_of(*instance, context, 1, status);  // pages, caches and the choice of the kernel
  context.log = nullptr;
  const double once = seconds_of(*instance, context, 1, status);
  const int calls = static_cast<int>(std::clamp(kLeastSeconds / std::max(once, 1e-7), 1.0, 1e5));
  std::vector<double> seconds;
  for (int64_t r = 0; r < repetitions; ++r) seconds.push_back(seconds_of(*instance, context, calls, status));
  CREST_RETURN_IF_ERROR(status);
  std::sort(seconds.begin(), seconds.end());
  OpResult result{.op_case = &op_case, .kernel = "", .seconds = seconds[seconds.size() / 2]};
  for (const auto& [key, entry] : log.entries()) {
    if (key.op == op_case.op) result.kernel = key.kernel;
  }
  return result;
}

void print_table(const std::vector<OpResult>& results, const ops::MachinePeaks& peaks, int threads) {
  write_stdout(fmt::format("{}, {} threads: reads {:.1f} GB/s, {:.0f} GFLOP/s in fp32, {:.0f} GOP/s in int8\n\n",
                           core::cpu_features().model_name, threads, peaks.read_gb_s, peaks.fp32_gflops,
                           peaks.int8_gops));
  write_stdout("| operator | case | kernel | us | GB/s | GOP/s |\n|---|---|---|---:|---:|---:|\n");
  for (const OpResult& r : results) {
    write_stdout(fmt::format("| {} | {} | {} | {:.1f} | {:.1f} | {:.1f} |\n", r.op_case->op, r.op_case->name, r.kernel,
                             r.seconds * 1e6, r.gb_s(), r.gops()));
  }
}

nlohmann::ordered_json fields(const std::vector<OpResult>& results, const ops::MachinePeaks& peaks, int threads) {
  auto rows = nlohmann::ordered_json::array();
  for (const OpResult& r : results) {
    rows.push_back({{"build_commit", kCommit},
                    {"cpu_info", core::cpu_features().model_name},
                    {"n_threads", threads},
                    {"operator", r.op_case->op},
                    {"case", r.op_case->name},
                    {"kernel", r.kernel},
                    {"ns", r.seconds * 1e9},
                    {"gb_s", r.gb_s()},
                    {"gops", r.gops()},
                    {"machine_read_gb_s", peaks.read_gb_s},
                    {"machine_fp32_gflops", peaks.fp32_gflops},
                    {"machine_int8_gops", peaks.int8_gops}});
  }
  return rows;
}

}  // namespace

Result<int> bench_ops(int64_t threads, int64_t repetitions, const std::string& format) {
  const InterruptGuard guard;
  core::ThreadPool pool(static_cast<int>(threads));
  ops::Workspace workspace;
  ops::Context context{pool, workspace};
  CREST_TRY(const ops::MachinePeaks peaks, ops::measure_machine_peaks(pool));
  const auto cases = ops::benchmark_cases();
  std::vector<OpResult> results;
  ProgressBar progress("Operators", ProgressBar::Unit::kItems);
  for (const ops::OpCase& op_case : cases) {
    if (InterruptGuard::interrupted()) return Error{ErrorCode::kCancelled, "interrupted"};
    auto result = measure(op_case, context, repetitions);
    if (!result.ok()) return std::move(result).error().with_context(op_case.op + " " + op_case.name);
    results.push_back(std::move(*result));
    progress.update(results.size(), cases.size());
  }
  progress.finish();
  if (format == "md") {
    print_table(results, peaks, pool.size());
  } else {
    write_rows(fields(results, peaks, pool.size()), format);
  }
  return kExitOk;
}

}  // namespace crest::cli
