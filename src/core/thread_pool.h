#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace crest::core {

/// A fixed team of threads that runs one job at a time. Workers spin for a short while after a job and then sleep, so a
/// decode step pays microseconds per job and an idle program uses no processor time. The caller is thread 0.
/// Results must not depend on the number of threads: split over independent rows, never over a sum.
class ThreadPool {
 public:
  /// threads <= 0: one per processor that this process may run on.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls f(thread, threads) once on each thread of the team; returns when all are done.
  template <typename F>
  void run(F&& f) {
    run_erased([](void* object, int thread,
                  int threads) { (*static_cast<std::remove_reference_t<F>*>(object))(thread, threads); },
               const_cast<void*>(static_cast<const void*>(std::addressof(f))));
  }

  /// Static partition: f(begin, end) on contiguous pieces of [0, count), at most one a thread, each but the last a
  /// multiple of grain.
  template <typename F>
  void parallel_for(int64_t count, int64_t grain, F&& f) {
    if (count <= 0) return;
    const int64_t units = (count + grain - 1) / grain;
    if (units == 1 || size() == 1) {
      f(int64_t{0}, count);
      return;
    }
    run([&](int thread, int threads) {
      const int64_t begin = units * thread / threads * grain;
      const int64_t end = units * (thread + 1) / threads * grain;
      if (begin < end) f(begin, end < count ? end : count);
    });
  }

  /// Dynamic partition: pieces of chunk are handed out in order, for work whose cost varies.
  template <typename F>
  void parallel_dynamic(int64_t count, int64_t chunk, F&& f) {
    if (count <= 0) return;
    if (count <= chunk || size() == 1) {
      for (int64_t begin = 0; begin < count; begin += chunk) f(begin, begin + chunk < count ? begin + chunk : count);
      return;
    }
    std::atomic<int64_t> next{0};
    run([&](int, int) {
      for (int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed); begin < count;
           begin = next.fetch_add(chunk, std::memory_order_relaxed)) {
        f(begin, begin + chunk < count ? begin + chunk : count);
      }
    });
  }

 private:
  using Job = void (*)(void*, int, int);
  void run_erased(Job job, void* object);
  void work(int thread);

  std::vector<std::thread> workers_;
  std::mutex owner_;
  Job job_ = nullptr;
  void* object_ = nullptr;
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<int> running_{0};
  std::atomic<bool> stop_{false};
};

/// Processors that this process may run on (affinity mask and control-group quota respected).
int usable_processors();

}  // namespace crest::core
