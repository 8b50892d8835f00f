#include "format/inspect.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "format/gguf_builder.h"
#include "format/hf_builder.h"

namespace crest::format {
namespace {

using crest::testing::TemporaryFolder;

TEST(Inspect, Gguf) {
  GgufBuilder b;
  b.set("unknown.key", Value::raw(ValueType::kU64, std::string(8, '\xff'), false));
  b.set("x.float", Value::f32(0.1f));
  b.set("x.nan", Value::f32(std::numeric_limits<float>::quiet_NaN()));
  b.set("x.text", Value::string("not utf-8: \xff"));
  b.set("tokenizer.ggml.tokens", Value::strings(std::vector<std::string>(100, "t")));
  b.f32("a", {3, 2});
  b.tensor("q", tensor::DType::kQ4_0, {64}, std::string(36, 'q'));
  const TemporaryFolder folder;
  const auto report = inspect(folder.write("m.gguf", b.bytes()));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->parameters, 70u);
  EXPECT_EQ(report->vocab_size, 100);
  const auto json = nlohmann::json::parse(to_json(*report));
  EXPECT_EQ(json["kind"], "gguf");
  EXPECT_EQ(json["n_tensors"], 2);
  EXPECT_EQ(json["gguf_version"], 3);
  EXPECT_EQ(json["metadata"]["unknown.key"]["value"], ~uint64_t{0});
  EXPECT_EQ(json["metadata"]["unknown.key"]["type"], "u64");
  EXPECT_EQ(json["metadata"]["x.float"]["value"].dump(), "0.1");
  EXPECT_TRUE(json["metadata"]["x.nan"]["value"].is_null());
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"]["value"]["count"], 100);
  EXPECT_EQ(json["tensors"][1]["dtype"], "Q4_0");
  EXPECT_EQ(json["tensors"][0]["shape"], nlohmann::json({3, 2}));
  EXPECT_EQ(json["types"][0]["dtype"], "Q4_0");
}

TEST(Inspect, VocabularyWithoutTensors) {
  GgufBuilder b;
  b.set("tokenizer.ggml.tokens", Value::strings({"a", "b"}));
  const TemporaryFolder folder;
  const auto report = inspect(folder.write("v.gguf", b.bytes()));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->tensors.size(), 0u);
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("vocabulary without weights"), std::string::npos);
}

TEST(Inspect, Safetensors) {
  const TemporaryFolder folder;
  const auto report = inspect(folder.write(
      "x.safetensors",
      safetensors_bytes(R"({"__metadata__":{"format":"pt"},"u":{"dtype":"U32","shape":[2,1],"data_offsets":[0,8]}})",
                        "abcdefgh")));
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto json = nlohmann::json::parse(to_json(*report));
  EXPECT_EQ(json["kind"], "safetensors");
  EXPECT_EQ(json["metadata"]["format"]["value"], "pt");
  EXPECT_EQ(json["tensors"][0]["dtype"], "U32");
  const auto empty = inspect(folder.write("e.safetensors", safetensors_bytes("{}", "")));
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->tensors.size(), 0u);
}

TEST(Inspect, Folders) {
  const TemporaryFolder folder;
  make_qwen35(true).write_sharded(folder, 4);
  const auto report = inspect(folder.path());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->files.size(), 4u);
  EXPECT_EQ(report->architecture, "qwen35moe");
  EXPECT_EQ(nlohmann::json::parse(to_json(*report))["n_tensors"], report->tensors.size());
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("tokenizer"), std::string::npos);

  // An architecture that cannot be run is still shown.
  HfBuilder other = make_llama();
  other.config["model_type"] = "mamba";
  const TemporaryFolder second;
  other.write(second);
  const auto shown = inspect(second.path());
  ASSERT_TRUE(shown.ok()) << shown.error().message;
  EXPECT_EQ(shown->tensors.size(), other.tensors.size());
  EXPECT_NE(shown->notes.at(0).find("\"mamba\" is not supported"), std::string::npos);
}

TEST(Inspect, OtherFiles) {
  const TemporaryFolder folder;
  for (const auto& [content, word] : {std::pair{"", "is empty"}, {"hello", "something unknown"}}) {
    const auto report = inspect(folder.write("f", content));
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().message.find(word), std::string::npos) << report.error().message;
    EXPECT_NE(report.error().message.find("a GGUF file, a safetensors file or a Hugging Face folder"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace crest::format
