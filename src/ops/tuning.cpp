#include "ops/tuning.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>
#include <sstream>

#include "core/cpu_features.h"
#include "core/env.h"
#include "core/log.h"
#include "ops/registry.h"

namespace crest::ops {
namespace {

constexpr std::string_view kBefore[] = {"arch", "cu", "dtype"};
constexpr std::string_view kAfter[] = {"variant", "params", "us", "tflops", "gbps", "err", "source"};

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::string join(std::string_view arch, int64_t cu, std::string_view dtype, const std::vector<int64_t>& values) {
  std::string key = fmt::format("{},{},{}", arch, cu, dtype);
  for (const int64_t value : values) key += fmt::format(",{}", value);
  return key;
}

Result<int64_t> parse_count(std::string_view text, std::string_view file, int64_t line, std::string_view field) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return make_error(ErrorCode::kInvalidFile, "{}:{}: {} is '{}', allowed: a number from 0 on", file, line, field, text);
}

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }
int64_t next_power(int64_t value) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1))));
}

}  // namespace

TuningKey::Column tuned_rows(std::string_view name, int64_t value) {
  const int64_t step = value <= 256 ? 16 : value <= 1024 ? 32 : value <= 4096 ? 64 : 128;
  return {name, value, {round_up(value, step), next_power(value)}};
}
TuningKey::Column tuned_power(std::string_view name, int64_t value) { return {name, value, {next_power(value), 0}}; }
TuningKey::Column tuned_exact(std::string_view name, int64_t value) { return {name, value, {0, 0}}; }

Result<TuningTable> TuningTable::parse(std::string_view text, std::string_view file) {
  TuningTable table;
  int64_t number = 0;
  bool header = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    const auto fields = split(line);
    if (header) {
      header = false;
      const size_t fixed = std::size(kBefore) + std::size(kAfter);
      const bool known = fields.size() >= fixed && std::equal(std::begin(kBefore), std::end(kBefore), fields.begin()) &&
                         std::equal(std::begin(kAfter), std::end(kAfter), fields.end() - std::size(kAfter));
      if (!known) {
        return make_error(ErrorCode::kInvalidFile,
                          "{}:{}: columns are '{}', allowed: arch,cu,dtype,(key columns),variant,params,us,tflops,gbps,"
                          "err,source",
                          file, number, line);
      }
      table.columns_.assign(fields.begin() + std::size(kBefore), fields.end() - std::size(kAfter));
      continue;
    }
    const size_t expected = std::size(kBefore) + table.columns_.size() + std::size(kAfter);
    if (fields.size() != expected) {
      return make_error(ErrorCode::kInvalidFile, "{}:{}: {} fields, allowed: {}", file, number, fields.size(),
                        expected);
    }
    CREST_TRY(const int64_t cu, parse_count(fields[1], file, number, "cu"));
    std::vector<int64_t> values;
    for (size_t i = 0; i < table.columns_.size(); ++i) {
      CREST_TRY(const int64_t value, parse_count(fields[std::size(kBefore) + i], file, number, table.columns_[i]));
      values.push_back(value);
    }
    const auto variant = fields[std::size(kBefore) + table.columns_.size()];
    if (variant.empty()) return make_error(ErrorCode::kInvalidFile, "{}:{}: variant is empty", file, number);
    if (!table.rows_.emplace(join(fields[0], cu, fields[2], values), variant).second) {
      return make_error(ErrorCode::kInvalidFile, "{}:{}: a second row for the same key", file, number);
    }
  }
  if (header) return make_error(ErrorCode::kInvalidFile, "{}: no line with column names", file);
  return table;
}

std::vector<std::string> TuningTable::variants(std::string_view arch, int64_t cu, const TuningKey& key) const {
  std::vector<std::string> found;
  const bool same = std::equal(columns_.begin(), columns_.end(), key.columns.begin(), key.columns.end(),
                               [](const auto& name, const auto& column) { return name == column.name; });
  if (!same) return found;
  // Level 0 is the key itself, levels 1 and 2 its rounded forms.
  for (size_t level = 0; level < 3; ++level) {
    std::vector<int64_t> values;
    for (const auto& column : key.columns) {
      const int64_t rounded = level == 0 ? 0 : column.rounded[level - 1];
      values.push_back(rounded != 0 ? rounded : column.value);
    }
    for (const int64_t units : {cu, int64_t{0}}) {
      const auto row = rows_.find(join(arch, units, key.dtype, values));
      if (row == rows_.end() || std::find(found.begin(), found.end(), row->second) != found.end()) continue;
      found.push_back(row->second);
    }
  }
  return found;
}

const TuningTable* TuningTables::find(std::string_view op) const {
  const auto table = tables_.find(op);
  return table == tables_.end() ? nullptr : &table->second;
}

Result<TuningTables> TuningTables::read(const std::string& folder, const std::vector<std::string>& operators) {
  TuningTables tables;
  for (const auto& op : operators) {
    const std::string path = folder + "/" + op + ".csv";
    std::ifstream file(path, std::ios::binary);
    if (!file) continue;
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) return make_error(ErrorCode::kIo, "{}: cannot be read", path);
    CREST_TRY(auto table, TuningTable::parse(text.str(), path));
    tables.add(op, std::move(table));
  }
  return tables;
}

const TuningTables& TuningTables::from_environment() {
  static const TuningTables tables = []() -> TuningTables {
    const auto folder = core::env("CREST_TUNING");
    if (!folder) return {};
    std::vector<std::string> names;
    for (const OperatorBase* op : all_operators()) names.push_back(op->name());
    auto read_tables = read(*folder, names);
    if (read_tables.ok()) return std::move(*read_tables);
    log_warning("tuning tables are ignored: {}", read_tables.error().message);
    return {};
  }();
  return tables;
}

std::string_view cpu_arch() {
  const auto& cpu = core::cpu_features();
  if (cpu.avx512_vnni) return "avx512_vnni";
  if (cpu.avx512) return "avx512";
  if (cpu.avx_vnni) return "avx_vnni";
  return cpu.avx2 ? "avx2" : "generic";
}

}  // namespace crest::ops
