#include "engine/evaluate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace crest::engine {
namespace {

// Logits of one chunk: enough rows for the matrix products, few enough that 250,000 entries a row stay in memory.
constexpr int64_t kChunkLogits = int64_t{1} << 25;

int64_t evaluation_chunk(const Engine& engine) {
  const int64_t rows = std::max<int64_t>(1, kChunkLogits / engine.model().vocab_size());
  return std::min(rows, engine.options().chunk_size);
}

Status cancelled() { return make_error(ErrorCode::kCancelled, "cancelled"); }

/// Runs the MTP head behind the main model: row t needs token t + 1, so the last row of a chunk waits for the next one.
class MtpRunner {
 public:
  MtpRunner(Engine& engine, const Sequence& sequence, std::span<const int32_t> ids, float* logits)
      : engine_(engine), sequence_(sequence), ids_(ids), logits_(logits) {}

  /// hidden: rows [begin, end) after the final norm.
  Status add(const float* hidden, int64_t begin, int64_t end) {
    const int64_t width = engine_.model().config().hidden;
    pending_.insert(pending_.end(), hidden, hidden + (end - begin) * width);
    const int64_t rows = std::min<int64_t>(end, std::ssize(ids_) - 1) - done_;
    if (rows <= 0) return {};
    const auto next = ids_.subspan(static_cast<size_t>(done_) + 1, static_cast<size_t>(rows));
    // The row of the chunk's last token has its successor already, as ids are known; its page exists as well.
    CREST_RETURN_IF_ERROR(
        engine_.step_mtp(sequence_, done_, next, pending_.data(), logits_ + done_ * engine_.model().vocab_size()));
    done_ += rows;
    pending_.clear();
    return {};
  }

 private:
  Engine& engine_;
  const Sequence& sequence_;
  std::span<const int32_t> ids_;
  float* logits_;
  std::vector<float> pending_;
  int64_t done_ = 0;
};

double nll_of(std::span<const float> logits, int32_t token) {
  return ops::log_sum_exp(logits) - logits[static_cast<size_t>(token)];
}

/// Sums of the scored positions.
class Scores {
 public:
  void add(double nll) {
    sum_ += nll;
    squares_ += nll * nll;
    row_sum_ += nll;
    ++count_;
    ++row_count_;
  }
  void end_row() {
    rows_.push_back(row_count_ > 0 ? row_sum_ / static_cast<double>(row_count_) : 0);
    row_sum_ = 0;
    row_count_ = 0;
  }
  Likelihood result() const {
    Likelihood result{.tokens = count_, .nll = 0, .nll_deviation = 0, .row_nll = rows_};
    if (count_ == 0) return result;
    result.nll = sum_ / static_cast<double>(count_);
    result.nll_deviation = std::sqrt(std::max(0.0, squares_ / static_cast<double>(count_) - result.nll * result.nll));
    return result;
  }

 private:
  double sum_ = 0, squares_ = 0, row_sum_ = 0;
  int64_t count_ = 0, row_count_ = 0;
  std::vector<double> rows_;
};

/// Calls on_chunk(begin, end) after the logits of rows [begin, end) of a row are in place, for all engines.
template <typename F>
Status walk_row(std::span<Engine* const> engines, std::span<std::vector<float>> logits, std::span<const int32_t> row,
                const CancelToken* cancel, F&& on_chunk) {
  std::vector<std::unique_ptr<Sequence>> sequences;
  int64_t chunk = std::numeric_limits<int64_t>::max();
  for (Engine* engine : engines) {
    CREST_TRY(auto sequence, engine->create_sequence());
    sequences.push_back(std::move(sequence));
    chunk = std::min(chunk, evaluation_chunk(*engine));
  }
  const auto size = std::ssize(row);
  for (int64_t begin = 0; begin < size; begin += chunk) {
    if (is_cancelled(cancel)) return cancelled();
    const int64_t count = std::min(chunk, size - begin);
    for (size_t e = 0; e < engines.size(); ++e) {
      logits[e].resize(static_cast<size_t>(count * engines[e]->model().vocab_size()));
      const StepItem item{.sequence = sequences[e].get(),
                          .tokens = row.subspan(static_cast<size_t>(begin), static_cast<size_t>(count)),
                          .all_logits = true,
                          .logits = logits[e].data()};
      CREST_RETURN_IF_ERROR(engines[e]->step({&item, 1}));
    }
    on_chunk(begin, begin + count);
  }
  return {};
}

/// KL(p || q) of two rows of logits, in double.
double divergence(std::span<const float> p, std::span<const float> q) {
  const double p_sum = ops::log_sum_exp(p);
  const double q_sum = ops::log_sum_exp(q);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double log_p = p[i] - p_sum;
    sum += std::exp(log_p) * (log_p - (q[i] - q_sum));
  }
  return std::max(sum, 0.0);
}

std::ptrdiff_t best(std::span<const float> logits) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin();
}

Status check_rows(const TokenRows& rows) {
  const bool any = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.size() > 1; });
  if (!any) return make_error(ErrorCode::kInvalidArgument, "the text is too short: no row of at least 2 tokens");
  return {};
}

}  // namespace

Result<Evaluation> evaluate(Engine& engine, std::span<const int32_t> ids, const EvaluateOptions& options) {
  const model::Model& model = engine.model();
  if (ids.empty()) return make_error(ErrorCode::kInvalidArgument, "no token ids were given");
  if (options.mtp && !model.has_mtp()) {
    return make_error(ErrorCode::kUnsupported, "{}: the model has no multi-token prediction head",
                      model.file().path().string());
  }
  CREST_TRY(auto sequence, engine.create_sequence());
  const auto total = std::ssize(ids);
  const int64_t chunk = options.chunk_size > 0 ? options.chunk_size : engine.options().chunk_size;
  const int64_t vocab = model.vocab_size();
  const int64_t width = model.config().hidden;
  Evaluation result{.tokens = total,
                    .logits = std::vector<float>(static_cast<size_t>(total * vocab)),
                    .hidden = {},
                    .mtp_logits = {}};
  if (options.hidden)
    result.hidden.resize((model.config().layers.size() + 1) * ids.size() * static_cast<size_t>(width));
  if (options.mtp) result.mtp_logits.resize(static_cast<size_t>((total - 1) * vocab));
  MtpRunner mtp(engine, *sequence, ids, result.mtp_logits.data());
  std::vector<float> final_hidden(static_cast<size_t>(options.mtp ? std::min(chunk, total) * width : 0));
  for (int64_t begin = 0; begin < total; begin += chunk) {
    if (is_cancelled(options.cancel)) return cancelled().error();
    const int64_t end = std::min(begin + chunk, total);
    std::vector<int32_t> rows(static_cast<size_t>(end - begin));
    std::iota(rows.begin(), rows.end(), 0);
    CREST_RETURN_IF_ERROR(engine.step(*sequence, ids.subspan(static_cast<size_t>(begin), rows.size()), rows,
                                      {.logits = result.logits.data() + begin * vocab,
                                       .final_hidden = options.mtp ? final_hidden.data() : nullptr,
                                       .hidden = options.hidden ? result.hidden.data() + begin * width : nullptr,
                                       .hidden_stride = total * width}));
    if (options.mtp) CREST_RETURN_IF_ERROR(mtp.add(final_hidden.data(), begin, end));
    if (options.progress) options.progress(end, total);
  }
  return result;
}

double Likelihood::perplexity() const { return std::exp(nll); }

Result<Likelihood> likelihood(Engine& engine, const TokenRows& rows, const LikelihoodOptions& options) {
  CREST_RETURN_IF_ERROR(check_rows(rows));
  Engine* const engines[] = {&engine};
  std::vector<float> logits[1];
  const auto vocab = static_cast<size_t>(engine.model().vocab_size());
  Scores scores;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto& row = rows[r];
    CREST_RETURN_IF_ERROR(walk_row(engines, logits, row, options.cancel, [&](int64_t begin, int64_t end) {
      for (int64_t t = std::max(begin, options.skip - 1); t < std::min(end, std::ssize(row) - 1); ++t) {
        const std::span<const float> at(logits[0].data() + static_cast<size_t>(t - begin) * vocab, vocab);
        scores.add(nll_of(at, row[static_cast<size_t>(t) + 1]));
      }
    }));
    scores.end_row();
    if (options.progress) options.progress(static_cast<int64_t>(r) + 1, std::ssize(rows));
  }
  return scores.result();
}

Result<Comparison> compare(Engine& first, Engine& second, const TokenRows& rows, const LikelihoodOptions& options) {
  CREST_RETURN_IF_ERROR(check_rows(rows));
  const auto vocab = static_cast<size_t>(first.model().vocab_size());
  if (second.model().vocab_size() != first.model().vocab_size()) {
    return make_error(ErrorCode::kInvalidArgument, "the models cannot be compared: one has {} tokens, the other {}",
                      vocab, second.model().vocab_size());
  }
  Engine* const engines[] = {&first, &second};
  std::vector<float> logits[2];
  Scores scores[2];
  std::vector<double> divergences;
  int64_t agreements = 0;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto& row = rows[r];
    CREST_RETURN_IF_ERROR(walk_row(engines, logits, row, options.cancel, [&](int64_t begin, int64_t end) {
      for (int64_t t = std::max(begin, options.skip - 1); t < std::min(end, std::ssize(row) - 1); ++t) {
        const size_t offset = static_cast<size_t>(t - begin) * vocab;
        const std::span<const float> p(logits[0].data() + offset, vocab), q(logits[1].data() + offset, vocab);
        scores[0].add(nll_of(p, row[static_cast<size_t>(t) + 1]));
        scores[1].add(nll_of(q, row[static_cast<size_t>(t) + 1]));
        divergences.push_back(divergence(p, q));
        agreements += best(p) == best(q);
      }
    }));
    for (auto& score : scores) score.end_row();
    if (options.progress) options.progress(static_cast<int64_t>(r) + 1, std::ssize(rows));
  }
  Comparison result{.first = scores[0].result(), .second = scores[1].result()};
  const auto count = static_cast<double>(divergences.size());
  result.mean_kl = std::accumulate(divergences.begin(), divergences.end(), 0.0) / count;
  std::sort(divergences.begin(), divergences.end());
  result.median_kl = divergences[divergences.size() / 2];
  result.max_kl = divergences.back();
  result.top1_agreement = static_cast<double>(agreements) / count;
  return result;
}

TokenRows split_rows(std::span<const int32_t> ids, int64_t length) {
  TokenRows rows;
  const auto size = static_cast<size_t>(length);
  for (size_t at = 0; size > 0 && at + size <= ids.size(); at += size) {
    const auto row = ids.subspan(at, size);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

}  // namespace crest::engine
