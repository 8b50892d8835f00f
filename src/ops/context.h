#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/thread_pool.h"

namespace crest::ops {

/// Scratch memory of one forward: a stack of 64-byte aligned, uninitialised pieces that is reused from step to step, so
/// that a running engine does not allocate. Pointers stay valid until the Scope that was open at their allocation ends.
/// Used by one thread at a time (workers receive their share from the thread that launches them).
class Workspace {
 public:
  static constexpr int64_t kAlignment = 64;

  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// Gives back on destruction what was allocated since its construction. Scopes nest.
  class Scope {
   public:
    explicit Scope(Workspace& workspace)
        : workspace_(workspace), block_(workspace.block_), used_(workspace.used_), in_use_(workspace.in_use_) {}
    ~Scope() { workspace_.release(block_, used_, in_use_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    size_t block_;
    int64_t used_;
    int64_t in_use_;
  };

  /// count objects of T; kOutOfMemory when the system refuses. count 0 gives a valid pointer to nothing.
  template <typename T>
  Result<T*> allocate(int64_t count) {
    CREST_TRY(std::byte * bytes, allocate_bytes(count, sizeof(T)));
    return reinterpret_cast<T*>(bytes);
  }

  /// Fills every piece handed out with 0xff (NaN as fp32): for tests that look for reads of unwritten memory.
  void set_poison(bool poison) { poison_ = poison; }
  /// The largest number of bytes that were in use at one time.
  int64_t peak_bytes() const { return peak_; }

 private:
  struct Free {
    void operator()(std::byte* pointer) const;
  };
  struct Block {
    std::unique_ptr<std::byte, Free> data;
    int64_t size = 0;
  };
  Result<std::byte*> allocate_bytes(int64_t count, int64_t element_bytes);
  Status add_block(int64_t bytes);
  void release(size_t block, int64_t used, int64_t in_use);

  std::vector<Block> blocks_;
  size_t block_ = 0;    // the block that is being filled
  int64_t used_ = 0;    // bytes used of it
  int64_t in_use_ = 0;  // bytes used of all blocks
  int64_t peak_ = 0;
  bool poison_ = false;
};

/// Why a kernel was taken.
enum class ChoiceReason : uint8_t { kForced, kTuned, kPriority, kReference };
std::string_view name(ChoiceReason reason);

/// What linear layers do; other operators leave it zero.
struct KernelWork {
  int64_t weight_bytes = 0;  // read at least once
  int64_t operations = 0;    // multiplications and additions
};

/// Which kernels ran, how often and for how long: what `--explain` prints. One log belongs to one context.
class KernelLog {
 public:
  struct Key {
    std::string op;
    std::string kernel;
    std::string detail;  // what distinguishes problems of the operator, for example the weight's type
    ChoiceReason reason = ChoiceReason::kReference;
    auto operator<=>(const Key&) const = default;
  };
  struct Entry {
    int64_t calls = 0;
    int64_t nanoseconds = 0;  // wall time of the launches
    KernelWork work;
  };

  void record(std::string_view op, std::string_view kernel, std::string_view detail, ChoiceReason reason,
              int64_t nanoseconds, const KernelWork& work = {});
  const std::map<Key, Entry>& entries() const { return entries_; }
  KernelWork total_work() const;
  void clear() { entries_.clear(); }

 private:
  std::map<Key, Entry> entries_;
};

/// Kernels that the user forces: operator name → kernel names in order of preference.
class KernelOverrides {
 public:
  void force(std::string_view op, std::vector<std::string> kernels);
  /// Names forced for the operator; empty when the choice is free.
  const std::vector<std::string>& forced(std::string_view op) const;

  /// CREST_KERNEL_<OP>=name[,name…] of every operator, read once (OP in upper case: CREST_KERNEL_LINEAR).
  static const KernelOverrides& from_environment();

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> forced_;
};

class TuningTables;

/// What every operator runs with. Not shared between threads: one context for one forward at a time.
struct Context {
  core::ThreadPool& pool;
  Workspace& workspace;
  KernelLog* log = nullptr;
  const KernelOverrides* overrides = nullptr;  // null: those of the environment
  const TuningTables* tuning = nullptr;        // null: those of the environment
};

}  // namespace crest::ops
