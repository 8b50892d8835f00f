#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ops/context.h"
#include "ops/tuning.h"

namespace crest::ops {

enum class Backend : uint8_t { kCpu, kHip, kCuda };
std::string_view name(Backend backend);

/// Priority of the reference of every operator; faster kernels have higher ones.
inline constexpr int kReferencePriority = 0;

/// What a launch may use beside its problem and pointers. workspace has the size that the kernel asked for.
struct Launch {
  core::ThreadPool& pool;
  std::span<std::byte> workspace;
};

/// One way to compute an operator. Constraints live in `supports` and nowhere else.
/// `prepare` may compile, load and plan; `launch` neither allocates nor compiles. Functions that are null are trivial.
/// Traits is what an operator's driver wants to know of its kernels beyond that.
struct NoTraits {};
template <typename Problem, typename Args, typename Traits = NoTraits>
struct Kernel {
  std::string_view name;
  Backend backend = Backend::kCpu;
  std::string_view arch =
      "*";  // processor feature ("avx2", "avx512_vnni"…) or GPU pattern ("gfx9*"); "*" runs anywhere
  int priority = kReferencePriority;
  bool (*supports)(const Problem&) = nullptr;
  int64_t (*workspace)(const Problem&, int threads) = nullptr;  // bytes
  Status (*prepare)(const Problem&) = nullptr;
  Status (*launch)(const Problem&, const Args&, Launch&) = nullptr;
  Traits traits{};
};

/// True when this machine can run kernels of the pattern (CREST_CPU lowers what the processor has).
bool arch_available(Backend backend, std::string_view arch);

struct KernelInfo {
  std::string name;
  Backend backend = Backend::kCpu;
  std::string arch;
  int priority = 0;
  bool available = false;
  uint64_t calls = 0;  // launches in this process
};

/// What all operators have in common: a name and a list of kernels that can be looked at.
class OperatorBase {
 public:
  explicit OperatorBase(std::string_view name) : name_(name) {}
  virtual ~OperatorBase() = default;
  OperatorBase(const OperatorBase&) = delete;
  OperatorBase& operator=(const OperatorBase&) = delete;

  const std::string& name() const { return name_; }
  /// Best first: the order in which they are tried.
  virtual std::vector<KernelInfo> kernels() const = 0;

 protected:
  /// Refuses forced names that no kernel of the operator has, naming those that exist, and kernels that this machine
  /// cannot run.
  Status check_forced(const std::vector<std::string>& forced) const;

 private:
  std::string name_;
};

/// An operator: its kernels, the choice among them and their launch.
template <typename Problem, typename Args, typename Traits = NoTraits>
class Operator final : public OperatorBase {
 public:
  using KernelType = Kernel<Problem, Args, Traits>;
  struct Choice {
    const KernelType* kernel = nullptr;
    std::atomic<uint64_t>* calls = nullptr;
    ChoiceReason reason = ChoiceReason::kReference;
  };

  using KeyOf = TuningKey (*)(const Problem&);

  /// key: what the operator's tuning table is asked for; null when it has none.
  Operator(std::string_view name, std::vector<KernelType> sorted, KeyOf key = nullptr) : OperatorBase(name), key_(key) {
    std::sort(sorted.begin(), sorted.end(), [](const KernelType& a, const KernelType& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.name < b.name;
    });
    for (const auto& kernel : sorted) entries_.emplace_back(kernel);
  }

  /// Order: forced by name, tuning table, highest priority, ties by name, reference. A forced or tuned kernel that does
  /// not support the problem is passed over. The problem must have passed its check.
  Result<Choice> choose(const Problem& problem, const Context& context) const {
    const auto& overrides = context.overrides ? *context.overrides : KernelOverrides::from_environment();
    const auto& forced = overrides.forced(name());
    if (!forced.empty()) {
      CREST_RETURN_IF_ERROR(check_forced(forced));
      if (const Entry* entry = first_usable(forced, problem)) {
        return Choice{&entry->kernel, &entry->calls, ChoiceReason::kForced};
      }
    }
    if (const Entry* entry = tuned(problem, context)) {
      return Choice{&entry->kernel, &entry->calls, ChoiceReason::kTuned};
    }
    for (auto& entry : entries_) {
      if (!usable(entry.kernel, problem)) continue;
      const bool reference = entry.kernel.priority == kReferencePriority;
      return Choice{&entry.kernel, &entry.calls, reference ? ChoiceReason::kReference : ChoiceReason::kPriority};
    }
    return make_error(ErrorCode::kUnsupported, "{}: no kernel supports this problem", name());
  }

  /// Chooses, gives workspace, launches, counts. detail tells problems apart in the log.
  Status run(const Problem& problem, const Args& args, Context& context, std::string_view detail = {}) const {
    CREST_TRY(const Choice choice, choose(problem, context));
    if (choice.kernel->prepare) CREST_RETURN_IF_ERROR(choice.kernel->prepare(problem));
    Workspace::Scope scope(context.workspace);
    const int64_t bytes = choice.kernel->workspace ? choice.kernel->workspace(problem, context.pool.size()) : 0;
    CREST_TRY(std::byte * memory, context.workspace.allocate<std::byte>(bytes));
    Launch launch{context.pool, {memory, static_cast<size_t>(bytes)}};
    const auto start = context.log ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    CREST_RETURN_IF_ERROR(choice.kernel->launch(problem, args, launch));
    choice.calls->fetch_add(1, std::memory_order_relaxed);
    if (context.log) {
      const auto time = std::chrono::steady_clock::now() - start;
      context.log->record(name(), choice.kernel->name, detail, choice.reason,
                          std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    }
    return {};
  }

  std::vector<KernelInfo> kernels() const override {
    std::vector<KernelInfo> list;
    for (const auto& entry : entries_) {
      const auto& kernel = entry.kernel;
      list.push_back({std::string(kernel.name), kernel.backend, std::string(kernel.arch), kernel.priority,
                      arch_available(kernel.backend, kernel.arch), entry.calls.load()});
    }
    return list;
  }

 private:
  struct Entry {
    explicit Entry(const KernelType& k) : kernel(k) {}
    KernelType kernel;
    mutable std::atomic<uint64_t> calls{0};
  };
  static bool usable(const KernelType& kernel, const Problem& problem) {
    return arch_available(kernel.backend, kernel.arch) && (!kernel.supports || kernel.supports(problem));
  }

  const Entry* first_usable(const std::vector<std::string>& names, const Problem& problem) const {
    for (const auto& wanted : names) {
      for (const auto& entry : entries_) {
        if (entry.kernel.name == wanted && usable(entry.kernel, problem)) return &entry;
      }
    }
    return nullptr;
  }
  const Entry* tuned(const Problem& problem, const Context& context) const {
    if (key_ == nullptr) return nullptr;
    const auto& tables = context.tuning ? *context.tuning : TuningTables::from_environment();
    const TuningTable* table = tables.find(name());
    if (table == nullptr) return nullptr;
    return first_usable(table->variants(cpu_arch(), context.pool.size(), key_(problem)), problem);
  }

  std::deque<Entry> entries_;
  KeyOf key_;
};

/// Every operator of the library, by name: for `crest ops`, `--explain`, documentation and tests.
const std::vector<const OperatorBase*>& all_operators();

}  // namespace crest::ops
