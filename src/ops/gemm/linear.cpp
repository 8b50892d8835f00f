#include "ops/gemm/linear.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>

#include "ops/checks.h"
#include "ops/gemm/cpu_linear.h"
#include "ops/gemm/internal.h"
#include "ops/quant/rotation.h"

namespace crest::ops {
namespace {

constexpr auto kOp = "linear";
// Pieces a thread when the work is large enough to balance it while it runs.
constexpr int64_t kPiecesPerThread = 8;
// Up to this many tokens a call is bound by the bytes of the weights: an equal, fixed share for each thread is best.
constexpr int64_t kStaticTokens = 8;

using LinearOperator = Operator<LinearProblem, LinearArgs, LinearTraits>;

/// A form of the input that one or several targets read.
struct Prepared {
  const Rotation* rotation = nullptr;
  ActivationFormat format = ActivationFormat::kF32;
  Activations activations;
};

/// What was chosen for a target, for the log.
struct Planned {
  LinearOperator::Choice choice;
  tensor::DType dtype = tensor::DType::kF32;
  int64_t cost = 0;
  KernelWork work;
};

class LinearCall {
 public:
  LinearCall(const LinearInput& input, const ExpertGroups* groups, std::span<const LinearTarget> targets,
             Context& context)
      : input_(input), groups_(groups), targets_(targets), context_(context) {}

  Status run() {
    CREST_RETURN_IF_ERROR(check_arguments());
    if (input_.tokens == 0 || targets_.empty()) return {};
    Workspace::Scope scope(context_.workspace);
    CREST_RETURN_IF_ERROR(plan());
    const auto start = std::chrono::steady_clock::now();
    CREST_RETURN_IF_ERROR(execute());
    const auto time = std::chrono::steady_clock::now() - start;
    record(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    return {};
  }

 private:
  int64_t stride() const { return input_.stride ? input_.stride : input_.in_features; }
  int64_t x_rows() const { return input_.x_rows ? input_.x_rows : input_.tokens; }
  int64_t experts() const { return groups_ ? groups_->experts : 1; }

  Status check_arguments() const;
  Status check_target(const LinearTarget& target) const;
  Status plan();
  Status add_segments(const LinearTarget& target);
  Result<const Activations*> prepare(const Rotation* rotation, ActivationFormat format);
  Result<Activations> rows_f32(const Rotation* rotation);
  Status execute();
  void record(int64_t nanoseconds) const;

  const LinearInput& input_;
  const ExpertGroups* groups_;
  std::span<const LinearTarget> targets_;
  Context& context_;

  const int32_t* rows_ = nullptr;  // activation row of each token, after gathering
  Planned* planned_ = nullptr;     // one a target
  int64_t planned_count_ = 0;
  Prepared* prepared_ = nullptr;
  int64_t prepared_count_ = 0;
  LinearSegment* segments_ = nullptr;
  int64_t segment_count_ = 0;
  int64_t total_cost_ = 0;
  int64_t scratch_bytes_ = 0;  // of one thread
};

Status LinearCall::check_arguments() const {
  CREST_RETURN_IF_ERROR(check_range(kOp, "tokens", input_.tokens, 0, kMaxExtent));
  CREST_RETURN_IF_ERROR(check_range(kOp, "in_features", input_.in_features, 1, kMaxExtent));
  if (input_.tokens == 0) return {};
  CREST_RETURN_IF_ERROR(check_view(kOp, "x", HeadsView{input_.x, input_.stride, 0}, x_rows(), 1, input_.in_features));
  if (input_.rows == nullptr) CREST_RETURN_IF_ERROR(check_range(kOp, "rows of x", x_rows(), input_.tokens, kMaxExtent));
  for (int64_t i = 0; input_.rows != nullptr && i < input_.tokens; ++i) {
    CREST_RETURN_IF_ERROR(check_range(kOp, "row index", input_.rows[i], 0, x_rows() - 1));
  }
  if (groups_ != nullptr) {
    CREST_RETURN_IF_ERROR(check_range(kOp, "experts", groups_->experts, 1, 1 << 20));
    CREST_RETURN_IF_ERROR(check_cu_seqlens(kOp, "offsets", groups_->offsets, groups_->experts, input_.tokens));
  }
  for (const auto& target : targets_) CREST_RETURN_IF_ERROR(check_target(target));
  return {};
}

Status LinearCall::check_target(const LinearTarget& target) const {
  CREST_RETURN_IF_ERROR(check_pointers(kOp, 1, {{"weight", target.weight}}));
  const Weight& w = *target.weight;
  CREST_RETURN_IF_ERROR(check_pointers(kOp, 1, {{"weight data", w.data}, {"out", target.out}}));
  CREST_RETURN_IF_ERROR(check_range(kOp, "columns of the weight", w.cols, input_.in_features, input_.in_features));
  CREST_RETURN_IF_ERROR(check_range(kOp, "experts of the weight", w.experts, experts(), experts()));
  if (target.bias != nullptr && groups_ != nullptr) {
    return make_error(ErrorCode::kUnsupported, "{}: a bias of experts is not supported", kOp);
  }
  return check_view(kOp, "out", HeadsView{target.out, target.out_stride, 0}, input_.tokens, 1, w.rows);
}

/// The fp32 rows that kernels or the quantiser read: x itself where possible, gathered or rotated otherwise.
Result<Activations> LinearCall::rows_f32(const Rotation* rotation) {
  const bool gather = rows_ != input_.rows;
  const int64_t count = gather ? input_.tokens : x_rows();
  const int64_t cols = input_.in_features;
  const float* source = input_.x;
  int64_t source_stride = stride();
  if (gather) {
    CREST_TRY(float* copy, context_.workspace.allocate<float>(count * cols));
    for (int64_t t = 0; t < count; ++t) {
      std::copy_n(input_.x + input_.rows[t] * stride(), cols, copy + t * cols);
    }
    source = copy;
    source_stride = cols;
  }
  if (rotation != nullptr) {
    CREST_TRY(float* rotated, context_.workspace.allocate<float>(count * cols));
    CREST_RETURN_IF_ERROR(rotate({.tokens = count, .cols = cols, .rounds = rotation->rounds},
                                 {.x = source, .x_stride = source_stride, .rotation = rotation, .out = rotated},
                                 context_));
    source = rotated;
    source_stride = cols;
  }
  return Activations{ActivationFormat::kF32, count, cols, reinterpret_cast<const std::byte*>(source),
                     source_stride * static_cast<int64_t>(sizeof(float))};
}

Result<const Activations*> LinearCall::prepare(const Rotation* rotation, ActivationFormat format) {
  for (int64_t i = 0; i < prepared_count_; ++i) {
    if (prepared_[i].rotation == rotation && prepared_[i].format == format) return &prepared_[i].activations;
  }
  Prepared& entry = prepared_[prepared_count_++];
  entry.rotation = rotation;
  entry.format = format;
  CREST_TRY(entry.activations, rows_f32(rotation));
  if (format == ActivationFormat::kQ8) {
    CREST_TRY(entry.activations, quantize_activations(entry.activations, context_));
  }
  return &entry.activations;
}

Status LinearCall::add_segments(const LinearTarget& target) {
  const Weight& w = *target.weight;
  const LinearProblem problem{.tokens = (input_.tokens + experts() - 1) / experts(),
                              .rows = w.rows,
                              .cols = w.cols,
                              .dtype = w.dtype,
                              .layout = w.layout,
                              .experts = w.experts};
  CREST_TRY(const auto choice, linear_operator().choose(problem, context_));
  if (choice.kernel->prepare) CREST_RETURN_IF_ERROR(choice.kernel->prepare(problem));
  CREST_TRY(const Activations* activations, prepare(w.rotation.get(), choice.kernel->traits.activations));
  const int64_t bytes = choice.kernel->workspace ? choice.kernel->workspace(problem, 1) : 0;
  scratch_bytes_ = std::max(scratch_bytes_, (bytes + 63) / 64 * 64);

  const int64_t cost_before = total_cost_;
  KernelWork work;
  const int64_t grain = choice.kernel->traits.row_grain;
  const int64_t out_stride = target.out_stride ? target.out_stride : w.rows;
  for (int64_t e = 0; e < experts(); ++e) {
    const int64_t begin = groups_ ? groups_->offsets[e] : 0;
    const int64_t count = (groups_ ? groups_->offsets[e + 1] : input_.tokens) - begin;
    if (count == 0) continue;
    LinearSegment& segment = segments_[segment_count_++];
    segment.kernel = choice.kernel;
    segment.problem = problem;
    segment.args = {.x = activations,
                    .x_rows = rows_ ? rows_ + begin : nullptr,
                    .first_x_row = rows_ ? 0 : begin,
                    .tokens = count,
                    .weight = target.weight,
                    .expert = e,
                    .bias = target.bias,
                    .out = target.out + begin * out_stride,
                    .out_stride = out_stride,
                    .accumulate = target.accumulate};
    segment.units = (w.rows + grain - 1) / grain;
    // Reading a row costs about as much as eight tokens' products with it.
    segment.unit_cost = std::max<int64_t>(1, grain * w.cols / 32 * (count + 8));
    segment.cost_begin = total_cost_;
    total_cost_ += segment.units * segment.unit_cost;
    work.weight_bytes += w.rows * w.row_bytes;
    work.operations += 2 * w.rows * w.cols * count;
  }
  planned_[planned_count_++] = {choice, w.dtype, total_cost_ - cost_before, work};
  return {};
}

/// The targets of a call run together: each is given its share of the time by cost.
void LinearCall::record(int64_t nanoseconds) const {
  for (int64_t i = 0; i < planned_count_; ++i) {
    const auto& [choice, dtype, cost, work] = planned_[i];
    choice.calls->fetch_add(1, std::memory_order_relaxed);
    if (context_.log == nullptr) continue;
    const double share = static_cast<double>(cost) / static_cast<double>(std::max<int64_t>(1, total_cost_));
    context_.log->record(kOp, choice.kernel->name, tensor::name(dtype), choice.reason,
                         static_cast<int64_t>(static_cast<double>(nanoseconds) * share), work);
  }
}

Status LinearCall::plan() {
  const auto target_count = static_cast<int64_t>(targets_.size());
  CREST_TRY(planned_, context_.workspace.allocate<Planned>(target_count));
  CREST_TRY(prepared_, context_.workspace.allocate<Prepared>(target_count));
  CREST_TRY(segments_, context_.workspace.allocate<LinearSegment>(target_count * experts()));
  std::uninitialized_value_construct_n(planned_, target_count);
  std::uninitialized_value_construct_n(prepared_, target_count);
  std::uninitialized_value_construct_n(segments_, target_count * experts());
  // Fewer tokens than rows: only those that are wanted are converted.
  rows_ = input_.rows != nullptr && input_.tokens < x_rows() ? nullptr : input_.rows;
  for (const auto& target : targets_) CREST_RETURN_IF_ERROR(add_segments(target));
  return {};
}

Status LinearCall::execute() {
  const int64_t threads = context_.pool.size();
  CREST_TRY(std::byte * scratch, context_.workspace.allocate<std::byte>(scratch_bytes_ * threads));
  const std::span<const LinearSegment> segments(segments_, static_cast<size_t>(segment_count_));
  const bool fixed = input_.tokens <= kStaticTokens * experts();
  const int64_t pieces = fixed ? threads : threads * kPiecesPerThread;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  Status failure;
  context_.pool.run([&](int thread, int team) {
    Launch launch{context_.pool, {scratch + thread * scratch_bytes_, static_cast<size_t>(scratch_bytes_)}};
    const auto piece = [&](int64_t i) {
      auto status = run_cost_range(segments, total_cost_ / pieces * i + total_cost_ % pieces * i / pieces,
                                   total_cost_ / pieces * (i + 1) + total_cost_ % pieces * (i + 1) / pieces, launch);
      if (!status.ok() && !failed.exchange(true)) failure = std::move(status);
    };
    if (fixed && team == threads) {
      piece(thread);
    } else {
      for (int64_t i = next++; i < pieces; i = next++) piece(i);
    }
  });
  return failure;
}

}  // namespace

Status run_cost_range(std::span<const LinearSegment> segments, int64_t begin, int64_t end, Launch& launch) {
  for (const auto& segment : segments) {
    if (segment.cost_begin >= end) break;
    // A unit belongs to the range that holds the cost of its first row.
    const auto first_unit = [&](int64_t cost) {
      const int64_t offset = std::max<int64_t>(0, cost - segment.cost_begin);
      return std::min(segment.units, (offset + segment.unit_cost - 1) / segment.unit_cost);
    };
    const int64_t first = first_unit(begin);
    const int64_t last = first_unit(end);
    if (first >= last) continue;
    LinearArgs args = segment.args;
    const int64_t grain = segment.kernel->traits.row_grain;
    args.row_begin = first * grain;
    args.row_end = std::min(last * grain, segment.problem.rows);
    CREST_RETURN_IF_ERROR(segment.kernel->launch(segment.problem, args, launch));
  }
  return {};
}

const LinearOperator& linear_operator() {
  static const LinearOperator op(
      "linear",
      [] {
        std::vector<LinearKernel> kernels = {linear_reference()};
        for (const LinearTable* table :
             {&kLinearAvx2, &kLinearAvxVnni, &kLinearAvx512, &kLinearAvx512Vnni, &kLinearAmx}) {
          kernels.insert(kernels.end(), table->begin(), table->end());
        }
        return kernels;
      }(),
      [](const LinearProblem& p) {
        return TuningKey{tensor::name(p.dtype),
                         {tuned_rows("m", p.tokens), tuned_exact("n", p.rows), tuned_exact("k", p.cols)}};
      });
  return op;
}

Status linear(const LinearInput& input, std::span<const LinearTarget> targets, Context& context) {
  return LinearCall(input, nullptr, targets, context).run();
}

Status linear(const LinearInput& input, const LinearTarget& target, Context& context) {
  return linear(input, {&target, 1}, context);
}

Status grouped_linear(const LinearInput& input, const ExpertGroups& groups, std::span<const LinearTarget> targets,
                      Context& context) {
  return LinearCall(input, &groups, targets, context).run();
}

}  // namespace crest::ops
