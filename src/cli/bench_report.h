#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/model_options.h"
#include "ops/probe/machine_peaks.h"

namespace crest::cli {

struct BenchResult {
  int64_t n_prompt = 0, n_gen = 0, n_depth = 0;
  std::vector<double> seconds;    // of each repetition
  ops::KernelWork work = {};  // of the linear layers, in one repetition
};

/// llama-bench's table with the bytes of weights and the operations a second of each phase beside what the machine can do;
/// in JSON and CSV llama-bench's field names, with peak memory and load time beside them.
class BenchReport {
 public:
  BenchReport(const engine::Engine& engine, const ModelOptions& options, std::string format,
              const ops::MachinePeaks& peaks);
  void begin();
  void add(const BenchResult& result);
  void end();

 private:
  nlohmann::ordered_json fields(const BenchResult& result) const;
  const engine::Engine& engine_;
  const ModelOptions& options_;
  std::string format_;
  ops::MachinePeaks peaks_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

/// Objects with the same keys as JSON or, without their arrays, as CSV: what `crest bench -o json|csv` prints.
void write_rows(const nlohmann::ordered_json& rows, const std::string& format);

}  // namespace crest::cli
