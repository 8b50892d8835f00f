#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace crest::ops {

/// What a tuning table is asked for. Columns are the operator's own, in the order of its file.
struct TuningKey {
  struct Column {
    std::string_view name;
    int64_t value = 0;
    /// Values to try when no row has `value`, in this order; 0: none.
    std::array<int64_t, 2> rounded{};
  };
  std::string_view dtype;
  std::vector<Column> columns;
};

/// A number of rows M as tables of matrix products have it: up to the next multiple of 16 (32 above 256, 64 above 1024,
/// 128 above 4096), else the next power of two.
TuningKey::Column tuned_rows(std::string_view name, int64_t value);
/// Up to the next power of two.
TuningKey::Column tuned_power(std::string_view name, int64_t value);
/// As it is.
TuningKey::Column tuned_exact(std::string_view name, int64_t value);

/// Measured choices of one operator: CSV with the columns arch, cu, dtype, the key columns, variant, params, us,
/// tflops, gbps, err, source; one row a key. Lines that begin with '#' are comments.
class TuningTable {
 public:
  /// Errors name the file, the line and the field.
  static Result<TuningTable> parse(std::string_view text, std::string_view file);

  /// Kernels that rows name for the key, nearest row first. cu is the number of compute units or threads; rows with cu
  /// 0 hold for any.
  std::vector<std::string> variants(std::string_view arch, int64_t cu, const TuningKey& key) const;
  size_t rows() const { return rows_.size(); }

 private:
  std::vector<std::string> columns_;         // names of the key columns
  std::map<std::string, std::string> rows_;  // joined key → variant
};

/// The tables of all operators.
class TuningTables {
 public:
  void add(std::string_view op, TuningTable table) { tables_.insert_or_assign(std::string(op), std::move(table)); }
  const TuningTable* find(std::string_view op) const;
  /// Reads NAME.csv of every operator that has one in the folder.
  static Result<TuningTables> read(const std::string& folder, const std::vector<std::string>& operators);
  /// Those of the folder CREST_TUNING; none when it is unset. A table that cannot be read is reported once and ignored.
  static const TuningTables& from_environment();

 private:
  std::map<std::string, TuningTable, std::less<>> tables_;
};

/// Name of this machine's processor level in tables: "avx512_vnni", "avx512", "avx_vnni", "avx2" or "generic".
std::string_view cpu_arch();

}  // namespace crest::ops
