#include "engine/snapshots.h"

#include <gtest/gtest.h>

#include "engine/page_allocator.h"

namespace crest::engine {
namespace {

Snapshot at(int64_t position, size_t floats = 10) {
  return {position, std::vector<float>(floats, float(position)), {}};
}

std::vector<int64_t> positions(const Snapshots& snapshots) {
  std::vector<int64_t> result;
  for (const auto& snapshot : snapshots.all()) result.push_back(snapshot.position);
  return result;
}

TEST(Snapshots, NewestUpToAPosition) {
  Snapshots snapshots(1000);
  for (const int64_t position : {64, 30, 128}) snapshots.add(at(position));
  EXPECT_EQ(snapshots.newest_up_to(29), nullptr);
  EXPECT_EQ(snapshots.newest_up_to(30)->position, 30);
  EXPECT_EQ(snapshots.newest_up_to(127)->position, 64);
  EXPECT_EQ(snapshots.newest_up_to(9999)->position, 128);
  EXPECT_TRUE(snapshots.has(64));
  EXPECT_FALSE(snapshots.has(65));
  snapshots.drop_after(64);
  EXPECT_EQ(positions(snapshots), (std::vector<int64_t>{30, 64}));
  EXPECT_EQ(snapshots.bytes(), 80u);
}

TEST(Snapshots, SamePositionIsReplaced) {
  Snapshots snapshots(1000);
  snapshots.add(at(5, 10));
  snapshots.add(at(5, 20));
  EXPECT_EQ(snapshots.bytes(), 80u);
  EXPECT_EQ(snapshots.all().size(), 1u);
}

TEST(Snapshots, BudgetDropsTheSmallestGapAndKeepsTheNewest) {
  Snapshots snapshots(3 * 40);
  for (const int64_t position : {100, 110, 300, 301}) snapshots.add(at(position));
  EXPECT_EQ(positions(snapshots), (std::vector<int64_t>{100, 300, 301}));
  snapshots.add(at(1000, 31));  // alone above the budget
  EXPECT_EQ(positions(snapshots), (std::vector<int64_t>{100, 300, 301}));
  snapshots.add(at(500, 30));
  EXPECT_EQ(positions(snapshots), (std::vector<int64_t>{500}));
}

TEST(Snapshots, CommonPrefix) {
  const std::vector<int32_t> a{1, 2, 3}, b{1, 2, 4, 5}, empty;
  EXPECT_EQ(common_prefix(a, b), 2);
  EXPECT_EQ(common_prefix(a, a), 3);
  EXPECT_EQ(common_prefix(a, empty), 0);
}

TEST(Snapshots, ChunkEnds) {
  const std::vector<int64_t> none, marks{3, 70, 99};
  EXPECT_EQ(chunk_ends(0, 150, 64, none), (std::vector<int64_t>{64, 128, 150}));
  EXPECT_EQ(chunk_ends(100, 150, 64, none), (std::vector<int64_t>{128, 150}));
  EXPECT_EQ(chunk_ends(64, 65, 64, none), (std::vector<int64_t>{65}));
  EXPECT_EQ(chunk_ends(10, 120, 64, marks), (std::vector<int64_t>{64, 70, 99, 120}));
  EXPECT_TRUE(chunk_ends(7, 7, 64, marks).empty());
  EXPECT_EQ(chunk_ends(0, 3, 1, none), (std::vector<int64_t>{1, 2, 3}));
}

TEST(PageAllocator, LowestFirstAndExhaustion) {
  PageAllocator pages(3);
  EXPECT_EQ(pages.allocate(), 0);
  EXPECT_EQ(pages.allocate(), 1);
  EXPECT_EQ(pages.allocate(), 2);
  EXPECT_EQ(pages.allocate(), std::nullopt);
  pages.release(2);
  pages.release(0);
  EXPECT_EQ(pages.available(), 2);
  EXPECT_EQ(pages.allocate(), 0);
  EXPECT_EQ(pages.allocate(), 2);
}

}  // namespace
}  // namespace crest::engine
