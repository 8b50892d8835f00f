#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace crest::model {
namespace {

using format::Metadata;
using format::Value;

Metadata llama() {
  Metadata m("file.gguf");
  m.set("general.architecture", Value::string("llama"));
  m.set("llama.block_count", Value::u32(3));
  m.set("llama.context_length", Value::u32(4096));
  m.set("llama.embedding_length", Value::u32(128));
  m.set("llama.feed_forward_length", Value::u32(256));
  m.set("llama.attention.head_count", Value::u32(4));
  m.set("llama.attention.head_count_kv", Value::u32(2));
  m.set("llama.attention.layer_norm_rms_epsilon", Value::f32(1e-5f));
  return m;
}

Metadata qwen35(std::string_view architecture = "qwen35") {
  Metadata m("file.gguf");
  const auto set = [&](std::string_view key, Value value) {
    m.set(fmt::format("{}.{}", architecture, key), std::move(value));
  };
  m.set("general.architecture", Value::string(std::string(architecture)));
  set("block_count", Value::u32(9));
  set("nextn_predict_layers", Value::u32(1));
  set("context_length", Value::u32(8192));
  set("embedding_length", Value::u32(512));
  set("feed_forward_length", Value::u32(1024));
  set("attention.head_count", Value::u32(2));
  set("attention.head_count_kv", Value::u32(1));
  set("attention.key_length", Value::u32(256));
  set("attention.value_length", Value::u32(256));
  set("attention.layer_norm_rms_epsilon", Value::f32(1e-6f));
  set("rope.dimension_count", Value::u32(64));
  set("rope.freq_base", Value::f32(1e7f));
  set("ssm.conv_kernel", Value::u32(4));
  set("ssm.state_size", Value::u32(128));
  set("ssm.group_count", Value::u32(2));
  set("ssm.time_step_rank", Value::u32(6));
  set("ssm.inner_size", Value::u32(768));
  set("full_attention_interval", Value::u32(4));
  return m;
}

std::string failure(const Metadata& metadata) {
  const auto result = parse_config(metadata);
  EXPECT_FALSE(result.ok());
  return result.ok() ? std::string() : result.error().message;
}

void expect_failure(const Metadata& metadata, std::initializer_list<std::string_view> parts) {
  const std::string message = failure(metadata);
  for (const auto part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
}

TEST(Config, Llama) {
  const auto config = parse_config(llama());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers.size(), 3u);
  EXPECT_TRUE(config->mtp_layers.empty());
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->layers[2].kv_heads, 2);
  EXPECT_EQ(config->layers[2].ffn, 256);
  EXPECT_FALSE(config->rope.neox);
  EXPECT_EQ(config->rope.dims, 32);
  EXPECT_FLOAT_EQ(config->attention_scale, 1 / std::sqrt(32.0f));
  EXPECT_FALSE(config->is_recurrent());
}

TEST(Config, Qwen35LayersAndHead) {
  const auto config = parse_config(qwen35());
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_EQ(config->layers.size(), 8u);
  ASSERT_EQ(config->mtp_layers.size(), 1u);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(config->layers[i].mixer, i % 4 == 3 ? Mixer::kAttention : Mixer::kGatedDeltaNet);
  }
  EXPECT_EQ(config->mtp_layers[0].mixer, Mixer::kAttention);
  EXPECT_EQ(config->mtp_layers[0].kv_heads, 1);
  EXPECT_EQ(config->delta_net.value_dim, 128);
  EXPECT_EQ(config->delta_net.conv_dim(), 2 * 256 + 768);
  EXPECT_TRUE(config->delta_net.tiled);
  EXPECT_EQ(config->rope.dims, 64);
  EXPECT_TRUE(config->rope.neox);
  EXPECT_TRUE(config->is_recurrent());
}

TEST(Config, HeadOrderOfHuggingFaceFolders) {
  auto m = qwen35();
  m.set("crest.v_head_order", Value::string("grouped"));
  EXPECT_FALSE(parse_config(m)->delta_net.tiled);
  m.set("crest.v_head_order", Value::string("mixed"));
  expect_failure(m, {"crest.v_head_order", "'mixed'", "tiled", "grouped"});
}

// llama.cpp PR#25334, issue table row 23: files that write values per layer, with 0 where a layer has no attention.
TEST(Config, ValuesPerLayer) {
  auto m = qwen35();
  m.set("qwen35.attention.head_count_kv", Value::i32s(std::vector<int32_t>{0, 0, 0, 1, 0, 0, 0, 1, 1}));
  const auto config = parse_config(m);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[3].kv_heads, 1);
  // The same number for every layer as an array, widths other than u32.
  auto array = llama();
  array.set("llama.attention.head_count", Value::i32s(std::vector<int32_t>{4, 4, 4}));
  array.set("llama.block_count", Value::u64(3));
  EXPECT_TRUE(parse_config(array).ok());
  array.set("llama.attention.head_count", Value::i32s(std::vector<int32_t>{4, 2, 4}));
  expect_failure(array, {"llama.attention.head_count", "2", "4"});
  array.set("llama.attention.head_count", Value::i32s(std::vector<int32_t>{4, 4}));
  expect_failure(array, {"llama.attention.head_count", "2", "3"});
}

TEST(Config, RecurrentLayerListOverridesTheInterval) {
  auto m = qwen35();
  m.set("qwen35.attention.recurrent_layers", Value::bools({true, false, true, true, true, true, true, false}));
  const auto config = parse_config(m);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->layers[1].mixer, Mixer::kAttention);
  EXPECT_EQ(config->layers[3].mixer, Mixer::kGatedDeltaNet);
  EXPECT_EQ(config->mtp_layers[0].mixer, Mixer::kAttention);
  m.set("qwen35.attention.recurrent_layers", Value::bools({true, false}));
  expect_failure(m, {"recurrent_layers", "2", "8"});
}

TEST(Config, MixtureOfExperts) {
  auto m = qwen35("qwen35moe");
  m.erase("qwen35moe.feed_forward_length");
  expect_failure(m, {"qwen35moe.expert_count"});
  m.set("qwen35moe.expert_count", Value::u32(8));
  m.set("qwen35moe.expert_used_count", Value::u32(3));
  m.set("qwen35moe.expert_feed_forward_length", Value::u32(64));
  m.set("qwen35moe.expert_shared_feed_forward_length", Value::u32(96));
  const auto config = parse_config(m);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->moe.experts, 8);
  EXPECT_EQ(config->moe.used, 3);
  EXPECT_EQ(config->moe.shared_ffn, 96);
  EXPECT_TRUE(config->moe.normalise);
  m.set("qwen35moe.expert_used_count", Value::u32(9));
  expect_failure(m, {"qwen35moe.expert_used_count", "9", "8"});
}

TEST(Config, GemmaWindows) {
  auto m = llama();
  Metadata g("file.gguf");
  for (const auto& [key, value] : m.entries())
    g.set(key.starts_with("llama.") ? "gemma3." + key.substr(6) : key, value);
  g.set("general.architecture", Value::string("gemma3"));
  g.set("gemma3.block_count", Value::u32(7));
  g.set("gemma3.attention.sliding_window", Value::u32(16));
  auto config = parse_config(g);
  ASSERT_TRUE(config.ok()) << config.error().message;
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(config->layers[i].window, i == 5 ? 0 : 16);
  EXPECT_FLOAT_EQ(config->embedding_scale, std::sqrt(128.0f));
  EXPECT_EQ(config->local_rope.theta, 10000.0);
  g.set("gemma3.attention.sliding_window_pattern", Value::bools({false, true, true, true, true, true, false}));
  config = parse_config(g);
  EXPECT_EQ(config->layers[0].window, 0);
  EXPECT_TRUE(config->layers[1].local_rope);
  g.set("gemma3.attention.sliding_window_pattern", Value::u32(3));
  config = parse_config(g);
  EXPECT_EQ(config->layers[2].window, 0);
  EXPECT_EQ(config->layers[3].window, 16);
  g.erase("gemma3.attention.sliding_window");
  expect_failure(g, {"gemma3.attention.sliding_window"});
}

TEST(Config, RopeScaling) {
  auto m = qwen35();
  m.set("qwen35.rope.scaling.type", Value::string("yarn"));
  m.set("qwen35.rope.scaling.factor", Value::f32(4));
  m.set("qwen35.rope.scaling.original_context_length", Value::u32(2048));
  const auto config = parse_config(m);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->rope.scaling, RopeScaling::kYarn);
  EXPECT_EQ(config->rope.original_context, 2048);
  EXPECT_NEAR(config->rope.attention_factor, 0.1 * std::log(4.0) + 1, 1e-12);
  m.set("qwen35.rope.scaling.yarn_attn_factor", Value::f32(1.25f));
  EXPECT_NEAR(parse_config(m)->rope.attention_factor, 1.25, 1e-12);
  m.set("qwen35.rope.scaling.attn_factor", Value::f32(2.0f));
  EXPECT_NEAR(parse_config(m)->rope.attention_factor, 2.5, 1e-12);
  m.set("qwen35.rope.scaling.type", Value::string("longrope"));
  expect_failure(m, {"rope.scaling.type", "'longrope'", "linear", "yarn"});
}

// An unsupported architecture says what it is and what is supported.
TEST(Config, UnknownArchitecture) {
  auto m = llama();
  m.set("general.architecture", Value::string("mamba2"));
  expect_failure(m, {"file.gguf", "'mamba2'", "llama", "qwen35moe", "gemma3"});
  m.erase("general.architecture");
  expect_failure(m, {"general.architecture"});
  auto mixtral = llama();
  mixtral.set("llama.expert_count", Value::u32(8));
  expect_failure(mixtral, {"llama.expert_count", "8"});
}

// Kind of fault: dimensions that contradict each other are believed. Each of them, one at a time, at the values that
// files get when a writer or a disk goes wrong.
TEST(Config, ContradictionsAreNamed) {
  const auto with = [](Metadata m, std::string_view key, Value value) {
    m.set(key, std::move(value));
    return m;
  };
  expect_failure(with(llama(), "llama.attention.head_count_kv", Value::u32(3)), {"head_count_kv", "3", "4"});
  expect_failure(with(llama(), "llama.attention.head_count_kv", Value::u32(0)), {"head_count_kv", "0"});
  expect_failure(with(llama(), "llama.attention.head_count", Value::u32(3)), {"embedding_length", "128", "3"});
  expect_failure(with(llama(), "llama.rope.dimension_count", Value::u32(34)), {"rope.dimension_count", "34", "32"});
  expect_failure(with(llama(), "llama.rope.dimension_count", Value::u32(7)), {"rope.dimension_count", "7"});
  expect_failure(with(llama(), "llama.attention.layer_norm_rms_epsilon", Value::f32(std::nanf(""))),
                 {"layer_norm_rms_epsilon"});
  expect_failure(with(llama(), "llama.rope.freq_base", Value::f32(0)), {"rope.freq_base"});
  expect_failure(with(qwen35(), "qwen35.ssm.time_step_rank", Value::u32(5)), {"time_step_rank", "5", "2"});
  expect_failure(with(qwen35(), "qwen35.ssm.inner_size", Value::u32(769)), {"inner_size", "769"});
  expect_failure(with(qwen35(), "qwen35.nextn_predict_layers", Value::u32(9)), {"nextn_predict_layers", "9", "8"});
  expect_failure(with(qwen35(), "qwen35.attention.value_length", Value::u32(128)), {"value_length", "128", "256"});
}

TEST(Config, HostileNumbers) {
  for (const auto& base : {llama(), qwen35()}) {
    for (const auto& [key, value] : base.entries()) {
      if (!format::is_integer(value.type())) continue;
      for (const uint64_t bad :
           {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 31, uint64_t{1} << 32, (uint64_t{1} << 63) - 1}) {
        auto m = base;
        m.set(key, Value::u64(bad));
        const auto result = parse_config(m);
        if (!result.ok()) {
          EXPECT_NE(result.error().message.find("file.gguf"), std::string::npos);
        }
        EXPECT_TRUE(!result.ok() || bad <= uint64_t{1} << 30) << key << " = " << bad;
      }
      auto m = base;
      m.set(key, Value::string("many"));
      expect_failure(m, {key});
      m.erase(key);
      (void)parse_config(m);
    }
  }
}

}  // namespace
}  // namespace crest::model
