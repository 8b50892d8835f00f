#pragma once

#include <atomic>

namespace crest::engine {

/// Asks a running evaluation to stop. Set from any thread or from a signal handler; looked at between chunks of a
/// prompt and before every token.
class CancelToken {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  void reset() { cancelled_.store(false, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
};

inline bool is_cancelled(const CancelToken* token) { return token != nullptr && token->cancelled(); }

}  // namespace crest::engine
