#include "engine/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace crest::engine {
namespace {

struct Outcome {
  std::string shown;
  bool stopped = false;
};

Outcome feed(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  auto filter = StopStrings::create(std::move(stops));
  EXPECT_TRUE(filter.ok());
  Outcome outcome;
  for (const auto& piece : pieces) {
    outcome.stopped = filter->push(piece, outcome.shown);
    if (outcome.stopped) return outcome;
  }
  filter->finish(outcome.shown);
  return outcome;
}

// Kind of fault: the stop string is looked for in each piece alone, or part of it is shown before it is complete.
TEST(StopStrings, SpreadOverPieces) {
  const auto outcome = feed({"\nUser:"}, {"Hello", "\n", "Us", "er", ":", " more"});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.shown, "Hello");
}

TEST(StopStrings, HeldTextComesBackWhenItWasNoStop) {
  const auto outcome = feed({"END"}, {"E", "N", "EN", "D"});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.shown, "EN");
  const auto open = feed({"END"}, {"the E", "N"});
  EXPECT_FALSE(open.stopped);
  EXPECT_EQ(open.shown, "the EN");
}

TEST(StopStrings, FirstOccurrenceOfAnyWins) {
  EXPECT_EQ(feed({"world", "lo"}, {"hello world"}).shown, "hel");
  EXPECT_EQ(feed({"lo wor", "o"}, {"hello world"}).shown, "hel");
}

// Kind of fault: after a partial match only the new piece is searched (aab in aaab).
TEST(StopStrings, OverlappingBeginnings) {
  const auto outcome = feed({"aab"}, {"a", "a", "a", "b", "c"});
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.shown, "a");
}

TEST(StopStrings, CharactersStayWhole) {
  const auto outcome = feed({"é!"}, {"caf", "é", "?"});
  EXPECT_EQ(outcome.shown, "café?");
}

TEST(StopStrings, EqualsSearchInWholeTextForAnyCut) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 24; ++i) text += "ab"[random() % 2];
    std::vector<std::string> stops;
    for (int i = 0; i < 3; ++i) {
      std::string stop;
      const int length = 2 + static_cast<int>(random() % 5);
      for (int k = 0; k < length; ++k) stop += "ab"[random() % 2];
      stops.push_back(stop);
    }
    size_t first = std::string::npos;
    for (const auto& stop : stops) first = std::min(first, text.find(stop));
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random() % 4;
      pieces.push_back(text.substr(at, length));
      at += length;
    }
    const auto outcome = feed(stops, pieces);
    // A longer string that begins earlier may complete after a shorter one: the stream ends with whichever completes
    // first.
    if (!outcome.stopped) {
      EXPECT_EQ(first, std::string::npos);
      EXPECT_EQ(outcome.shown, text);
    } else {
      EXPECT_NE(first, std::string::npos);
      EXPECT_EQ(outcome.shown, text.substr(0, outcome.shown.size()));
      for (const auto& stop : stops) EXPECT_EQ(outcome.shown.find(stop), std::string::npos);
    }
  }
}

TEST(StopStrings, RefusesBadLists) {
  EXPECT_FALSE(StopStrings::create({""}).ok());
  EXPECT_FALSE(StopStrings::create({std::string(StopStrings::kMaxBytes + 1, 'x')}).ok());
  EXPECT_FALSE(StopStrings::create(std::vector<std::string>(StopStrings::kMaxStrings + 1, "x")).ok());
  // The middle of a character would cut text inside of it.
  const auto result = StopStrings::create({"ok", "\xa9"});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("string 1"), std::string::npos);
}

}  // namespace
}  // namespace crest::engine
