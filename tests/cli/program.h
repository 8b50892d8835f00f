#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "testing/temporary_folder.h"

namespace crest::cli::testing {

struct Outcome {
  int exit_code = -1;  // 128 + signal where a signal ended it
  std::string out;
  std::string err;
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs a shell command in an empty folder of its own, or in `folder`. $crest is the program and $model the bundled
/// model; no terminal, no colour.
inline Outcome shell(const std::string& command, const std::filesystem::path& work = {}) {
  const crest::testing::TemporaryFolder folder;
  const crest::testing::TemporaryFolder empty;
  const auto out = folder.path() / "out", err = folder.path() / "err";
  const std::string line = "crest='" CREST_BINARY "'; model='" CREST_SOURCE_DIR "/models/crest-tiny-moe-q4_k_m.gguf'; cd '" +
                           (work.empty() ? empty.path() : work).string() + "'; ( " + command + "\n) >'" +
                           out.string() + "' 2>'" + err.string() + "' </dev/null";
  const auto script = folder.write("script", line);
  const int status = std::system(("bash '" + script.string() + "'").c_str());
  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = slurp(out);
  outcome.err = slurp(err);
  return outcome;
}

}  // namespace crest::cli::testing
