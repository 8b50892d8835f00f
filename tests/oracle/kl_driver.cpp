// kl_driver BASE IDS.npy ROWS MODEL[@KV_TYPE]...: how far each model's predictions are from the base's. IDS is [rows,
// tokens]; each row is read from an empty state, keys and values in f32 unless said otherwise. One line a model: NLL, mean
// KL(base || model), share of positions with the same most likely token. Used by quality_table.py.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "tensor/npy.h"

namespace {

using crest::Result;
using crest::Status;
using crest::engine::Engine;

struct Sums {
  double nll = 0, kl = 0, same = 0;
};

// Logits to log-probabilities, in place; the most likely entry.
size_t normalise(float* logits, size_t count) {
  const size_t top = static_cast<size_t>(std::max_element(logits, logits + count) - logits);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(double{logits[i]} - logits[top]);
  const double log_sum = std::log(sum) + logits[top];
  for (size_t i = 0; i < count; ++i) logits[i] = static_cast<float>(logits[i] - log_sum);
  return top;
}

class Table {
 public:
  static Result<Table> load(int count, char** paths) {
    Table table;
    for (int i = 0; i < count; ++i) {
      const std::string_view argument = paths[i];
      const size_t at = argument.rfind('@');
      CREST_TRY(const auto kv_type, crest::engine::parse_kv_type(at == argument.npos ? "f32" : argument.substr(at + 1)));
      CREST_TRY(auto engine, Engine::load(std::string(argument.substr(0, at)), {.context_length = 1024, .kv_type = kv_type}));
      table.engines_.push_back(std::move(engine));
    }
    table.sums_.resize(table.engines_.size());
    table.vocab_ = static_cast<size_t>(table.engines_[0]->model().vocab_size());
    return table;
  }

  Status add_row(std::span<const int32_t> ids) {
    std::vector<float> base;
    std::vector<size_t> base_top(ids.size());
    for (size_t m = 0; m < engines_.size(); ++m) {
      CREST_TRY(auto evaluation, crest::engine::evaluate(*engines_[m], ids, {}));
      for (size_t t = 0; t < ids.size(); ++t) {
        float* log_p = evaluation.logits.data() + t * vocab_;
        const size_t top = normalise(log_p, vocab_);
        if (m == 0) base_top[t] = top;
        if (t + 1 < ids.size()) sums_[m].nll -= log_p[ids[t + 1]];
        sums_[m].same += top == base_top[t];
        for (size_t i = 0; m > 0 && i < vocab_; ++i) {
          const double p = base[t * vocab_ + i];
          sums_[m].kl += std::exp(p) * (p - log_p[i]);
        }
      }
      if (m == 0) base = std::move(evaluation.logits);
    }
    positions_ += static_cast<double>(ids.size());
    scored_ += static_cast<double>(ids.size() - 1);
    return {};
  }

  void print(char** paths) const {
    for (size_t m = 0; m < engines_.size(); ++m) {
      std::printf("%s %.6f %.6f %.5f\n", paths[m], sums_[m].nll / scored_, sums_[m].kl / positions_,
                  sums_[m].same / positions_);
    }
  }

 private:
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<Sums> sums_;
  size_t vocab_ = 0;
  double positions_ = 0, scored_ = 0;
};

Status run(int argc, char** argv) {
  std::vector<char*> paths(argv + 4, argv + argc);
  paths.insert(paths.begin(), argv[1]);
  CREST_TRY(Table table, Table::load(static_cast<int>(paths.size()), paths.data()));
  CREST_TRY(const auto array, crest::tensor::read_npy(argv[2]));
  CREST_TRY(const auto wide, array.to_i64());
  if (array.shape.size() != 2) return crest::make_error(crest::ErrorCode::kInvalidArgument, "{}: not 2-D", argv[2]);
  const std::vector<int32_t> ids(wide.begin(), wide.end());
  const auto tokens = static_cast<size_t>(array.shape[1]);
  const auto rows = std::min(static_cast<size_t>(array.shape[0]), static_cast<size_t>(std::atoi(argv[3])));
  for (size_t r = 0; r < rows; ++r) CREST_RETURN_IF_ERROR(table.add_row({ids.data() + r * tokens, tokens}));
  table.print(paths.data());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: kl_driver BASE IDS.npy ROWS MODEL...\n"), 2;
  const Status status = run(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return status.ok() ? 0 : 1;
}
