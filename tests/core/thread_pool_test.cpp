#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <numeric>
#include <vector>

namespace crest::core {
namespace {

TEST(ThreadPool, EveryIndexOnceForAnyCountGrainAndTeam) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 7, 63, 64, 65, 1009}) {
      for (const int64_t grain : {1, 4, 64}) {
        std::vector<int> seen(static_cast<size_t>(count), 0), seen_dynamic(seen);
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          EXPECT_EQ(begin % grain, 0);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        pool.parallel_dynamic(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++seen_dynamic[static_cast<size_t>(i)];
        });
        EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(count), 1));
        EXPECT_EQ(seen_dynamic, seen);
      }
    }
  }
}

TEST(ThreadPool, ManyShortJobsAndNestedOnes) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  for (int i = 0; i < 20000; ++i) pool.run([&](int, int) { total.fetch_add(1, std::memory_order_relaxed); });
  EXPECT_EQ(total.load(), 60000);
  total = 0;
  pool.run([&](int, int) {
    pool.parallel_for(10, 1, [&](int64_t begin, int64_t end) { total += static_cast<int>(end - begin); });
  });
  EXPECT_EQ(total.load(), 30);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(ThreadPool, IdleTeamSleeps) {
  ThreadPool pool(4);
  pool.run([](int, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.05);
}

}  // namespace
}  // namespace crest::core
