#include "core/thread_pool.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

namespace crest::core {
namespace {

// Long enough to bridge the serial parts of a decode step, short enough that an idle program is seen to be idle.
constexpr auto kSpin = std::chrono::microseconds(200);
constexpr int kSpinsPerClockRead = 64;
thread_local bool inside_job = false;

template <typename Done>
bool spin_until(Done done) {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kSpinsPerClockRead; ++i) {
      if (done()) return true;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() - start < kSpin);
  return done();
}

}  // namespace

int usable_processors() {
  cpu_set_t set;
  int count = 1;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    count = std::min(count, std::max(1, static_cast<int>(std::ceil(std::atof(quota.c_str()) / period))));
  }
  return std::max(count, 1);
}

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = usable_processors();
  for (int thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { work(thread); });
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  generation_.fetch_add(1);
  generation_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run_erased(Job job, void* object) {
  // A job that starts a job runs it alone: the team is busy with the outer one.
  if (inside_job || workers_.empty()) return job(object, 0, 1);
  std::lock_guard lock(owner_);
  job_ = job;
  object_ = object;
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  inside_job = true;
  job(object, 0, size());
  inside_job = false;
  const auto done = [this] { return running_.load(std::memory_order_acquire) == 0; };
  while (!spin_until(done)) {
    const int left = running_.load(std::memory_order_acquire);
    if (left != 0) running_.wait(left);
  }
}

void ThreadPool::work(int thread) {
  inside_job = true;
  uint32_t seen = 0;
  while (true) {
    const auto changed = [&] { return generation_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(changed)) generation_.wait(seen);
    if (!changed()) continue;
    ++seen;
    if (stop_) return;
    job_(object_, thread, size());
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

}  // namespace crest::core
