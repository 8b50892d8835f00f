#include <gtest/gtest.h>

#include <algorithm>

#include "format/convert.h"
#include "format/model_file.h"
#include "testing/temporary_folder.h"
#include "text/tokenizer.h"

namespace crest::format {
namespace {

namespace fs = std::filesystem;
using crest::testing::TemporaryFolder;

class MicroConvert : public ::testing::TestWithParam<const char*> {};

// Checkpoints written by transformers: what a converted file says equals what the folder says, values and text.
TEST_P(MicroConvert, FolderAndFileAgree) {
  const fs::path folder = fs::path(CREST_TEST_DATA) / "micro" / GetParam();
  ASSERT_TRUE(fs::exists(folder / "config.json")) << folder;
  const TemporaryFolder output;
  core::ThreadPool pool(2);
  const auto plan = ModelFile::open(folder, {.as_converted = true});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  for (const char* type : {"f32", "bf16"}) {
    ConvertOptions options;
    options.type = type;
    const auto report = convert(folder, output.path() / "m.gguf", options, pool);
    ASSERT_TRUE(report.ok()) << report.error().message;
    const auto file = ModelFile::open(output.path() / "m.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_EQ((*file)->tensors().size(), (*plan)->tensors().size());
    for (const TensorEntry& entry : (*plan)->tensors()) {
      const TensorEntry* other = (*file)->find(entry.name);
      ASSERT_NE(other, nullptr) << entry.name;
      ASSERT_EQ(other->shape, entry.shape) << entry.name;
      std::vector<float> a(static_cast<size_t>(entry.shape.elements())), b(a.size(), 1e30f);
      ASSERT_TRUE((*plan)->read_rows(entry, 0, entry.shape.rows(), a.data()).ok());
      ASSERT_TRUE((*file)->read_rows(*other, 0, entry.shape.rows(), b.data()).ok());
      // The checkpoints are bf16, so that neither type loses anything.
      EXPECT_EQ(a, b) << entry.name;
    }
    auto from_folder = (*plan)->vocab(), from_file = (*file)->vocab();
    ASSERT_TRUE(from_folder.ok() && from_file.ok());
    const auto first = text::Tokenizer::create(*std::move(from_folder));
    const auto second = text::Tokenizer::create(*std::move(from_file));
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_TRUE(std::ranges::equal(first->end_of_generation_ids(), second->end_of_generation_ids()));
    EXPECT_EQ(first->bos_id(), second->bos_id());
    for (const char* text : {"The volcano's 12345 crows, déjà vu e\xcc\x81  \n\n x", "<|im_start|>user\nhi<|im_end|>\n",
                             "", "\xff\xfe tail", "1234567890 ١٢٣"}) {
      for (const bool special : {false, true}) {
        const text::EncodeOptions encode{special, true};
        EXPECT_EQ(*first->encode(text, encode), *second->encode(text, encode)) << text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MicroConvert,
                         ::testing::Values("gemma3", "llama", "qwen2", "qwen3", "qwen3_5", "qwen3_5_moe", "qwen3_moe"));

}  // namespace
}  // namespace crest::format
