#include "engine/collect_imatrix.h"

#include <algorithm>

namespace crest::engine {
namespace {

constexpr std::string_view kFused = ".ffn_gate_up_exps.";

class Collector final : public model::ActivationObserver {
 public:
  void linear_input(std::string_view name, int64_t experts, int64_t expert, const float* x, int64_t rows,
                    int64_t cols) override {
    const size_t fused = name.find(kFused);
    if (fused == std::string_view::npos) return add(name, experts, expert, x, rows, cols);
    for (const std::string_view part : {".ffn_gate_exps.", ".ffn_up_exps."}) {
      add(fmt::format("{}{}{}", name.substr(0, fused), part, name.substr(fused + kFused.size())), experts, expert, x,
          rows, cols);
    }
  }
  Result<format::Imatrix> take() && {
    if (!status_.ok()) return std::move(status_).error();
    return std::move(imatrix_);
  }
  format::Imatrix& imatrix() { return imatrix_; }

 private:
  void add(std::string_view name, int64_t experts, int64_t expert, const float* x, int64_t rows, int64_t cols) {
    if (status_.ok()) status_ = imatrix_.add(name, cols, experts, expert, x, rows);
  }
  format::Imatrix imatrix_;
  Status status_;
};

/// Lets the observer go, however the function ends.
struct Observation {
  Observation(Engine& e, model::ActivationObserver& observer) : engine(e) { engine.set_observer(&observer); }
  ~Observation() { engine.set_observer(nullptr); }
  Engine& engine;
};

Status evaluate_row(Engine& engine, std::span<const int32_t> row, const CancelToken* cancel) {
  const bool mtp = engine.options().mtp_cache && engine.model().has_mtp();
  const int64_t chunk = engine.options().chunk_size;
  const auto size = std::ssize(row);
  CREST_TRY(const auto sequence, engine.create_sequence());
  std::vector<float> hidden(mtp ? row.size() * static_cast<size_t>(engine.model().config().hidden) : 0);
  for (int64_t begin = 0; begin < size; begin += chunk) {
    if (is_cancelled(cancel)) return make_error(ErrorCode::kCancelled, "cancelled");
    const auto count = static_cast<size_t>(std::min(chunk, size - begin));
    float* const rows = mtp ? hidden.data() + begin * engine.model().config().hidden : nullptr;
    CREST_RETURN_IF_ERROR(
        engine.step(*sequence, row.subspan(static_cast<size_t>(begin), count), {}, {.final_hidden = rows}));
  }
  if (!mtp || size < 2) return {};
  return engine.step_mtp(*sequence, 0, row.subspan(1), hidden.data(), nullptr);
}

}  // namespace

Result<format::Imatrix> collect_imatrix(Engine& engine, const TokenRows& rows, const LikelihoodOptions& options) {
  if (rows.empty()) return make_error(ErrorCode::kInvalidArgument, "the text is too short: not one row of tokens");
  Collector collector;
  const Observation observation(engine, collector);
  for (size_t r = 0; r < rows.size(); ++r) {
    CREST_RETURN_IF_ERROR(evaluate_row(engine, rows[r], options.cancel));
    collector.imatrix().add_chunks(1, std::ssize(rows[r]));
    if (options.progress) options.progress(static_cast<int64_t>(r) + 1, std::ssize(rows));
  }
  return std::move(collector).take();
}

}  // namespace crest::engine
