#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"

namespace crest::cli {

/// `crest bench --ops`: every case of the benchmark table with the kernel that is chosen for it, and how much of the
/// machine's bandwidth and arithmetic it reaches. format: md, csv or json.
Result<int> bench_ops(int64_t threads, int64_t repetitions, const std::string& format);

}  // namespace crest::cli
