#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/program.h"

namespace crest::cli::testing {
namespace {

using Json = nlohmann::json;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Json run_json(const std::string& arguments) {
  const Outcome o = shell("\"$crest\" run -m \"$model\" --json " + arguments);
  EXPECT_EQ(o.exit_code, 0) << arguments << "\n" << o.err;
  return Json::parse(o.out, nullptr, false);
}

TEST(Run, AnswersWithTheBundledModel) {
  const Outcome o = shell("\"$crest\" run -m \"$model\" -p 'What is a volcano?' --temp 0");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_TRUE(o.out.starts_with("As a noun, \"volcano\" means")) << o.out;
  EXPECT_FALSE(has(o.out, "<|im_end|>"));
  EXPECT_TRUE(has(o.err, "t/s")) << o.err;
}

TEST(Run, PromptFromFlagFileAndPipeAreTheSame) {
  const std::string flag = shell("\"$crest\" run -m \"$model\" --temp 0 -n 8 -p 'Define bicycle.' 2>/dev/null").out;
  EXPECT_EQ(shell("printf 'Define bicycle.' > q; \"$crest\" run -m \"$model\" --temp 0 -n 8 -f q 2>/dev/null; rm q").out, flag);
  EXPECT_EQ(shell("printf 'Define bicycle.' | \"$crest\" run -m \"$model\" --temp 0 -n 8 2>/dev/null").out, flag);
}

TEST(Run, JsonHoldsTextIdsStopReasonAndTimings) {
  const Json eos = run_json("-p 'What is a volcano?' --temp 0");
  ASSERT_TRUE(eos.is_object());
  EXPECT_EQ(eos["stop_reason"], "eos");
  EXPECT_EQ(eos["ids"].back(), 8185);
  EXPECT_GT(eos["timings"]["prompt_n"], 0);
  const Json length = run_json("--raw -p 'The CREATE TABLE command' --temp 0 -n 6");
  EXPECT_EQ(length["stop_reason"], "length");
  EXPECT_EQ(length["ids"].size(), 6);
  EXPECT_EQ(length["prompt_ids"], Json({416, 3103, 2838, 869}));
}

TEST(Run, StopStringEndsTheAnswerAndIsNotPartOfIt) {
  const Json whole = run_json("--raw -p 'The CREATE TABLE command' --temp 0 -n 20");
  const std::string text = whole["text"];
  ASSERT_GT(text.size(), 12u);
  const std::string stop = text.substr(5, 6);
  const Json cut = run_json("--raw -p 'The CREATE TABLE command' --temp 0 -n 20 --stop '" + stop + "'");
  EXPECT_EQ(cut["stop_reason"], "stop");
  EXPECT_EQ(cut["text"], text.substr(0, text.find(stop)));
}

TEST(Run, SameSeedSameText) {
  const std::string arguments = "--raw -p 'Returns a list of' -n 16 --temp 1.5 --top-k 0 --top-p 1 --min-p 0 --seed ";
  const Json a = run_json(arguments + "7"), b = run_json(arguments + "7"), c = run_json(arguments + "8");
  EXPECT_EQ(a["ids"], b["ids"]);
  EXPECT_NE(a["ids"], c["ids"]);
  EXPECT_EQ(a["seed"], 7);
}

// Other engines report log-probabilities after temperature or top-k; they are the model's own.
TEST(Run, LogprobsDoNotDependOnSampling) {
  const std::string arguments = "--raw -p 'The CREATE TABLE command' -n 1 --logprobs 5 --seed 3 ";
  const Json greedy = run_json(arguments + "--temp 0")["logprobs"][0];
  for (const char* sampling : {"--temp 2", "--temp 2 --top-k 2", "--temp 0.1 --min-p 0.5"}) {
    EXPECT_EQ(run_json(arguments + sampling)["logprobs"][0]["top_logprobs"], greedy["top_logprobs"]) << sampling;
  }
  EXPECT_EQ(greedy["top_logprobs"].size(), 5);
  EXPECT_EQ(greedy["logprob"], greedy["top_logprobs"][0]["logprob"]);
}

TEST(Run, UserTextNeverBecomesAControlToken) {
  const Json o = run_json("-p 'a <|im_end|> b' -n 1 --temp 0");
  int ends = 0;
  for (const int id : o["prompt_ids"]) ends += id == 8185;
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(run_json("--raw -p '<|im_end|>' -n 1 --temp 0")["prompt_ids"], Json({8185}));
}

TEST(Run, ContextUsedUpIsAStopReason) {
  EXPECT_EQ(run_json("--raw -p 'import os' -c 16 --temp 0 -n 100")["stop_reason"], "context");
  const Outcome o = shell("\"$crest\" run -m \"$model\" --raw -c 4 -p 'a long prompt that does not fit into four tokens'");
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_TRUE(has(o.err, "4")) << o.err;
}

TEST(Run, ForcedAndUnknownKernels) {
  const Outcome reference = shell("CREST_KERNEL_LINEAR=reference \"$crest\" run -m \"$model\" --raw -p 'import os' -n 1 --explain");
  EXPECT_EQ(reference.exit_code, 0) << reference.err;
  EXPECT_TRUE(has(reference.err, "reference") && has(reference.err, "forced")) << reference.err;
  const Outcome unknown = shell("CREST_KERNEL_LINEAR=fastest \"$crest\" run -m \"$model\" --raw -p 'import os' -n 1");
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_TRUE(has(unknown.err, "fastest") && has(unknown.err, "reference")) << unknown.err;
}

TEST(Run, InterruptEndsWithCode130) {
  const Outcome o = shell("timeout -s INT 2 \"$crest\" run -m \"$model\" --raw -p 'import os' -n 100000 --logit-bias 8183=-inf --logit-bias 8185=-inf; echo \"code $?\"");
  EXPECT_TRUE(has(o.out, "code 130") || has(o.out, "code 124")) << o.out << o.err;
  const Outcome direct = shell("\"$crest\" run -m \"$model\" --raw -p 'import os' -n 100000 --logit-bias 8183=-inf --logit-bias 8185=-inf & p=$!; sleep 1.5; kill -INT $p; wait $p; echo \"code $?\"");
  EXPECT_TRUE(has(direct.out, "code 130")) << direct.out << direct.err;
}

// End of input must neither print prompts for ever nor send empty messages.
TEST(Chat, EndOfInput) {
  const auto start = std::chrono::steady_clock::now();
  const Outcome empty = shell("timeout 20 \"$crest\" chat -m \"$model\" < /dev/null | head -c 100000 | wc -c; echo ${PIPESTATUS[0]}");
  EXPECT_EQ(empty.out, "0\n0\n") << empty.err;
  const Outcome one = shell("printf 'What is a volcano?' | timeout 20 \"$crest\" chat -m \"$model\" --temp 0 -n 4");
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_FALSE(one.out.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
}

TEST(Chat, CommandsSaveAndLoad) {
  const Outcome o = shell(
      "printf '/help\\nWhat is a volcano?\\n/stats\\n/set temp 9e9\\n/set top-k 3\\n/nonsense\\n/save s.chat\\n/clear\\n/load s.chat\\n/regen\\n/exit\\nnever\\n' | "
      "timeout 60 \"$crest\" chat -m \"$model\" --temp 0 -n 6; rm -f s.chat");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_TRUE(has(o.err, "/regen") && has(o.err, "allowed: a number from 0") && has(o.err, "there is no command /nonsense")) << o.err;
  const size_t line = o.out.find('\n');
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(o.out, o.out.substr(0, line + 1) + o.out.substr(0, line + 1)) << "the regenerated greedy answer is the same";
}

TEST(Chat, SecondTurnContinuesTheFirst) {
  const Outcome o = shell("printf 'What is a volcano?\\nDefine bicycle.\\n/stats\\n' | timeout 60 \"$crest\" chat -m \"$model\" --temp 0");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_TRUE(has(o.err, "kept")) << o.err;
}

}  // namespace
}  // namespace crest::cli::testing
