#include "text/reasoning_parser.h"

#include <gtest/gtest.h>

#include <random>

namespace crest::text {
namespace {

constexpr int32_t kOpen = 90;
constexpr int32_t kClose = 91;
constexpr int32_t kCall = 86;

struct Parsed {
  std::string reasoning;
  std::string content;
  friend bool operator==(const Parsed&, const Parsed&) = default;
};
void PrintTo(const Parsed& p, std::ostream* out) {
  *out << "{reasoning '" << p.reasoning << "', content '" << p.content << "'}";
}

void add(Parsed& parsed, const ReasoningParser::Delta& delta) {
  parsed.reasoning += delta.reasoning;
  for (const OutputPiece& piece : delta.content) parsed.content += piece.text;
}

Parsed parse(const std::vector<OutputPiece>& pieces, ReasoningStart start, const ReasoningFormat& format = {}) {
  ReasoningParser parser(format, start);
  Parsed parsed;
  for (const OutputPiece& piece : pieces) add(parsed, parser.push(piece));
  add(parsed, parser.finish());
  return parsed;
}

std::vector<OutputPiece> bytes(std::string_view text) {
  std::vector<OutputPiece> pieces;
  for (const char c : text) pieces.push_back({std::string(1, c), -1});
  return pieces;
}

ReasoningFormat with_tokens() { return {{"<think>", kOpen}, {"</think>", kClose}, {"<tool_call>", kCall}}; }

TEST(ReasoningParser, TagSplitOverPieces) {
  EXPECT_EQ(parse({{"Reasoning</thi", -1}, {"nk>\n\nAnswer", -1}}, ReasoningStart::kInside),
            (Parsed{"Reasoning", "Answer"}));
}

TEST(ReasoningParser, NoPieceShowsPartOfATag) {
  ReasoningParser parser({}, ReasoningStart::kInside);
  EXPECT_EQ(parser.push({"a </th", -1}).reasoning, "a");
  EXPECT_EQ(parser.push({"e", -1}).reasoning, " </the");
  EXPECT_EQ(parser.push({" \n", -1}).reasoning, "");
  EXPECT_EQ(parser.push({"</think>", -1}).reasoning, "");
  const auto delta = parser.push({"\n\nx", -1});
  ASSERT_EQ(delta.content.size(), 1u);
  EXPECT_EQ(delta.content[0].text, "x");
}

// A tag that the model quotes as text is not the tag: only the token ends the block.
TEST(ReasoningParser, QuotedTagStaysReasoning) {
  const std::vector<OutputPiece> pieces = {{"strip ", 1},        {"</", 2},      {"think", 3}, {">", 4}, {" first", 5},
                                           {"</think>", kClose}, {"\n\nDone", 6}};
  EXPECT_EQ(parse(pieces, ReasoningStart::kInside, with_tokens()), (Parsed{"strip </think> first", "Done"}));
}

TEST(ReasoningParser, TagTokensMayHaveNoText) {
  const std::vector<OutputPiece> pieces = {{"", kOpen}, {"why", 1}, {"", 2}, {"", kClose}, {"\n\nAnswer", 3}};
  EXPECT_EQ(parse(pieces, ReasoningStart::kInside, with_tokens()), (Parsed{"why", "Answer"}));
  EXPECT_EQ(parse(pieces, ReasoningStart::kContent, with_tokens()), (Parsed{"why", "Answer"}));
}

TEST(ReasoningParser, BlockOpenedByTheModel) {
  EXPECT_EQ(parse(bytes("\n<think>\nwhy\n</think>\n\nAnswer"), ReasoningStart::kContent), (Parsed{"why", "Answer"}));
  EXPECT_EQ(parse(bytes("<thin ice"), ReasoningStart::kContent), (Parsed{"", "<thin ice"}));
  EXPECT_EQ(parse(bytes("Well, <think>no</think>"), ReasoningStart::kContent), (Parsed{"", "Well, <think>no</think>"}));
}

TEST(ReasoningParser, BlockOpenedTwiceIsOpenedOnce) {
  EXPECT_EQ(parse(bytes("<think>\nwhy</think>A"), ReasoningStart::kInside), (Parsed{"why", "A"}));
}

// Thinking switched off: tags are plain content and nothing is lost.
TEST(ReasoningParser, DisabledPassesEverything) {
  EXPECT_EQ(parse(bytes("a</think> b <think>"), ReasoningStart::kDisabled), (Parsed{"", "a</think> b <think>"}));
}

TEST(ReasoningParser, CutInsideTheBlock) {
  EXPECT_EQ(parse(bytes("half a thou </thi"), ReasoningStart::kInside), (Parsed{"half a thou </thi", ""}));
  EXPECT_EQ(parse({}, ReasoningStart::kInside), (Parsed{"", ""}));
}

// A call inside an unfinished block is a call if the block never ends, else a thought about one.
TEST(ReasoningParser, CallInsideTheBlock) {
  const std::string call = "<tool_call>\n<function=f>\n</function>\n</tool_call>";
  EXPECT_EQ(parse(bytes("think " + call), ReasoningStart::kInside), (Parsed{"think", call}));
  EXPECT_EQ(parse(bytes("think " + call + " ok</think>\n\nA"), ReasoningStart::kInside),
            (Parsed{"think " + call + " ok", "A"}));
  ReasoningFormat no_tools;
  no_tools.tool_open = {};
  EXPECT_EQ(parse(bytes("think " + call), ReasoningStart::kInside, no_tools), (Parsed{"think " + call, ""}));
}

TEST(ReasoningParser, ContentKeepsItsTokens) {
  ReasoningParser parser(with_tokens(), ReasoningStart::kInside);
  parser.push({"t", 1});
  parser.push({"</think>", kClose});
  const auto delta = parser.push({"<tool_call>", kCall});
  ASSERT_EQ(delta.content.size(), 1u);
  EXPECT_EQ(delta.content[0], (OutputPiece{"<tool_call>", kCall}));
}

// However the text is cut into pieces, the result is the same and no text is lost.
TEST(ReasoningParser, IndependentOfPieces) {
  const std::string texts[] = {"a b </think>\n\nc <tool_call>x</tool_call>",
                               "<think>\n\n</think>\n\n",
                               "x <tool_call> y </think> z",
                               "   ",
                               "</think>",
                               "<<think>>"};
  std::mt19937 random(7);
  for (const std::string& text : texts) {
    for (const auto start : {ReasoningStart::kInside, ReasoningStart::kContent, ReasoningStart::kDisabled}) {
      const Parsed whole = parse({{text, -1}}, start);
      for (int round = 0; round < 50; ++round) {
        std::vector<OutputPiece> pieces;
        for (size_t at = 0; at < text.size();) {
          const size_t size = std::min<size_t>(random() % 5, text.size() - at);
          pieces.push_back({text.substr(at, size), -1});
          at += size;
        }
        EXPECT_EQ(parse(pieces, start), whole) << text;
      }
    }
  }
}

TEST(ReasoningStart, ReadFromThePrompt) {
  const ReasoningFormat format;
  const auto at = [&](std::vector<Segment> prompt, std::optional<bool> thinking = std::nullopt) {
    return reasoning_start(prompt, format, thinking);
  };
  EXPECT_EQ(at({{"<|im_start|>assistant\n<think>\n", true}}), ReasoningStart::kInside);
  EXPECT_EQ(at({{"<|im_start|>assistant\n<think>\n\n</think>\n\n", true}}), ReasoningStart::kContent);
  EXPECT_EQ(at({{"<|im_start|>assistant\n<think>\n\n</think>\n\n", true}}, false), ReasoningStart::kDisabled);
  EXPECT_EQ(
      at({{"<|im_start|>user\n", true}, {"what is <think>?", false}, {"<|im_end|>\n<|im_start|>assistant\n", true}}),
      ReasoningStart::kContent);
  EXPECT_EQ(at({{"<think>", true}, {"</think>", false}}), ReasoningStart::kInside);
}

// Models can think for ever: after the budget the block is closed from outside.
TEST(ReasoningBudget, ClosesAfterSoManyTokens) {
  ReasoningBudget three(3);
  EXPECT_FALSE(three.must_close(true));
  EXPECT_FALSE(three.must_close(true));
  EXPECT_FALSE(three.must_close(true));
  EXPECT_TRUE(three.must_close(true));
  EXPECT_FALSE(three.must_close(false));
  EXPECT_TRUE(three.must_close(true)) << "a block opened again has no budget left";
  ReasoningBudget none(0);
  EXPECT_FALSE(none.must_close(false));
  EXPECT_TRUE(none.must_close(true));
  ReasoningBudget endless(-1);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(endless.must_close(true));
}

}  // namespace
}  // namespace crest::text
