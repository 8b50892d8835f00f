#include "format/make_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "format/hf_builder.h"
#include "format/model_file.h"
#include "format/random_weights.h"
#include "format/synthetic_vocab.h"
#include "tensor/quant.h"

namespace crest::format {
namespace {

using crest::testing::TemporaryFolder;
using tensor::DType;

core::ThreadPool& pool() {
  static core::ThreadPool instance(2);
  return instance;
}

uint64_t parameters(std::string_view name) {
  const auto size = find_model_size(name);
  EXPECT_TRUE(size.ok());
  const auto skeleton = make_skeleton(*size, false);
  EXPECT_TRUE(skeleton.ok()) << skeleton.error().message;
  uint64_t count = 0;
  for (const auto& tensor : skeleton->tensors) count += static_cast<uint64_t>(tensor.shape.elements());
  return count;
}

// The counts that the models' authors publish, to the digits that they give.
TEST(MakeModel, PublicSizes) {
  const std::pair<const char*, double> published[] = {
      {"qwen3-0.6b", 0.596e9},    {"qwen3-1.7b", 1.72e9},    {"qwen3-4b", 4.02e9},      {"qwen3-8b", 8.19e9},
      {"qwen3-30b-a3b", 30.53e9}, {"qwen2.5-0.5b", 0.494e9}, {"llama-3.2-1b", 1.236e9}, {"llama-3.1-8b", 8.03e9},
      {"smollm2-135m", 0.1345e9}, {"gemma3-270m", 0.268e9},  {"gemma3-1b", 1.0e9},      {"qwen3.6-35b-a3b", 34.7e9},
      {"qwen3.6-27b", 26.9e9},    {"qwen3.5-9b", 8.95e9}};
  for (const auto& [name, count] : published) {
    EXPECT_NEAR(static_cast<double>(parameters(name)) / count, 1, 0.01) << name;
  }
  for (const ModelSize& size : model_sizes()) EXPECT_TRUE(make_skeleton(size, false).ok()) << size.name;
}

TEST(MakeModel, NamesAreForgiving) {
  EXPECT_EQ(find_model_size("Gemma-3-270M")->name, "gemma3-270m");
  const auto unknown = find_model_size("gpt-7");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("qwen3.6-35b-a3b"), std::string::npos);
}

TEST(MakeModel, SmallMixtureOfExperts) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  MakeModelOptions options;
  options.like = "qwen3.6-35b-a3b";
  options.layers = 4;
  options.experts = 8;
  options.vocab = 1000;
  options.mtp = true;
  const auto report = make_model(path, options, pool());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->bytes, std::filesystem::file_size(path));
  const auto model = ModelFile::open(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->tensors().size(), report->tensors);
  EXPECT_EQ(*(*model)->metadata().integer("qwen35moe.block_count", 0, 99), 5);
  EXPECT_EQ(*(*model)->metadata().integer("qwen35moe.expert_count", 0, 99), 8);
  EXPECT_EQ((*model)->find("blk.0.ffn_gate_exps.weight")->shape, (Shape{2048, 512, 8}));
  EXPECT_EQ((*model)->find("blk.0.ffn_gate_exps.weight")->dtype, DType::kQ4_K);
  EXPECT_EQ((*model)->find("blk.4.nextn.eh_proj.weight")->shape, (Shape{4096, 2048}));
  // Every value is finite, and matrices have the spread that keeps activations in size.
  for (const TensorEntry& entry : (*model)->tensors()) {
    std::vector<float> row(static_cast<size_t>(entry.shape[0]));
    ASSERT_TRUE((*model)->read_rows(entry, entry.shape.rows() - 1, 1, row.data()).ok());
    double squares = 0;
    for (const float value : row) {
      ASSERT_TRUE(std::isfinite(value)) << entry.name;
      squares += static_cast<double>(value) * value;
    }
    // A row's norm is 1 in the mean; with n values its relative deviation is about 1/sqrt(2n).
    if (entry.shape.rank > 1 && entry.shape[0] >= 512) {
      EXPECT_NEAR(squares, 1, 6 / std::sqrt(static_cast<double>(entry.shape[0])) + 0.05) << entry.name;
    }
  }
  const auto vocab = (*model)->vocab();
  ASSERT_TRUE(vocab.ok()) << vocab.error().message;
  EXPECT_EQ(vocab->tokens.size(), 1000u);
}

TEST(MakeModel, SameBytesWhateverTheThreads) {
  const TemporaryFolder folder;
  MakeModelOptions options;
  options.like = "smollm2-135m";
  options.layers = 1;
  options.vocab = 5000;
  options.type = "q8_0";
  core::ThreadPool one(1), three(3);
  ASSERT_TRUE(make_model(folder.path() / "a", options, one).ok());
  ASSERT_TRUE(make_model(folder.path() / "b", options, three).ok());
  const std::string a = *core::read_file(folder.path() / "a", 1 << 30);
  EXPECT_EQ(a, *core::read_file(folder.path() / "b", 1 << 30));
  options.seed = 1;
  ASSERT_TRUE(make_model(folder.path() / "b", options, three).ok());
  EXPECT_NE(a, *core::read_file(folder.path() / "b", 1 << 30));
}

TEST(MakeModel, WrongOptions) {
  const auto error_of = [](auto change) {
    MakeModelOptions options;
    options.like = "qwen3-0.6b";
    options.layers = 1;
    change(options);
    const TemporaryFolder folder;
    const auto report = make_model(folder.path() / "m", options, pool());
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "m"));
    return report.ok() ? std::string() : report.error().message;
  };
  EXPECT_NE(error_of([](auto& o) { o.layers = 0; }).find("layers is 0, allowed is 1"), std::string::npos);
  EXPECT_NE(error_of([](auto& o) { o.experts = 8; }).find("has no experts"), std::string::npos);
  EXPECT_NE(error_of([](auto& o) { o.vocab = 10; }).find("vocab is 10"), std::string::npos);
  EXPECT_NE(error_of([](auto& o) { o.type = "q9"; }).find("q9"), std::string::npos);
  EXPECT_NE(error_of([](auto& o) { o.mtp = true; }).find("no head for multi-token prediction"), std::string::npos);
  EXPECT_NE(error_of([](auto& o) { o.tokenizer = "/none.json"; }).find("No such file"), std::string::npos);
}

TEST(SyntheticVocab, TokensAreUniqueAndMergesMakeThem) {
  for (const int64_t size : {kMinSyntheticVocab, int64_t{700}, int64_t{100000}}) {
    const auto vocab = synthetic_vocab(size, Family::kQwen35);
    ASSERT_EQ(vocab.tokens.size(), static_cast<size_t>(size));
    ASSERT_EQ(vocab.types.size(), vocab.tokens.size());
    EXPECT_EQ(std::set<std::string>(vocab.tokens.begin(), vocab.tokens.end()).size(), vocab.tokens.size());
    for (size_t i = 0; i < vocab.merges.size(); ++i) {
      const auto& merge = vocab.merges[i];
      ASSERT_EQ(vocab.tokens[static_cast<size_t>(merge.left)] + vocab.tokens[static_cast<size_t>(merge.right)],
                vocab.tokens[256 + i]);
    }
  }
}

TEST(RandomBits, Published) {
  RandomBits random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
}

}  // namespace
}  // namespace crest::format
