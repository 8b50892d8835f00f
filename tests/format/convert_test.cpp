#include "format/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "format/gguf_builder.h"
#include "format/hf_builder.h"
#include "format/quantize.h"
#include "format/vocab_metadata.h"
#include "tensor/quant.h"

namespace crest::format {
namespace {

using crest::testing::TemporaryFolder;
using tensor::DType;

// A byte-level tokeniser of 40 entries: letters and one control token.
const char* kTokenizer =
    R"({"version":"1.0","added_tokens":[{"id":27,"content":"<|end|>","special":true,"single_word":false,
"lstrip":false,"rstrip":false,"normalized":false}],"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[
{"type":"Split","pattern":{"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false}]},
"post_processor":null,"decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{)";

std::string tokenizer_json() {
  std::string text = kTokenizer;
  for (char c = 'a'; c <= 'z'; ++c) text += fmt::format("\"{}\":{},", c, c - 'a');
  return text + R"("he":26},"merges":["h e"]}})";
}

core::ThreadPool& pool() {
  static core::ThreadPool instance(2);
  return instance;
}

void write(const HfBuilder& b, const TemporaryFolder& folder) {
  b.write(folder);
  folder.write("tokenizer.json", tokenizer_json());
  folder.write("tokenizer_config.json", R"({"eos_token":"<|end|>","chat_template":"{{ messages }}"})");
  folder.write("generation_config.json", R"({"eos_token_id":[27,3],"temperature":0.6,"top_k":20})");
}

std::vector<std::byte> bytes_of(const ModelFile& model, const TensorEntry& entry) {
  const auto data = model.data(entry);
  EXPECT_TRUE(data.ok());
  return {data->bytes.begin(), data->bytes.end()};
}

// Quantising a folder directly is converting it to that type: the tokenizer and the rest of the metadata come along.
TEST(Convert, QuantisedFolderEqualsConvertedOne) {
  const TemporaryFolder folder;
  write(make_qwen35(true), folder);
  for (const char* type : {"Q4_K_M", "Q8_0", "F16"}) {
    ASSERT_TRUE(convert(folder.path(), folder.path() / "a.gguf", {.type = type}, pool()).ok());
    const auto report = quantize_file(folder.path(), folder.path() / "b.gguf", type, {}, pool());
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(core::read_file(folder.path() / "a.gguf", 1 << 24).value(),
              core::read_file(folder.path() / "b.gguf", 1 << 24).value());
  }
  const auto refused = quantize_file(folder.path(), folder.path() / "tokenizer.json", "Q8_0", {}, pool());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("same file"), std::string::npos) << refused.error().message;
}

// A folder opened as converted and the file that convert writes are the same, for each architecture.
TEST(Convert, FileEqualsThePlan) {
  const std::pair<const char*, HfBuilder> models[] = {
      {"llama", make_llama()},         {"qwen2", make_qwen2()},        {"qwen3moe", make_qwen3_moe(false)},
      {"fused", make_qwen3_moe(true)}, {"qwen35", make_qwen35(false)}, {"qwen35moe", make_qwen35(true)},
      {"gemma3", make_gemma3(true)}};
  for (const auto& [name, builder] : models) {
    const TemporaryFolder folder;
    write(builder, folder);
    const auto output = folder.path() / "out.gguf";
    const auto report = convert(folder.path(), output, {}, pool());
    ASSERT_TRUE(report.ok()) << name << ": " << report.error().message;
    const auto file = ModelFile::open(output);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto plan = ModelFile::open(folder.path(), {.as_converted = true});
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ((*file)->tensors().size(), (*plan)->tensors().size());
    for (const TensorEntry& entry : (*plan)->tensors()) {
      const TensorEntry* other = (*file)->find(entry.name);
      ASSERT_NE(other, nullptr) << entry.name;
      EXPECT_EQ(other->dtype, entry.dtype) << entry.name;
      EXPECT_EQ(other->shape, entry.shape) << entry.name;
      EXPECT_EQ(bytes_of(**file, *other), bytes_of(**plan, entry)) << entry.name;
    }
    for (const auto& [key, value] : (*plan)->metadata().entries()) {
      const Value* other = (*file)->metadata().find(key);
      ASSERT_NE(other, nullptr) << key;
      EXPECT_EQ(other->to_text(), value.to_text()) << key;
      EXPECT_EQ(other->type_name(), value.type_name()) << key;
    }
    EXPECT_EQ(*(*file)->metadata().number("general.sampling.temp"), 0.6f);
    EXPECT_EQ(*(*file)->metadata().integer("general.file_type", 0, 99), 32);
  }
}

TEST(Convert, TypesAndThreads) {
  const HfBuilder b = make_llama();
  const TemporaryFolder folder;
  write(b, folder);
  for (const char* type : {"f32", "F16", "bf16", "q8_0"}) {
    const auto one = folder.path() / "one.gguf", two = folder.path() / "two.gguf";
    core::ThreadPool single(1), many(3);
    const auto report = convert(folder.path(), one, {.type = type}, single);
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_TRUE(convert(folder.path(), two, {.type = type}, many).ok());
    EXPECT_EQ(*core::read_file(one, 1 << 30), *core::read_file(two, 1 << 30)) << type;
    const auto file = ModelFile::open(one);
    ASSERT_TRUE(file.ok());
    // 24 and 20 columns are no multiple of 32: such matrices stay F16 and are listed.
    const bool quantised = std::string_view(type) == "q8_0";
    const DType wanted = quantised ? DType::kF16 : *tensor::dtype_from_name(type);
    EXPECT_EQ((*file)->find("blk.1.ffn_up.weight")->dtype, wanted);
    EXPECT_EQ((*file)->find("blk.1.ffn_norm.weight")->dtype, DType::kF32);
    EXPECT_EQ(report->fallbacks.empty(), !quantised);
    std::vector<float> row(24);
    ASSERT_TRUE((*file)->read_rows(*(*file)->find("blk.1.ffn_up.weight"), 3, 1, row.data()).ok());
    for (size_t i = 0; i < 24; ++i) EXPECT_NEAR(row[i], b.values.at("model.layers.1.mlp.up_proj.weight")[72 + i], 1e-3);
  }
}

// F32 to bf16 by truncation, NaN turned into infinity, subnormals flushed.
TEST(Convert, Bf16Rounding) {
  HfBuilder b = make_llama();
  const std::pair<uint32_t, uint16_t> cases[] = {{0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
                                                 {0x7f7f7fff, 0x7f7f}, {0x00008001, 0x0001}, {0x00018000, 0x0002},
                                                 {0x80000000, 0x8000}};
  std::vector<float> values(24 * 20, 0.5f);
  for (size_t i = 0; i < std::size(cases); ++i) values[i] = std::bit_cast<float>(cases[i].first);
  b.raw("model.layers.0.mlp.up_proj.weight", "F32", {20, 24},
        {reinterpret_cast<const char*>(values.data()), values.size() * 4});
  const TemporaryFolder folder;
  write(b, folder);
  const auto output = folder.path() / "out.gguf";
  const auto report = convert(folder.path(), output, {.type = "bf16"}, pool());
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto file = ModelFile::open(output);
  const auto bytes = bytes_of(**file, *(*file)->find("blk.0.ffn_up.weight"));
  for (size_t i = 0; i < std::size(cases); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    EXPECT_EQ(half, cases[i].second) << i;
  }
}

TEST(Convert, Vocabulary) {
  const TemporaryFolder folder;
  write(make_llama(), folder);
  const auto output = folder.path() / "out.gguf";
  ASSERT_TRUE(convert(folder.path(), output, {}, pool()).ok());
  const auto file = ModelFile::open(output);
  ASSERT_TRUE(file.ok());
  const auto from_gguf = (*file)->vocab();
  ASSERT_TRUE(from_gguf.ok()) << from_gguf.error().message;
  const auto folder_model = ModelFile::open(folder.path());
  const auto from_folder = (*folder_model)->vocab();
  ASSERT_TRUE(from_folder.ok()) << from_folder.error().message;
  EXPECT_EQ(from_gguf->tokens, from_folder->tokens);
  EXPECT_EQ(from_gguf->types, from_folder->types);
  EXPECT_EQ(from_gguf->merges, from_folder->merges);
  EXPECT_EQ(from_gguf->pre_name, "qwen2");
  EXPECT_EQ(from_gguf->eos_id, from_folder->eos_id);
  EXPECT_EQ(from_gguf->chat_template, "{{ messages }}");
  EXPECT_EQ(from_gguf->tokens.size(), 40u);
  EXPECT_EQ(from_gguf->tokens[39], "[PAD39]");
  EXPECT_EQ(from_gguf->types[39], text::TokenType::kUnused);
  // The stop set taken from one file only: both ids of generation_config.json survive the conversion.
  std::set<text::TokenId> ends(from_gguf->end_of_generation_ids.begin(), from_gguf->end_of_generation_ids.end());
  ends.insert({from_gguf->eos_id, from_gguf->eot_id});
  EXPECT_TRUE(ends.contains(27) && ends.contains(3));
}

TEST(Convert, TooManyTokensForTheEmbedding) {
  HfBuilder b = make_llama();
  b.config["vocab_size"] = 20;
  b.add("model.embed_tokens.weight", {20, 24});
  b.add("lm_head.weight", {20, 24});
  const TemporaryFolder folder;
  write(b, folder);
  const auto report = convert(folder.path(), folder.path() / "out.gguf", {}, pool());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("28 tokens, but the embedding has 20 rows"), std::string::npos)
      << report.error().message;
}

// The output is an input, or cannot be written: nothing is lost, nothing half-made stays.
TEST(Convert, OutputsThatWouldDestroyOrCannotBe) {
  const TemporaryFolder folder, elsewhere;
  write(make_llama(), folder);
  const auto weights = folder.path() / "model.safetensors";
  const std::string before = *core::read_file(weights, 1 << 30);
  std::filesystem::create_symlink(weights, elsewhere.path() / "link");
  std::filesystem::create_hard_link(weights, elsewhere.path() / "hard");
  std::filesystem::create_directory(folder.path() / "x");
  for (const auto& output : {weights, elsewhere.path() / "link", elsewhere.path() / "hard",
                             folder.path() / "x" / ".." / "model.safetensors", folder.path() / "tokenizer.json"}) {
    const auto report = convert(folder.path(), output, {}, pool());
    ASSERT_FALSE(report.ok()) << output;
    EXPECT_NE(report.error().message.find("is the same file as the input"), std::string::npos)
        << report.error().message;
  }
  EXPECT_EQ(*core::read_file(weights, 1 << 30), before);
  for (const auto& [output, word] :
       {std::pair{folder.path() / "none" / "o.gguf", "No such file"}, {folder.path() / "x", "is a directory"}}) {
    const auto report = convert(folder.path(), output, {}, pool());
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().message.find(word), std::string::npos) << report.error().message;
  }
  // Stopped half way: no file, no remains.
  const auto stopped = convert(folder.path(), elsewhere.path() / "half.gguf",
                               {.progress = [](uint64_t done, uint64_t total) { return done < total / 2; }}, pool());
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(elsewhere.path()), {}), 2);
}

TEST(Convert, WrongArguments) {
  const TemporaryFolder folder;
  write(make_llama(), folder);
  const auto report = convert(folder.path(), folder.path() / "o", {.type = "q9"}, pool());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("'q9' is not one of F32 F16 BF16"), std::string::npos)
      << report.error().message;
  const auto file = convert(folder.path() / "config.json", folder.path() / "o", {}, pool());
  ASSERT_FALSE(file.ok());
  EXPECT_NE(file.error().message.find("is not a folder"), std::string::npos);
}

// Merges that were not read make every byte a token, and nobody notices until the written file is used.
TEST(Convert, VocabularyThatNoTokenizerCanUse) {
  HfBuilder b = make_llama();
  const TemporaryFolder folder;
  write(b, folder);
  std::string tokenizer = *core::read_file(folder.path() / "tokenizer.json", 1 << 20);
  const auto at = tokenizer.find("\"merges\":[");
  ASSERT_NE(at, std::string::npos);
  tokenizer.replace(at, tokenizer.find(']', at) + 1 - at, "\"merges\":[]");
  folder.write("tokenizer.json", tokenizer);
  const auto report = convert(folder.path(), folder.path() / "o", {}, pool());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("no merges"), std::string::npos) << report.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "o"));
}

// A value that the type cannot hold says where it is.
TEST(Convert, NanNamesTensorAndRow) {
  HfBuilder b = make_llama();
  b.config["intermediate_size"] = 32;
  for (int i = 0; i < 2; ++i) b.add_mlp(fmt::format("model.layers.{}.mlp.", i), 24, 32);
  std::vector<float> values(32 * 24, 0.5f);
  values[32 * 7 + 3] = std::numeric_limits<float>::quiet_NaN();
  b.raw("model.layers.1.mlp.down_proj.weight", "F32", {24, 32},
        {reinterpret_cast<const char*>(values.data()), values.size() * 4});
  const TemporaryFolder folder;
  write(b, folder);
  const auto report = convert(folder.path(), folder.path() / "o", {.type = "q4_0"}, pool());
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("tensor blk.1.ffn_down.weight, row 7"), std::string::npos)
      << report.error().message;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "o"));
}

}  // namespace
}  // namespace crest::format
