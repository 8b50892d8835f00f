#include <gtest/gtest.h>

#include <algorithm>

#include "cli/program.h"

namespace crest::cli::testing {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Usage, HelpVersionAndCompletionsNeedNoModel) {
  for (const char* arguments : {"--help", "--version", "version --json", "devices --json", "run --help", "chat --help", "--man", "--completion bash",
                                "--completion zsh", "--completion fish", "make-model --help"}) {
    const Outcome o = shell(std::string("\"$crest\" ") + arguments);
    EXPECT_EQ(o.exit_code, 0) << arguments << o.err;
    EXPECT_FALSE(o.out.empty()) << arguments;
    EXPECT_EQ(o.err, "") << arguments;
    EXPECT_FALSE(has(o.out, "\x1b")) << arguments;
  }
}

TEST(Usage, EveryCommandIsInHelpManualAndCompletions) {
  const std::string help = shell("\"$crest\" --help").out;
  for (const char* command : {"run", "chat", "tokenize", "logits", "inspect", "convert", "quantize", "imatrix", "perplexity", "bench", "make-model", "devices", "version"}) {
    EXPECT_TRUE(has(help, std::string("\n  ") + command)) << command;
    for (const char* form : {"--man", "--completion bash", "--completion zsh", "--completion fish"}) {
      EXPECT_TRUE(has(shell(std::string("\"$crest\" ") + form).out, command)) << command << form;
    }
    EXPECT_TRUE(has(shell(std::string("\"$crest\" ") + command + " --help").out, "Examples:")) << command;
  }
}

TEST(Usage, CompletionScriptIsValidBash) {
  const Outcome o = shell("\"$crest\" --completion bash > c.sh && bash -n c.sh && source c.sh && COMP_WORDS=(crest run --mod) COMP_CWORD=2 && _crest && echo ${COMPREPLY[@]}; rm -f c.sh");
  EXPECT_EQ(o.out, "--model\n") << o.err;
}

TEST(Usage, WrongFlagsGiveExitCode2AndAHint) {
  struct Case {
    const char* arguments;
    const char* part;
  };
  for (const auto& [arguments, part] : {Case{"run --modle x", "did you mean '--model'?"}, {"rnu", "did you mean 'run'?"}, {"run", "--model"}, {"run -m x -p a --temp hot", "error: --temp is 'hot'"},
                                        {"run -m x -p a --top-p 2", "from 0 to 1"}, {"run -m x -p a -t -3", "--threads"}, {"run -m x -p a --kv-type q4", "error: --kv-type is 'q4'; allowed are f32, f16, bf16, q8"},
                                        {"run -m x -p a -f b", "not both"}, {"run -m x -p a --logit-bias 5", "ID=NUMBER"}, {"--completion tcsh", "bash, zsh, fish"},
                                        {"quantize a b Q9_9", "Q4_K_M"}, {"make-model --like gpt-9 -o x", "qwen3-0.6b"}, {"bench -m x -p 1,a", "-p is '1,a'"}, {"run -m x -p a -n 1e3", "whole number"}}) {
    const Outcome o = shell(std::string("\"$crest\" ") + arguments);
    EXPECT_EQ(o.exit_code, 2) << arguments << "\n" << o.err;
    EXPECT_TRUE(has(o.err, part)) << arguments << "\n" << o.err;
    EXPECT_EQ(o.out, "") << arguments;
  }
}

TEST(Usage, AnUnreadableModelGivesExitCode1AndItsName) {
  for (const char* path : {"/nonexistent/model.gguf", "/dev/zero", "/"}) {
    const Outcome o = shell(std::string("\"$crest\" run -p hi -m ") + path);
    EXPECT_EQ(o.exit_code, 1) << o.err;
    EXPECT_TRUE(has(o.err, path)) << o.err;
  }
}

// A full disk and a closed standard output are errors, not silence; a pipe whose reader left ends quietly.
TEST(Usage, OutputThatCannotBeWritten) {
  EXPECT_EQ(shell("\"$crest\" --help > /dev/full").exit_code, 1);
  EXPECT_EQ(shell("\"$crest\" devices >&-").exit_code, 1);
  const Outcome pipe = shell("\"$crest\" --man | head -c 1 > /dev/null; echo ${PIPESTATUS[0]}");
  EXPECT_TRUE(pipe.out == "0\n" || pipe.out == "141\n") << pipe.out;
  EXPECT_EQ(pipe.err, "");
}

TEST(Usage, CrestCpuIsChecked) {
  const Outcome o = shell("CREST_CPU=pentium \"$crest\" devices");
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_TRUE(has(o.err, "avx2")) << o.err;
}

}  // namespace
}  // namespace crest::cli::testing
