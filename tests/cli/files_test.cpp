#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "tensor/npy.h"

namespace crest::cli::testing {
namespace {

using Json = nlohmann::json;

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Tokenize, IdsTextAndBack) {
  const Outcome o = shell("\"$crest\" tokenize -m \"$model\" -p 'import os, the volcano' --json");
  EXPECT_EQ(Json::parse(o.out), Json({{"ids", {2047, 2262, 11, 273, 4078, 2407, 78}}})) << o.err;
  for (const char* ids : {"--ids 2047,2262", "2047,2262", "-p '2047 2262'"})
    EXPECT_EQ(shell(std::string("\"$crest\" tokenize -m \"$model\" --decode ") + ids).out, "import os") << ids;
  EXPECT_EQ(shell("\"$crest\" tokenize -m \"$model\" 2047,2262").exit_code, 2);
  EXPECT_EQ(shell("\"$crest\" tokenize -m \"$model\" -p '<|im_end|>' --special --json").out, "{\"ids\":[8185]}\n");
  EXPECT_NE(shell("\"$crest\" tokenize -m \"$model\" -p '<|im_end|>' --json").out, "{\"ids\":[8185]}\n");
}

// Text that ends inside a character has aborted other engines: the bytes are kept.
TEST(Tokenize, BytesThatAreNotUtf8AreKept) {
  EXPECT_EQ(shell("printf '\\xe6\\xad' > f; \"$crest\" tokenize -m \"$model\" -f f --json; rm f").out, "{\"ids\":[162,255]}\n");
  EXPECT_EQ(shell("\"$crest\" tokenize -m \"$model\" --decode --ids 162,255 | od -An -tx1").out, " e6 ad\n");
  EXPECT_EQ(shell("printf '\\x80' > f; \"$crest\" tokenize -m \"$model\" -f f >/dev/null; echo $?; rm f").out, "0\n");
}

TEST(Tokenize, IdsOutsideTheVocabulary) {
  const Outcome o = shell("\"$crest\" tokenize -m \"$model\" --decode --ids 5,8192");
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_TRUE(has(o.err, "token id 1 is '8192'") && has(o.err, "8191")) << o.err;
}

TEST(Logits, ShapesAndChunks) {
  const crest::testing::TemporaryFolder folder;
  const Outcome o = shell("\"$crest\" logits -m \"$model\" --ids 416,3103,2838,869,311 -o a.npy --hidden h.npy --mtp m.npy && \"$crest\" logits -m \"$model\" --ids '416 3103 2838 869 311' --chunk 2 -o b.npy", folder.path());
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const auto read = [&](const char* name) { return tensor::read_npy(folder.path() / name); };
  const auto a = read("a.npy"), b = read("b.npy"), h = read("h.npy"), m = read("m.npy");
  ASSERT_TRUE(a.ok() && b.ok() && h.ok() && m.ok());
  EXPECT_EQ(a->shape, (std::vector<int64_t>{5, 8192}));
  EXPECT_EQ(h->shape, (std::vector<int64_t>{9, 5, 256}));
  EXPECT_EQ(m->shape, (std::vector<int64_t>{4, 8192}));
  const auto x = a->to_f32(), y = b->to_f32();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-3) << i;
}

TEST(Inspect, ShowsTheBundledModel) {
  const Outcome o = shell("\"$crest\" inspect \"$model\" --json");
  const Json report = Json::parse(o.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << o.err;
  EXPECT_EQ(report["architecture"], "qwen35moe");
  EXPECT_TRUE(has(shell("\"$crest\" inspect \"$model\" --tensors").out, "blk.0.attn_qkv.weight"));
}

// Output onto the input has destroyed models: refused before a byte is written, whatever link leads there.
TEST(Quantize, NeverWritesOverItsInput) {
  const Outcome o = shell(
      "cp \"$model\" a.gguf; ln a.gguf hard.gguf; ln -s a.gguf soft.gguf; before=$(sha256sum < a.gguf)\n"
      "for out in a.gguf hard.gguf soft.gguf ./x/../a.gguf; do mkdir -p x; \"$crest\" quantize --allow-requantize a.gguf $out Q4_0 2>/dev/null; echo $?; done\n"
      "[ \"$before\" = \"$(sha256sum < a.gguf)\" ] && echo unchanged; rm -rf a.gguf hard.gguf soft.gguf x");
  EXPECT_EQ(o.out, "1\n1\n1\n1\nunchanged\n");
}

// The same for everything else that a command reads, and for outputs that would replace one another.
TEST(Outputs, NeverReplaceWhatTheCommandReads) {
  const Outcome o = shell(
      "ln -s \"$model\" m.gguf; ln -s m.gguf link; echo 1,2 > ids; yes 'a volcano is a mountain' | head -20 > t.txt\n"
      "imatrix='imatrix -m m.gguf -f t.txt --chunks 1 --row-tokens 8 -o'; \"$crest\" $imatrix i.gguf 2>/dev/null\n"
      "before=$(cat * | sha256sum)\n"
      "for command in \"$imatrix t.txt\" \"$imatrix link\" 'logits -m m.gguf --ids 1,2 -o m.gguf' \\\n"
      "  'logits -m m.gguf --ids ids -o ids' 'logits -m m.gguf --ids 1,2 -o l.npy --hidden m.gguf' \\\n"
      "  'quantize --allow-requantize m.gguf i.gguf Q4_0 --imatrix i.gguf'; do\n"
      "  \"$crest\" $command 2>&1 | grep -c 'is the same file as the input'; done\n"
      "[ \"$before\" = \"$(cat * | sha256sum)\" ] && echo unchanged");
  EXPECT_EQ(o.out, "1\n1\n1\n1\n1\n1\nunchanged\n");
  const Outcome twice = shell("\"$crest\" logits -m \"$model\" --ids 1,2 -o l.npy --hidden ./l.npy; echo $?; ls");
  EXPECT_EQ(twice.out, "2\n") << twice.err;
  const Outcome chat = shell("cp \"$model\" m.gguf; printf '/save m.gguf\\n' | \"$crest\" chat -m m.gguf; cmp m.gguf \"$model\" && echo unchanged");
  EXPECT_EQ(chat.out, "unchanged\n") << chat.err;
}

// Renaming over a device replaces it by a file; a test of the rule with a pipe stands for both.
TEST(Outputs, DevicesAndPipesAreRefused) {
  const Outcome o = shell("mkfifo pipe; \"$crest\" quantize --allow-requantize \"$model\" pipe Q4_0; echo $?; [ -p pipe ] && echo still a pipe");
  EXPECT_EQ(o.out, "1\nstill a pipe\n") << o.err;
}

TEST(Quantize, FailuresLeaveNoFile) {
  EXPECT_EQ(shell("\"$crest\" quantize \"$model\" out.gguf Q8_0; echo $?; ls out.gguf 2>/dev/null").out, "1\n") << "quantised input without --allow-requantize";
  const Outcome folder = shell("\"$crest\" quantize --allow-requantize \"$model\" /nonexistent-folder/out.gguf Q8_0; echo $?");
  EXPECT_EQ(folder.out, "1\n") << folder.err;
  const Outcome killed = shell("\"$crest\" quantize --allow-requantize \"$model\" k.gguf Q3_K_M & p=$!; sleep 0.3; kill -9 $p; wait $p 2>/dev/null; ls k.gguf 2>/dev/null; rm -f .k.gguf.* k.gguf");
  EXPECT_EQ(killed.out, "");
}

TEST(Quantize, RequantisedModelStillRuns) {
  const Outcome o = shell("\"$crest\" quantize --allow-requantize \"$model\" q8.gguf Q8_0 2>/dev/null && \"$crest\" run -m q8.gguf --raw -p 'The CREATE TABLE command' --temp 0 -n 3 2>/dev/null; rm -f q8.gguf");
  EXPECT_EQ(o.out, " is used to\n") << o.err;
}

TEST(MakeModel, RandomModelRunsAndIsReproducible) {
  const Outcome o = shell(
      "\"$crest\" make-model --like qwen3-0.6b --layers 2 --vocab 4096 --type q4_k_m --seed 5 -o r1.gguf && \"$crest\" make-model --like qwen3-0.6b --layers 2 --vocab 4096 --type q4_k_m --seed 5 -o r2.gguf "
      "&& cmp r1.gguf r2.gguf && \"$crest\" bench -m r1.gguf -p 8 -n 2 -r 2 -o json; rm -f r1.gguf r2.gguf");
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const Json rows = Json::parse(o.out, nullptr, false);
  ASSERT_EQ(rows.size(), 2u) << o.out;
  EXPECT_EQ(rows[0]["n_prompt"], 8);
  EXPECT_EQ(rows[1]["n_gen"], 2);
  EXPECT_GT(rows[1]["avg_ts"], 0);
}

TEST(Perplexity, OfATextAndOfAModelAgainstItself) {
  const Outcome o = shell("printf 'The CREATE TABLE command is used to create a new table.' > t; \"$crest\" perplexity -m \"$model\" -f t --compare \"$model\" --json; rm t");
  const Json result = Json::parse(o.out, nullptr, false);
  ASSERT_TRUE(result.is_object()) << o.err;
  EXPECT_NEAR(result["mean_kl"], 0.0, 1e-9);
  EXPECT_EQ(result["top1_agreement"], 1.0);
  EXPECT_GT(result["model"]["nll"], 0.0);
}

}  // namespace
}  // namespace crest::cli::testing
