#include "cli/bench_report.h"

#include <cmath>
#include <filesystem>

#include "cli/terminal.h"
#include "core/cpu_features.h"
#include "core/version.h"

namespace crest::cli {
namespace {

struct Spread {
  double mean = 0, deviation = 0;
};

Spread spread(const std::vector<double>& values) {
  Spread s;
  for (const double v : values) s.mean += v / static_cast<double>(values.size());
  for (const double v : values) s.deviation += (v - s.mean) * (v - s.mean);
  s.deviation = values.size() > 1 ? std::sqrt(s.deviation / static_cast<double>(values.size() - 1)) : 0;
  return s;
}

std::vector<double> rates(const BenchResult& r) {
  std::vector<double> list;
  for (const double seconds : r.seconds) list.push_back(static_cast<double>(r.n_prompt + r.n_gen) / seconds);
  return list;
}

std::string test_name(const BenchResult& r) {
  std::string name = r.n_prompt > 0 ? fmt::format("pp{}", r.n_prompt) : fmt::format("tg{}", r.n_gen);
  if (r.n_depth > 0) name += fmt::format(" @ d{}", r.n_depth);
  return name;
}

std::string model_name(const engine::Engine& engine) {
  const std::string& name = engine.model().config().name;
  return name.empty() ? engine.model().file().path().filename().string() : name;
}

}  // namespace

BenchReport::BenchReport(const engine::Engine& engine, const ModelOptions& options, std::string format,
                         const ops::MachinePeaks& peaks)
    : engine_(engine), options_(options), format_(std::move(format)), peaks_(peaks) {}

void BenchReport::begin() {
  if (format_ != "md") return;
  const std::string bytes = fmt::format("GB/s of {:.1f}", peaks_.read_gb_s);
  const std::string operations = fmt::format("GOP/s of {:.0f} fp32, {:.0f} int8", peaks_.fp32_gflops, peaks_.int8_gops);
  write_stdout(fmt::format("| {:<30} | {:>10} | {:>10} | {:<7} | {:>7} | {:>15} | {:>16} | {:>13} | {:>32} |\n",
                           "model", "size", "params", "backend", "threads", "test", "t/s", bytes, operations));
  write_stdout(
      fmt::format("| {:-<30} | {:->9}: | {:->9}: | {:-<7} | {:->6}: | {:->14}: | {:->15}: | {:->12}: | {:->31}: |\n",
                  "", "", "", "", "", "", "", "", ""));
  flush_stdout();
}

nlohmann::ordered_json BenchReport::fields(const BenchResult& r) const {
  const auto ts = rates(r);
  std::vector<int64_t> ns;
  for (const double seconds : r.seconds) ns.push_back(std::llround(seconds * 1e9));
  const Spread rate = spread(ts), time = spread(r.seconds);
  return {{"build_commit", kCommit},
          {"cpu_info", core::cpu_features().model_name},
          {"backends", "CPU"},
          {"model_filename", options_.model},
          {"model_type", model_name(engine_)},
          {"model_size", engine_.model().weight_bytes()},
          {"model_n_params", engine_.model().parameters()},
          {"n_threads", engine_.threads()},
          {"n_ubatch", engine_.options().chunk_size},
          {"type_kv", options_.kv_type},
          {"n_prompt", r.n_prompt},
          {"n_gen", r.n_gen},
          {"n_depth", r.n_depth},
          {"avg_ns", std::llround(time.mean * 1e9)},
          {"stddev_ns", std::llround(time.deviation * 1e9)},
          {"avg_ts", rate.mean},
          {"stddev_ts", rate.deviation},
          {"samples_ns", ns},
          {"samples_ts", ts},
          {"weight_gb_s", static_cast<double>(r.work.weight_bytes) / time.mean * 1e-9},
          {"gops", static_cast<double>(r.work.operations) / time.mean * 1e-9},
          {"machine_read_gb_s", peaks_.read_gb_s},
          {"machine_fp32_gflops", peaks_.fp32_gflops},
          {"machine_int8_gops", peaks_.int8_gops},
          {"load_seconds", engine_.load_seconds()},
          {"peak_rss_bytes", peak_memory_bytes()}};
}

void BenchReport::add(const BenchResult& r) {
  if (format_ != "md") {
    rows_.push_back(fields(r));
    return;
  }
  const Spread rate = spread(rates(r));
  const double seconds = spread(r.seconds).mean;
  write_stdout(
      fmt::format("| {:<30} | {:>10} | {:>8.2f} M | {:<7} | {:>7} | {:>15} | {:>16} | {:>13.1f} | {:>32.0f} |\n",
                  model_name(engine_), human_bytes(engine_.model().weight_bytes()),
                  static_cast<double>(engine_.model().parameters()) * 1e-6, "CPU", engine_.threads(), test_name(r),
                  fmt::format("{:.2f} ± {:.2f}", rate.mean, rate.deviation),
                  static_cast<double>(r.work.weight_bytes) / seconds * 1e-9,
                  static_cast<double>(r.work.operations) / seconds * 1e-9));
  flush_stdout();
}

void BenchReport::end() {
  if (format_ != "md") return write_rows(rows_, format_);
  print_note(fmt::format("load {:.2f} s, peak memory {}", engine_.load_seconds(), human_bytes(peak_memory_bytes())));
}

void write_rows(const nlohmann::ordered_json& rows, const std::string& format) {
  if (format == "json") {
    write_stdout(rows.dump(2) + "\n");
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string header, line;
    for (const auto& [key, value] : rows[i].items()) {
      if (value.is_array()) continue;
      header += (header.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + value.dump();
    }
    write_stdout((i == 0 ? header + "\n" : "") + line + "\n");
  }
}

}  // namespace crest::cli
