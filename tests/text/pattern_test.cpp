#include "text/pattern.h"

#include <gtest/gtest.h>

#include "text/pretokenizer.h"

namespace crest::text {
namespace {

using Strings = std::vector<std::string>;

/// The matches of a pattern in a text; the message alone when something fails.
Strings matches(std::string_view pattern, std::string_view text) {
  const auto compiled = Pattern::compile(pattern);
  if (!compiled.ok()) return {compiled.error().message};
  std::vector<uint8_t> classes;
  compiled->classify(text, classes);
  std::vector<size_t> offsets;
  for (size_t i = 0; i < text.size(); i += decode_character(text.substr(i)).length) offsets.push_back(i);
  offsets.push_back(text.size());
  Strings found;
  const auto status = compiled->for_each_match(classes, [&](Pattern::Match match) {
    found.emplace_back(text.substr(offsets[match.begin], offsets[match.end] - offsets[match.begin]));
  });
  return status.ok() ? found : Strings{status.error().message};
}

Strings split(const std::vector<SplitStep>& steps, std::string_view text) {
  const auto pre = PreTokenizer::create(steps);
  const auto pieces = pre->split(text);
  return {pieces->begin(), pieces->end()};
}

TEST(Pattern, Syntax) {
  EXPECT_EQ(matches("a|bc", "abcab"), (Strings{"a", "bc", "a"}));
  EXPECT_EQ(matches("[^a-c]+", "abcxyzé"), (Strings{"xyzé"}));
  EXPECT_EQ(matches("[]a]+", "]a]b"), (Strings{"]a]"}));
  EXPECT_EQ(matches("[a-]+", "a-b"), (Strings{"a-"}));
  EXPECT_EQ(matches(R"([\]\-\\x]+)", R"(x\-]y)"), (Strings{R"(x\-])"}));
  EXPECT_EQ(matches("é+", "eéée"), (Strings{"éé"}));
  EXPECT_EQ(matches("[一-龥]+", "abc中文x"), (Strings{"中文"}));
  EXPECT_EQ(matches(R"(\x41\u00e9\x{1F999}\t)", "Aé🦙\t"), (Strings{"Aé🦙\t"}));
  EXPECT_EQ(matches("a{2}", "aaaaa"), (Strings{"aa", "aa"}));
  EXPECT_EQ(matches("a{2,}b{,1}", "aaab"), (Strings{"aaab"}));
  EXPECT_EQ(matches("a{x}", "a{x}"), (Strings{"a{x}"}));
  EXPECT_EQ(matches("a+?b*+", "aabb"), (Strings{"a", "abb"}));
  EXPECT_EQ(matches("a(?=b)|c(?!d)|(?<=x)y|(?<!x)z", "abcdcxyxzz"), (Strings{"a", "c", "y", "z"}));
  EXPECT_EQ(matches(".+", "ab\ncé"), (Strings{"ab", "cé"}));
  EXPECT_EQ(matches("^a|b$", "aab\nab"), (Strings{"a", "b", "a", "b"}));
  EXPECT_EQ(matches(R"(\bé\w*\b)", "é éa caé"), (Strings{"é", "éa"}));
  EXPECT_EQ(matches(R"((?>a|ab)c|\Aab|c\z)", "abcac"), (Strings{"ab", "ac"}));
  EXPECT_EQ(matches("[^\\s\\S]|a", "ba"), (Strings{"a"}));
}

TEST(Pattern, ClassesComeFromOurTables) {
  EXPECT_EQ(matches(R"(\p{L}+)", "abĀж中ا_1"), (Strings{"abĀж中ا"}));
  EXPECT_EQ(matches(R"(\p{Lu}|\P{L}+)", "aBc12"), (Strings{"B", "12"}));
  EXPECT_EQ(matches(R"(\pN+|\p{^N})", "12a"), (Strings{"12", "a"}));
  EXPECT_EQ(matches(R"([\p{M}\p{Lu}]+)", "aÉ\u0301b"), (Strings{"É\u0301"}));
  EXPECT_EQ(matches(R"(\s+)", "a\u00a0\u2003\u3000\u0085b\u200b"), (Strings{"\u00a0\u2003\u3000\u0085"}));
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \t\n "), (Strings{" \t", " "}));
  EXPECT_EQ(matches(R"(\d+)", "12٣½"), (Strings{"12٣"}));
  // U+1C89 and U+A7CB are letters since Unicode 16, U+16EA0 since 17: newer than PCRE2's own tables.
  EXPECT_EQ(matches(R"(\p{L}+)", "\u1C89\uA7CB\U00016EA0!"), (Strings{"\u1C89\uA7CB\U00016EA0"}));
}

TEST(Pattern, IgnoresCaseAsUnicodeFolds) {
  EXPECT_EQ(matches("(?i:'s|'ll)", "'s'S'\u017f'lL'x"), (Strings{"'s", "'S", "'\u017f", "'lL"}));
  EXPECT_EQ(matches("(?i)k", "kK\u212A"), (Strings{"k", "K", "\u212A"}));
  EXPECT_EQ(matches("(?i:a)b", "AbAB"), (Strings{"Ab"}));
  EXPECT_EQ(matches("(?i)[a-c]+(?-i:d)", "aBCdABD"), (Strings{"aBCd"}));
  EXPECT_EQ(matches("(?i)[^a]", "aAb"), (Strings{"b"}));
}

// Whatever a file contains, only what is understood reaches the engine.
TEST(Pattern, NamesWhatItDoesNotKnow) {
  const std::vector<std::pair<std::string, std::string>> bad = {{R"(\p{Han})", "property \"Han\""},
                                                                {R"(\1)", "escape \"\\1\""},
                                                                {R"(\K)", "escape"},
                                                                {R"(\C)", "escape"},
                                                                {"(?R)", "group"},
                                                                {"(?C1)a", "group"},
                                                                {"(*UTF)a", "group"},
                                                                {"(?<name>a)", "group"},
                                                                {"(?x)a", "group"},
                                                                {"[[:alpha:]]", "class"},
                                                                {"[a&&b]", "class"},
                                                                {"[a", "not closed"},
                                                                {"(a", "not closed"},
                                                                {"a)", "without"},
                                                                {"a{2}+", "quantifier"},
                                                                {"[z-a]", "range"},
                                                                {R"([\p{L}-z])", "range"},
                                                                {R"(\p{L)", "property"},
                                                                {R"(\p)", "property"},
                                                                {R"(\x)", "hexadecimal"},
                                                                {R"(\x{110000})", "hexadecimal"},
                                                                {"a**", "pattern"},
                                                                {"*a", "pattern"},
                                                                {"(?i)é", "U+00E9"},
                                                                {"\xFF", "UTF-8"},
                                                                {R"(a\)", "ends"},
                                                                {"(?<=a+)b", "pattern"},
                                                                {"[", "not closed"}};
  for (const auto& [pattern, expected] : bad) {
    const auto result = Pattern::compile(pattern);
    ASSERT_FALSE(result.ok()) << pattern;
    EXPECT_NE(result.error().message.find(expected), std::string::npos) << pattern << ": " << result.error().message;
  }
}

TEST(Pattern, BoundsSizeDepthAndBacktracking) {
  EXPECT_FALSE(Pattern::compile(std::string(20'000, 'a')).ok());
  EXPECT_FALSE(Pattern::compile(std::string(1000, '(') + "a" + std::string(1000, ')')).ok());
  EXPECT_FALSE(Pattern::compile("(?:(?:(?:a{60000}){60000}){60000}){60000}").ok());
  std::string many;
  for (char32_t code = 0x4E00; code < 0x4F40; ++code) append_character(many, code);
  EXPECT_FALSE(Pattern::compile(many).ok());
  const auto result = matches("(a+)+b|c", std::string(2000, 'a'));
  ASSERT_EQ(result.size(), 1u);
  EXPECT_NE(result[0].find("gave up"), std::string::npos) << result[0];
}

TEST(PreTokenizer, Behaviours) {
  const auto step = [](std::string pattern, SplitBehavior behavior, bool invert = false) {
    return std::vector<SplitStep>{{std::move(pattern), true, behavior, invert}};
  };
  // The examples of the library that defined them.
  const std::string_view text = "the-final--countdown";
  EXPECT_EQ(split(step("-", SplitBehavior::kRemoved), text), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(split(step("-", SplitBehavior::kIsolated), text), (Strings{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split(step("-", SplitBehavior::kMergedWithPrevious), text), (Strings{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split(step("-", SplitBehavior::kMergedWithNext), text), (Strings{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split(step("-", SplitBehavior::kContiguous), text), (Strings{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split(step("[a-z]+", SplitBehavior::kRemoved, true), text), (Strings{"the", "final", "countdown"}));
  EXPECT_EQ(split(step("(?=f)", SplitBehavior::kIsolated), text), (Strings{"the-", "final--countdown"}));
}

TEST(PreTokenizer, StepsSeePiecesAlone) {
  // The look-ahead at the end of a piece sees the end of the text.
  const std::vector<SplitStep> steps = {{R"(\p{N})", true, SplitBehavior::kIsolated, false},
                                        {R"(\s+(?!\S)|\s+)", true, SplitBehavior::kIsolated, false}};
  EXPECT_EQ(split(steps, "a  1é  b"), (Strings{"a", "  ", "1", "é", " ", " ", "b"}));
  EXPECT_EQ(split({{"é.", false, SplitBehavior::kIsolated, false}}, "aé.b.é"), (Strings{"a", "é.", "b.é"}));
  EXPECT_EQ(split({}, "a b"), (Strings{"a b"}));
  EXPECT_EQ(split(steps, ""), Strings{});
}

TEST(PreTokenizer, BytesThatAreNotUtf8BehaveLikeTheReplacementCharacter) {
  const std::vector<SplitStep> steps = {
      {R"( ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", true, SplitBehavior::kIsolated, false}};
  EXPECT_EQ(split(steps,
                  "ab \xE6\xAD"
                  "cd  \x80"),
            (Strings{"ab", " \xE6\xAD", "cd", " ", " \x80"}));
  EXPECT_EQ(split(steps, "ab \uFFFD\uFFFDcd  \uFFFD"), (Strings{"ab", " \uFFFD\uFFFD", "cd", " ", " \uFFFD"}));
}

}  // namespace
}  // namespace crest::text
