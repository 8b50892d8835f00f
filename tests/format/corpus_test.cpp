#include <gtest/gtest.h>

#include <fstream>

#include "format/gguf_builder.h"
#include "format/hf_builder.h"
#include "format/safetensors.h"

namespace crest::format {
namespace {

namespace fs = std::filesystem;
const fs::path kCorpus = fs::path(CREST_SOURCE_DIR) / "tests" / "fuzz" / "corpus";

std::string read(const fs::path& path) { return *core::read_file(path, 1 << 20); }

// The fuzzers' seeds must be what they claim to be: a corpus of refused files starts nowhere.
TEST(FuzzCorpus, SeedsAreValid) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(kCorpus / "gguf")) {
    const std::string bytes = read(entry.path());
    EXPECT_TRUE(GgufFile::parse(as_bytes(bytes), entry.path()).ok()) << entry.path();
    ++count;
  }
  for (const auto& entry : fs::directory_iterator(kCorpus / "safetensors")) {
    const std::string bytes = read(entry.path());
    EXPECT_TRUE(SafetensorsFile::parse(as_bytes(bytes), entry.path()).ok()) << entry.path();
    ++count;
  }
  for (const auto& entry : fs::directory_iterator(kCorpus / "hf_config")) {
    EXPECT_TRUE(parse_hf_config(read(entry.path()), entry.path()).ok()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 10u);
}

}  // namespace
}  // namespace crest::format
