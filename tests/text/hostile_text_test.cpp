// Text that makes naive tokenisers quadratic. The limits are far above what linear code takes and far below quadratic.
#include <ctime>

#include "text/normalize.h"
#include "text/unicode.h"
#include "tokenizer_testing.h"

namespace crest::text {
namespace {

constexpr double kSeconds = 60;  // of processor time, for one text

double seconds_since(std::clock_t start) { return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC; }

void expect_round_trip_in_time(const Tokenizer& tokenizer, const std::string& text, std::string_view what) {
  const std::clock_t start = std::clock();
  const Ids ids = ids_of(tokenizer, text, {.parse_special = true});
  EXPECT_TRUE(text_of(tokenizer, ids) == normalize_nfc(text)) << what;
  EXPECT_LT(seconds_since(start), kSeconds) << what;
}

std::string repeated(std::string_view text, size_t bytes) {
  std::string result;
  while (result.size() < bytes) result += text;
  return result;
}

TEST(HostileText, ByteLevel) {
  const Tokenizer tokenizer = load_tokenizer("tiny.json");
  constexpr size_t kSize = 1u << 20;
  expect_round_trip_in_time(tokenizer, std::string(4 * kSize, 'a'), "one letter");
  expect_round_trip_in_time(tokenizer, repeated("ab", kSize), "two letters");
  expect_round_trip_in_time(tokenizer, std::string(kSize, ' '), "spaces");
  expect_round_trip_in_time(tokenizer, std::string(kSize, ' ') + "x", "spaces and a letter");
  expect_round_trip_in_time(tokenizer, repeated(" \n", kSize), "spaces and line ends");
  expect_round_trip_in_time(tokenizer, std::string(kSize, '\n'), "line ends");
  expect_round_trip_in_time(tokenizer, std::string(kSize, '\0'), "NUL");
  expect_round_trip_in_time(tokenizer, std::string(kSize, '.'), "dots");
  expect_round_trip_in_time(tokenizer, std::string(kSize, '7'), "digits");
  expect_round_trip_in_time(tokenizer, std::string(kSize, '<'), "starts of added tokens");
  expect_round_trip_in_time(tokenizer, repeated("<|im_end|", kSize), "nearly control tokens");
  expect_round_trip_in_time(tokenizer, repeated("\xCC\x81", 2'000'000), "a million combining marks");
  expect_round_trip_in_time(tokenizer, repeated("\xE6\xAD", kSize), "halves of characters");
  expect_round_trip_in_time(tokenizer, repeated("'", kSize), "apostrophes");
}

TEST(HostileText, EveryCodePoint) {
  const Tokenizer tokenizer = load_tokenizer("tiny.json");
  std::string all, spaced;
  for (char32_t code = 0; code <= kLastCodePoint; ++code) {
    append_character(all, code);  // surrogates give bytes that are not UTF-8
    append_character(spaced, code);
    spaced += ' ';
  }
  expect_round_trip_in_time(tokenizer, all, "every code point");
  expect_round_trip_in_time(tokenizer, spaced, "every code point between spaces");
}

TEST(HostileText, SentencePiece) {
  VocabData vocab = small_sentencepiece({{"▁", -9}, {"a", -9}, {"aa", -1}, {"aaaa", -2}, {"▁a", -3}, {"▁▁", -4}});
  for (const bool prefix : {false, true}) {
    set_space_prefix(vocab, prefix);
    const Tokenizer tokenizer = Tokenizer::create(vocab).value();
    constexpr size_t kSize = 1u << 20;
    expect_round_trip_in_time(tokenizer, std::string(kSize, 'a'), "one letter");
    expect_round_trip_in_time(tokenizer, std::string(kSize, ' '), "spaces");
    expect_round_trip_in_time(tokenizer, std::string(kSize, '\0'), "NUL");
    expect_round_trip_in_time(tokenizer, repeated("🦙", kSize), "characters without a token");
    expect_round_trip_in_time(tokenizer, std::string(kSize, '\x80'), "stray bytes");
  }
}

// 900 nested added tokens: each position of the text starts a long search.
TEST(HostileText, NestedAddedTokens) {
  auto json = small_json();
  for (int i = 2; i < 900; ++i)
    json["added_tokens"].push_back(
        {{"id", 10 + i}, {"content", std::string(static_cast<size_t>(i), 'x')}, {"special", true}});
  const Tokenizer tokenizer = tokenizer_of(json.dump()).value();
  const std::clock_t start = std::clock();
  EXPECT_EQ(ids_of(tokenizer, std::string(200'000, 'x')), Ids{});
  EXPECT_EQ(ids_of(tokenizer, std::string(899 * 3, 'x'), {.parse_special = true}), (Ids{909, 909, 909}));
  EXPECT_LT(seconds_since(start), kSeconds);
}

}  // namespace
}  // namespace crest::text
