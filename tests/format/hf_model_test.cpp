#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "format/hf_builder.h"
#include "format/model_file.h"

namespace crest::format {
namespace {

using crest::testing::TemporaryFolder;
using tensor::DType;

std::shared_ptr<const ModelFile> open(const TemporaryFolder& folder, bool as_converted = false) {
  auto model = ModelFile::open(folder.path(), {as_converted});
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? *model : nullptr;
}

std::string open_error(const HfBuilder& b) {
  const TemporaryFolder folder;
  b.write(folder);
  const auto model = ModelFile::open(folder.path());
  return model.ok() ? "" : model.error().message;
}

// All values of a tensor, poisoned before.
std::vector<float> read(const ModelFile& model, const std::string& name) {
  const TensorEntry* entry = model.find(name);
  EXPECT_NE(entry, nullptr) << name;
  if (entry == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(entry->shape.elements()), -12345.0f);
  const int64_t rows = entry->shape.rows();
  // In two unequal parts, to try an odd start.
  const int64_t first = rows / 3;
  EXPECT_TRUE(model.read_rows(*entry, 0, first, values.data()).ok());
  EXPECT_TRUE(model.read_rows(*entry, first, rows - first, values.data() + first * entry->shape[0]).ok());
  const auto data = model.data(*entry);
  EXPECT_TRUE(data.ok());
  EXPECT_EQ(data->bytes.size(), entry->bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    float stored = 0;
    if (entry->dtype == DType::kF32) {
      std::memcpy(&stored, data->bytes.data() + 4 * i, 4);
    } else {
      uint16_t half = 0;
      std::memcpy(&half, data->bytes.data() + 2 * i, 2);
      stored = tensor::bf16_to_f32(half);
    }
    EXPECT_EQ(stored, values[i]) << name << " " << i;
  }
  return values;
}

using Rows = std::vector<float>;

Rows plus_one(Rows values) {
  for (float& value : values) value += 1;
  return values;
}

// Row i of the result is row order(i) of the values.
template <typename F>
Rows gather(const Rows& values, int64_t rows, int64_t columns, F order) {
  Rows result;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < columns; ++c) result.push_back(values[static_cast<size_t>(order(i) * columns + c)]);
  }
  return result;
}

TEST(HfModel, Llama) {
  const HfBuilder b = make_llama();
  const TemporaryFolder folder;
  b.write_sharded(folder, 3);
  const auto model = open(folder);
  ASSERT_NE(model, nullptr);
  const Metadata& m = model->metadata();
  EXPECT_EQ(model->architecture(), "llama");
  EXPECT_EQ(*m.integer("llama.block_count", 0, 100), 2);
  EXPECT_EQ(*m.integer("llama.attention.head_count_kv", 0, 100), 2);
  EXPECT_EQ(*m.integer("llama.rope.dimension_count", 0, 100), 8);
  EXPECT_EQ(*m.number("llama.rope.freq_base"), 500000);
  EXPECT_FLOAT_EQ(static_cast<float>(*m.number("llama.attention.layer_norm_rms_epsilon")), 1e-5f);
  EXPECT_EQ(model->tensors().size(), 3u + 1 + 2 * 9);
  EXPECT_EQ(read(*model, "token_embd.weight"), b.values.at("model.embed_tokens.weight"));
  EXPECT_EQ(read(*model, "output.weight"), b.values.at("lm_head.weight"));
  EXPECT_EQ(read(*model, "blk.1.ffn_norm.weight"), b.values.at("model.layers.1.post_attention_layernorm.weight"));
  EXPECT_EQ(read(*model, "blk.1.attn_v.weight"), b.values.at("model.layers.1.self_attn.v_proj.weight"));
  // Channel 2j and 2j+1 of a head are channels j and j + 4 of Hugging Face's.
  const auto order = [](int64_t i) { return i / 8 * 8 + i % 8 / 2 + i % 2 * 4; };
  EXPECT_EQ(read(*model, "blk.0.attn_q.weight"),
            gather(b.values.at("model.layers.0.self_attn.q_proj.weight"), 48, 24, order));
  EXPECT_EQ(read(*model, "blk.1.attn_k.weight"),
            gather(b.values.at("model.layers.1.self_attn.k_proj.weight"), 16, 24, order));
  EXPECT_EQ(model->find("blk.0.attn_q.weight")->shape, (Shape{24, 48}));
  EXPECT_EQ(model->find("blk.0.attn_norm.weight")->dtype, DType::kF32);
  EXPECT_EQ(model->find("blk.0.attn_v.weight")->dtype, DType::kBF16);
  EXPECT_TRUE(model->data(*model->find("blk.0.attn_v.weight"))->mapped);
}

// The frequencies of Llama 3.1's rule (its model card's code), written independently of the implementation.
TEST(HfModel, Llama3RopeFactors) {
  const TemporaryFolder folder;
  make_llama().write(folder);
  const auto model = open(folder);
  ASSERT_NE(model, nullptr);
  const auto factors = read(*model, "rope_freqs.weight");
  ASSERT_EQ(factors.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const double freq = 1.0 / std::pow(500000.0, i / 4.0);
    const double wavelen = 2 * M_PI / freq;
    double wanted = freq;
    if (wavelen > 128.0 / 1) {
      wanted = freq / 8;
    } else if (wavelen > 128.0 / 4) {
      const double smooth = (128.0 / wavelen - 1) / (4 - 1);
      wanted = (1 - smooth) * freq / 8 + smooth * freq;
    }
    EXPECT_NEAR(freq / factors[static_cast<size_t>(i)], wanted, 1e-6 * wanted) << i;
  }
}

TEST(HfModel, Qwen2HasBiasesAndTies) {
  const HfBuilder b = make_qwen2();
  const TemporaryFolder folder;
  b.write(folder);
  const auto model = open(folder);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->find("output.weight"), nullptr);
  EXPECT_EQ(read(*model, "blk.0.attn_q.bias"), b.values.at("model.layers.0.self_attn.q_proj.bias"));
  EXPECT_EQ(model->find("blk.0.attn_k.bias")->dtype, DType::kF32);
  EXPECT_EQ(*model->metadata().integer("qwen2.attention.key_length", 0, 100), 8);
}

TEST(HfModel, ExpertsFusedSplitAndSingle) {
  const HfBuilder fused = make_qwen3_moe(true);
  const TemporaryFolder folder;
  fused.write(folder);
  const auto& gate_up = fused.values.at("model.layers.0.mlp.experts.gate_up_proj");
  {
    const auto model = open(folder);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(read(*model, "blk.0.ffn_gate_up_exps.weight"), gate_up);
    EXPECT_EQ(model->find("blk.0.ffn_gate_up_exps.weight")->shape, (Shape{24, 20, 5}));
    EXPECT_TRUE(model->data(*model->find("blk.0.ffn_gate_up_exps.weight"))->mapped);
    EXPECT_EQ(model->find("blk.0.ffn_gate_exps.weight"), nullptr);
    EXPECT_EQ(model->find("blk.0.ffn_gate_inp.weight")->dtype, DType::kF32);
  }
  const auto model = open(folder, true);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->find("blk.0.ffn_gate_up_exps.weight"), nullptr);
  EXPECT_EQ(model->find("blk.0.ffn_up_exps.weight")->shape, (Shape{24, 10, 5}));
  EXPECT_EQ(read(*model, "blk.0.ffn_gate_exps.weight"),
            gather(gate_up, 50, 24, [](int64_t i) { return i / 10 * 20 + i % 10; }));
  EXPECT_EQ(read(*model, "blk.0.ffn_up_exps.weight"),
            gather(gate_up, 50, 24, [](int64_t i) { return i / 10 * 20 + 10 + i % 10; }));
  EXPECT_EQ(read(*model, "blk.0.ffn_down_exps.weight"), fused.values.at("model.layers.0.mlp.experts.down_proj"));

  const HfBuilder single = make_qwen3_moe(false);
  const TemporaryFolder other;
  single.write(other);
  const auto stacked = open(other);
  ASSERT_NE(stacked, nullptr);
  Rows down;
  for (int e = 0; e < 5; ++e) {
    const auto& part = single.values.at(fmt::format("model.layers.0.mlp.experts.{}.down_proj.weight", e));
    down.insert(down.end(), part.begin(), part.end());
  }
  EXPECT_EQ(read(*stacked, "blk.0.ffn_down_exps.weight"), down);
  EXPECT_EQ(stacked->find("blk.0.ffn_down_exps.weight")->shape, (Shape{10, 24, 5}));
}

class HfModelQwen35 : public ::testing::TestWithParam<const char*> {};

// The published prefix, that of text exports and a rarer one.
TEST_P(HfModelQwen35, GatedDeltaNet) {
  const std::string prefix = GetParam();
  const HfBuilder b = make_qwen35(true, prefix);
  const TemporaryFolder folder;
  b.write(folder);
  const auto at = [&](const std::string& name) { return b.values.at(prefix + "layers.0.linear_attn." + name); };
  const auto loaded = open(folder);
  const auto converted = open(folder, true);
  ASSERT_NE(loaded, nullptr);
  ASSERT_NE(converted, nullptr);
  EXPECT_EQ(loaded->architecture(), "qwen35moe");
  EXPECT_EQ(*loaded->metadata().string("crest.v_head_order"), "grouped");
  EXPECT_FALSE(converted->metadata().contains("crest.v_head_order"));
  for (const auto& [key, value] : {std::pair{"block_count", 5},
                                   {"nextn_predict_layers", 1},
                                   {"ssm.group_count", 2},
                                   {"ssm.time_step_rank", 6},
                                   {"ssm.inner_size", 48},
                                   {"ssm.state_size", 8},
                                   {"rope.dimension_count", 4},
                                   {"expert_shared_feed_forward_length", 12}})
    EXPECT_EQ(*loaded->metadata().integer(loaded->key(key), 0, 1000), value) << key;
  EXPECT_EQ(*loaded->metadata().integers("qwen35moe.rope.dimension_sections", 0, 99),
            (std::vector<int64_t>{1, 1, 0, 0}));

  // Loading: as stored. Converting: tiled head v*2 + k is grouped head k*3 + v.
  const auto head = [](int64_t h) { return h % 2 * 3 + h / 2; };
  const auto by_head = [&](int64_t size) { return [=](int64_t i) { return head(i / size) * size + i % size; }; };
  const auto mixed = [&](int64_t i) { return i < 32 ? i : 32 + by_head(8)(i - 32); };
  EXPECT_EQ(read(*loaded, "blk.0.attn_qkv.weight"), at("in_proj_qkv.weight"));
  EXPECT_EQ(read(*converted, "blk.0.attn_qkv.weight"), gather(at("in_proj_qkv.weight"), 80, 24, mixed));
  EXPECT_EQ(read(*converted, "blk.0.attn_gate.weight"), gather(at("in_proj_z.weight"), 48, 24, by_head(8)));
  EXPECT_EQ(read(*converted, "blk.0.ssm_alpha.weight"), gather(at("in_proj_a.weight"), 6, 24, head));
  EXPECT_EQ(read(*converted, "blk.0.ssm_beta.weight"), gather(at("in_proj_b.weight"), 6, 24, head));
  EXPECT_EQ(read(*loaded, "blk.0.ssm_conv1d.weight"), at("conv1d.weight"));
  EXPECT_EQ(read(*converted, "blk.0.ssm_conv1d.weight"), gather(at("conv1d.weight"), 80, 4, mixed));
  EXPECT_EQ(converted->find("blk.0.ssm_conv1d.weight")->shape, (Shape{4, 80}));
  EXPECT_EQ(converted->find("blk.0.ssm_conv1d.weight")->dtype, DType::kF32);
  EXPECT_EQ(read(*converted, "blk.0.ssm_dt.bias"), gather(at("dt_bias"), 6, 1, head));
  EXPECT_EQ(read(*loaded, "blk.0.ssm_out.weight"), at("out_proj.weight"));
  Rows out;
  for (int64_t r = 0; r < 24; ++r) {
    const auto row = gather(at("out_proj.weight"), 48, 1, [&](int64_t i) { return r * 48 + by_head(8)(i); });
    out.insert(out.end(), row.begin(), row.end());
  }
  EXPECT_EQ(read(*converted, "blk.0.ssm_out.weight"), out);
  const auto decay = read(*converted, "blk.0.ssm_a");
  for (int64_t h = 0; h < 6; ++h)
    EXPECT_FLOAT_EQ(decay[static_cast<size_t>(h)], -std::exp(at("A_log")[static_cast<size_t>(head(h))])) << h;

  // Norms: one more, but not the one inside the mixer.
  EXPECT_EQ(read(*loaded, "blk.0.ssm_norm.weight"), at("norm.weight"));
  EXPECT_EQ(read(*loaded, "blk.0.attn_norm.weight"), plus_one(b.values.at(prefix + "layers.0.input_layernorm.weight")));
  EXPECT_EQ(read(*loaded, "output_norm.weight"), plus_one(b.values.at(prefix + "norm.weight")));
  EXPECT_EQ(read(*loaded, "blk.3.attn_q_norm.weight"),
            plus_one(b.values.at(prefix + "layers.3.self_attn.q_norm.weight")));
  EXPECT_EQ(read(*loaded, "blk.3.attn_q.weight"), b.values.at(prefix + "layers.3.self_attn.q_proj.weight"));
  EXPECT_EQ(read(*loaded, "blk.1.ffn_gate_inp_shexp.weight"),
            b.values.at(prefix + "layers.1.mlp.shared_expert_gate.weight"));
  EXPECT_EQ(loaded->find("blk.1.ffn_gate_inp_shexp.weight")->shape, (Shape{24}));

  // The MTP head: one more block, its norms shifted too.
  EXPECT_EQ(read(*loaded, "blk.4.nextn.eh_proj.weight"), b.values.at("mtp.fc.weight"));
  EXPECT_EQ(read(*loaded, "blk.4.nextn.enorm.weight"), plus_one(b.values.at("mtp.pre_fc_norm_embedding.weight")));
  EXPECT_EQ(read(*loaded, "blk.4.nextn.hnorm.weight"), plus_one(b.values.at("mtp.pre_fc_norm_hidden.weight")));
  EXPECT_EQ(read(*loaded, "blk.4.nextn.shared_head_norm.weight"), plus_one(b.values.at("mtp.norm.weight")));
  EXPECT_EQ(read(*loaded, "blk.4.attn_k.weight"), b.values.at("mtp.layers.0.self_attn.k_proj.weight"));
  EXPECT_EQ(loaded->tensors().size(), 3u + 3 * 18 + 15 + 19) << "vision tensors are left out";
}

INSTANTIATE_TEST_SUITE_P(Prefixes, HfModelQwen35,
                         ::testing::Values("model.language_model.", "model.", "language_model."));

// A configuration that announces an MTP head which is not there.
TEST(HfModel, MissingMtpIsAbsentMtp) {
  const TemporaryFolder folder;
  make_qwen35(false, "model.", false).write(folder);
  const auto model = open(folder);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(*model->metadata().integer("qwen35.block_count", 0, 9), 4);
  EXPECT_FALSE(model->metadata().contains("qwen35.nextn_predict_layers"));
}

// Norms shifted twice, or not at all: only the shape of the convolution tells, not the presence of mtp tensors.
TEST(HfModel, MlxConvertedCheckpointsAreShiftedAlready) {
  for (const bool mtp : {false, true}) {
    HfBuilder b = make_qwen35(false, "model.", mtp);
    for (auto& [name, tensor] : b.tensors) {
      if (name.ends_with("conv1d.weight")) tensor.shape = {80, 4, 1};
    }
    const TemporaryFolder folder;
    b.write(folder);
    const auto model = open(folder);
    ASSERT_NE(model, nullptr);
    EXPECT_EQ(read(*model, "blk.0.attn_norm.weight"), b.values.at("model.layers.0.input_layernorm.weight"));
    EXPECT_EQ(read(*model, "blk.0.ssm_conv1d.weight"), b.values.at("model.layers.0.linear_attn.conv1d.weight"));
    if (mtp) {
      EXPECT_EQ(read(*model, "blk.4.nextn.enorm.weight"), b.values.at("mtp.pre_fc_norm_embedding.weight"));
    }
  }
}

TEST(HfModel, Gemma3TextAndMultimodal) {
  for (const bool multimodal : {false, true}) {
    const HfBuilder b = make_gemma3(multimodal);
    const TemporaryFolder folder;
    b.write(folder);
    const auto model = open(folder);
    ASSERT_NE(model, nullptr);
    const std::string layer = multimodal ? "language_model.model.layers.1." : "model.layers.1.";
    EXPECT_EQ(read(*model, "blk.1.post_ffw_norm.weight"),
              plus_one(b.values.at(layer + "post_feedforward_layernorm.weight")));
    EXPECT_EQ(read(*model, "blk.1.ffn_norm.weight"), plus_one(b.values.at(layer + "pre_feedforward_layernorm.weight")));
    EXPECT_EQ(read(*model, "blk.1.post_attention_norm.weight"),
              plus_one(b.values.at(layer + "post_attention_layernorm.weight")));
    EXPECT_EQ(model->find("output.weight"), nullptr);
    const Metadata& m = model->metadata();
    EXPECT_EQ(*m.number("gemma3.rope.freq_base"), 1e6);
    EXPECT_EQ(*m.number("gemma3.rope.freq_base_swa"), 1e4);
    EXPECT_EQ(*m.string("gemma3.rope.scaling.type"), "linear");
    EXPECT_EQ(*m.number("gemma3.rope.scaling.factor"), 8);
    EXPECT_EQ(*m.integers("gemma3.attention.sliding_window_pattern", 0, 1), (std::vector<int64_t>{1, 0}));
    EXPECT_FALSE(m.contains("gemma3.attention.scale"));
  }
  // The newer spelling of the same, and a query scale that is not the head size's (27B).
  HfBuilder b = make_gemma3(false);
  for (const char* old : {"sliding_window_pattern", "rope_theta", "rope_local_base_freq", "rope_scaling"})
    b.config.erase(old);
  b.config["layer_types"] = {"sliding_attention", "full_attention"};
  b.config["query_pre_attn_scalar"] = 64;
  b.config["rope_parameters"] = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
                                 {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 20000}}}};
  const TemporaryFolder folder;
  b.write(folder);
  const auto model = open(folder);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(*model->metadata().number("gemma3.rope.freq_base_swa"), 2e4);
  EXPECT_EQ(*model->metadata().number("gemma3.rope.scaling.factor"), 8);
  EXPECT_EQ(*model->metadata().number("gemma3.attention.scale"), 0.125);
}

TEST(HfModel, Yarn) {
  HfBuilder b = make_qwen35(false);
  b.config["text_config"]["rope_parameters"]["rope_type"] = "yarn";
  b.config["text_config"]["rope_parameters"]["factor"] = 4.0;
  b.config["text_config"]["rope_parameters"]["original_max_position_embeddings"] = 1024;
  const TemporaryFolder folder;
  b.write(folder);
  const auto model = open(folder);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(*model->metadata().string("qwen35.rope.scaling.type"), "yarn");
  EXPECT_EQ(*model->metadata().number("qwen35.rope.scaling.factor"), 4);
  EXPECT_EQ(*model->metadata().integer("qwen35.rope.scaling.original_context_length", 1, 1 << 20), 1024);
}

TEST(HfModel, ErrorsNameTheFieldAndWhatIsSupported) {
  const auto check = [](std::string_view field, nlohmann::json value, std::vector<std::string> words) {
    HfBuilder b = make_llama();
    if (value.is_discarded()) {
      b.config.erase(std::string(field));
    } else {
      b.config[std::string(field)] = std::move(value);
    }
    const std::string text = open_error(b);
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << field << ": " << text;
  };
  const auto absent = nlohmann::json(nlohmann::json::value_t::discarded);
  check("model_type", "mamba", {"config.json", "\"mamba\" is not supported", "qwen3_5_moe", "gemma3"});
  check("architectures", {"LlamaForSequenceClassification"}, {"LlamaForSequenceClassification", "ForCausalLM"});
  check("hidden_size", absent, {"hidden_size is missing"});
  check("hidden_size", 0, {"hidden_size is 0, expected an integer from 1"});
  check("hidden_size", -1, {"hidden_size is -1"});
  check("hidden_size", 24.5, {"hidden_size is 24.5"});
  check("hidden_size", "24", {"hidden_size is \"24\""});
  check("hidden_size", 1ull << 63, {"hidden_size is 9223372036854775808"});
  check("hidden_size", 25, {"shape is [40, 24], expected [40, 25]"});
  check("num_hidden_layers", 3, {"model.layers.2.input_layernorm.weight is missing"});
  check("num_hidden_layers", 1 << 30, {"num_hidden_layers is"});
  check("num_key_value_heads", 4, {"num_attention_heads 6 is no multiple of num_key_value_heads 4"});
  check("head_dim", 7, {"head_dim is 7"});
  check("hidden_act", "relu", {"hidden_act is \"relu\"", "silu"});
  check("rope_scaling", {{"rope_type", "longrope"}, {"factor", 2}},
        {"\"longrope\"", "default, linear, yarn and llama3"});
  check("rope_scaling", {{"rope_type", "llama3"}, {"factor", 2}}, {"low_freq_factor is missing"});
  check("rms_norm_eps", -1, {"rms_norm_eps is -1"});
  check("quantization_config", {{"quant_method", "gptq"}}, {"\"gptq\"", "paroquant"});
  check("text_config", 5, {"text_config: is not a JSON object"});
  check("tie_word_embeddings", "yes", {"tie_word_embeddings is \"yes\""});
}

// Qwen 3.8 names the activation that its predecessors have too; another one would change every answer.
TEST(HfModel, OutputGateType) {
  HfBuilder b = make_qwen35(false);
  b.config["text_config"]["output_gate_type"] = "swish";
  EXPECT_EQ(open_error(b), "");
  b.config["text_config"]["output_gate_type"] = "sigmoid";
  EXPECT_NE(open_error(b).find("output_gate_type is \"sigmoid\"; supported are swish"), std::string::npos);
}

TEST(HfModel, WeightsMustFit) {
  HfBuilder b = make_llama();
  b.tensors.erase("lm_head.weight");
  EXPECT_NE(open_error(b).find("lm_head.weight is missing"), std::string::npos);
  b = make_llama();
  b.raw("lm_head.weight", "U8", {40, 24}, std::string(960, 'x'));
  EXPECT_NE(open_error(b).find("dtype U8 is not supported for weights; supported are F32"), std::string::npos);
  b = make_llama();
  b.tensors["model.layers.0.mlp.down_proj.weight"].shape = {20, 24};
  EXPECT_NE(open_error(b).find("down_proj.weight: shape is [20, 24], expected [24, 20]"), std::string::npos);
  b = make_llama();
  b.tensors.erase("model.embed_tokens.weight");
  EXPECT_NE(open_error(b).find("embed_tokens.weight is missing"), std::string::npos);
}

// Tensors that do not lie aligned in the file are copied before anybody reads numbers from them.
TEST(HfModel, UnalignedData) {
  const HfBuilder b = make_qwen2();
  const TemporaryFolder folder;
  b.write(folder);
  folder.write("model.safetensors", HfBuilder::pack(b.tensors, 1));
  const auto model = open(folder);
  ASSERT_NE(model, nullptr);
  const auto data = model->data(*model->find("blk.0.attn_v.weight"));
  ASSERT_TRUE(data.ok());
  EXPECT_FALSE(data->mapped);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data->bytes.data()) % 2, 0u);
  EXPECT_EQ(read(*model, "blk.0.attn_v.weight"), b.values.at("model.layers.0.self_attn.v_proj.weight"));
}

TEST(HfModel, WhatIsNoFolderOfAModel) {
  const TemporaryFolder folder;
  auto model = ModelFile::open(folder.path());
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("not a Hugging Face folder"), std::string::npos) << model.error().message;
  const auto single = folder.write("model.safetensors", safetensors_bytes("{}", ""));
  model = ModelFile::open(single);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.error().message.find("give the folder"), std::string::npos) << model.error().message;
}

// A file that shrinks after it was opened is reported, not a bus error.
TEST(HfModel, WeightsThatShrink) {
  const TemporaryFolder folder;
  make_llama().write(folder);
  const auto model = open(folder);
  ASSERT_NE(model, nullptr);
  std::filesystem::resize_file(folder.path() / "model.safetensors", 100);
  float value[24];
  const TensorEntry* entry = model->find("blk.0.attn_q.weight");
  EXPECT_FALSE(model->data(*entry).ok());
  EXPECT_FALSE(model->read_rows(*entry, 0, 1, value).ok());
}

}  // namespace
}  // namespace crest::format
