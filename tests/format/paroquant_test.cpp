#include "format/paroquant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "format/hf_builder.h"
#include "format/model_file.h"
#include "tensor/half.h"

namespace crest::format {
namespace {

using crest::testing::TemporaryFolder;
using tensor::DType;

std::string f16_bytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const uint16_t half = tensor::f32_to_f16(value);
    bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
  }
  return bytes;
}

template <typename T>
std::string integer_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A ParoQuant linear with random content, and what it computes.
struct Linear {
  int64_t out, in, rounds = 3;
  std::vector<int> q, zero;                  // [out][in], [out][in/128]
  std::vector<float> scale, theta, channel;  // [out][in/128], [rounds][in/2], [in]
  std::vector<int16_t> pairs;                // [rounds][in]

  Linear(int64_t out_features, int64_t in_features, std::mt19937& random) : out(out_features), in(in_features) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    const auto half = [](float x) { return tensor::f16_to_f32(tensor::f32_to_f16(x)); };
    for (int64_t i = 0; i < out * in; ++i) q.push_back(static_cast<int>(random() % 16));
    for (int64_t i = 0; i < out * in / 128; ++i) zero.push_back(static_cast<int>(random() % 16));
    for (int64_t i = 0; i < out * in / 128; ++i) scale.push_back(half(0.02f + 0.01f * uniform(random)));
    for (int64_t i = 0; i < rounds * in / 2; ++i) theta.push_back(half(3 * uniform(random)));
    for (int64_t i = 0; i < in; ++i) channel.push_back(half(1 + 0.5f * uniform(random)));
    for (int64_t g = 0; g < rounds * in / 128; ++g) {
      std::vector<int16_t> channels(128);
      std::iota(channels.begin(), channels.end(), int16_t{0});
      std::ranges::shuffle(channels, random);
      pairs.insert(pairs.end(), channels.begin(), channels.end());
    }
  }

  // y = deq(W') R(channel * x), as the format's definition says, forwards.
  std::vector<double> forward(std::vector<double> x) const {
    for (int64_t i = 0; i < in; ++i) x[static_cast<size_t>(i)] *= channel[static_cast<size_t>(i)];
    for (int64_t r = 0; r < rounds; ++r) {
      for (int64_t g = 0; g < in / 128; ++g) {
        for (int64_t t = 0; t < 64; ++t) {
          const auto at = static_cast<size_t>(r * in + g * 128 + 2 * t);
          double& a = x[static_cast<size_t>(g * 128 + pairs[at])];
          double& b = x[static_cast<size_t>(g * 128 + pairs[at + 1])];
          const double angle = theta[static_cast<size_t>(r * in / 2 + g * 64 + t)];
          const double turned = a * std::cos(angle) + b * std::sin(angle);
          b = -a * std::sin(angle) + b * std::cos(angle);
          a = turned;
        }
      }
    }
    std::vector<double> y(static_cast<size_t>(out));
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < in; ++i) {
        const auto g = static_cast<size_t>(o * (in / 128) + i / 128);
        y[static_cast<size_t>(o)] +=
            (q[static_cast<size_t>(o * in + i)] - zero[g]) * static_cast<double>(scale[g]) * x[static_cast<size_t>(i)];
      }
    }
    return y;
  }

  // W so that y = W x, column by column.
  std::vector<float> plain() const {
    std::vector<float> w(static_cast<size_t>(out * in));
    for (int64_t i = 0; i < in; ++i) {
      std::vector<double> unit(static_cast<size_t>(in));
      unit[static_cast<size_t>(i)] = 1;
      const auto y = forward(unit);
      for (int64_t o = 0; o < out; ++o)
        w[static_cast<size_t>(o * in + i)] = static_cast<float>(y[static_cast<size_t>(o)]);
    }
    return w;
  }

  template <typename F>
  std::vector<uint32_t> pack(int64_t rows, F value) const {
    constexpr int kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};  // nibble p holds column 8w + kOrder[p]
    std::vector<uint32_t> words;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t w = 0; w < out / 8; ++w) {
        uint32_t word = 0;
        for (int p = 0; p < 8; ++p) word |= static_cast<uint32_t>(value(i, 8 * w + kOrder[p])) << (4 * p);
        words.push_back(word);
      }
    }
    return words;
  }
  std::vector<float> scales_by_group() const {
    std::vector<float> values;
    for (int64_t g = 0; g < in / 128; ++g) {
      for (int64_t o = 0; o < out; ++o) values.push_back(scale[static_cast<size_t>(o * (in / 128) + g)]);
    }
    return values;
  }

  void add_matrix(HfBuilder& b, const std::string& module) const {
    const auto words = pack(in, [&](int64_t i, int64_t o) { return q[static_cast<size_t>(o * in + i)]; });
    const auto zeros =
        pack(in / 128, [&](int64_t g, int64_t o) { return zero[static_cast<size_t>(o * (in / 128) + g)]; });
    b.raw(module + "qweight", "I32", {in, out / 8}, integer_bytes(words));
    b.raw(module + "qzeros", "I32", {in / 128, out / 8}, integer_bytes(zeros));
    b.raw(module + "scales", "F16", {in / 128, out}, f16_bytes(scales_by_group()));
  }
  void add_rotation(HfBuilder& b, const std::string& prefix) const {
    b.raw(prefix + "theta", "F16", {rounds, in / 2}, f16_bytes(theta));
    b.raw(prefix + "pairs", "I16", {rounds, in}, integer_bytes(pairs));
    b.raw(prefix + "channel_scales", "F16", {1, in}, f16_bytes(channel));
  }
  void add(HfBuilder& b, const std::string& module) const {
    add_matrix(b, module + ".");
    add_rotation(b, module + ".");
  }
  void add_legacy(HfBuilder& b, const std::string& module) const {
    std::vector<uint16_t> words;
    for (int64_t w = 0; w < out / 4; ++w) {
      for (int64_t i = 0; i < in; ++i) {
        uint16_t word = 0;
        for (int64_t n = 0; n < 4; ++n)
          word |= static_cast<uint16_t>(q[static_cast<size_t>((4 * w + n) * in + i)] << (4 * n));
        words.push_back(word);
      }
    }
    std::vector<float> scaled = scales_by_group();
    for (int64_t g = 0; g < in / 128; ++g) {
      for (int64_t o = 0; o < out; ++o)
        scaled[static_cast<size_t>(g * out + o)] *= static_cast<float>(zero[static_cast<size_t>(o * (in / 128) + g)]);
    }
    b.raw(module + ".qlinear.qweight", "I16", {out / 4, in}, integer_bytes(words));
    b.raw(module + ".qlinear.scales", "F16", {in / 128, out}, f16_bytes(scales_by_group()));
    b.raw(module + ".qlinear.scaled_zeros", "F16", {in / 128, out}, f16_bytes(scaled));
    add_rotation(b, module + ".rotation.");
    b.tensors[module + ".rotation.channel_scales"].shape = {in};
  }
};

// A llama of one layer with 256 inputs; each projection can be replaced.
HfBuilder base() {
  HfBuilder b = make_llama();
  b.config["hidden_size"] = 256;
  b.config["num_hidden_layers"] = 1;
  b.config["quantization_config"] = {{"quant_method", "paroquant"}, {"bits", 4}, {"group_size", 128}, {"krot", 3}};
  b.tensors.clear();
  b.values.clear();
  b.add("model.embed_tokens.weight", {40, 256});
  b.add("model.norm.weight", {256});
  b.add("lm_head.weight", {40, 256});
  b.add("model.layers.0.input_layernorm.weight", {256});
  b.add("model.layers.0.post_attention_layernorm.weight", {256});
  b.add_attention("model.layers.0.self_attn.", 256, 48, 16, 48, 0);
  b.add_mlp("model.layers.0.mlp.", 256, 20);
  return b;
}

std::shared_ptr<const ModelFile> open(const HfBuilder& b, const TemporaryFolder& folder, bool as_converted = false) {
  b.write(folder);
  auto model = ModelFile::open(folder.path(), {as_converted});
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? *model : nullptr;
}

void expect_rows(const ModelFile& model, const std::string& name, const std::vector<float>& wanted) {
  const TensorEntry* entry = model.find(name);
  ASSERT_NE(entry, nullptr);
  std::vector<float> values(wanted.size(), 1e9f);
  ASSERT_EQ(static_cast<size_t>(entry->shape.elements()), wanted.size());
  ASSERT_TRUE(model.read_rows(*entry, 0, entry->shape.rows(), values.data()).ok());
  // fp32 rotations of values below 1: each of the 3 rounds adds at most a few units in the last place.
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(values[i], wanted[i], 2e-6) << name << " " << i;
}

std::vector<float> llama_rows(const std::vector<float>& w, int64_t rows, int64_t columns) {
  std::vector<float> result;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t source = i / 8 * 8 + i % 8 / 2 + i % 2 * 4;
    result.insert(result.end(), w.begin() + source * columns, w.begin() + (source + 1) * columns);
  }
  return result;
}

TEST(ParoQuant, BothLayoutsGiveThePlainWeights) {
  for (const bool legacy : {false, true}) {
    HfBuilder b = base();
    const Linear v(16, 256, b.random), k(16, 256, b.random);
    for (const auto& [linear, module] :
         {std::pair{&v, "model.layers.0.self_attn.v_proj"}, {&k, "model.layers.0.self_attn.k_proj"}})
      legacy ? linear->add_legacy(b, module) : linear->add(b, module);
    // Both may be there: the packed one counts.
    const TemporaryFolder folder;
    const auto model = open(b, folder);
    ASSERT_NE(model, nullptr);
    const TensorEntry* entry = model->find("blk.0.attn_v.weight");
    ASSERT_EQ(entry->dtype, DType::kParoW4);
    EXPECT_EQ(entry->shape, (Shape{256, 16}));
    expect_rows(*model, "blk.0.attn_v.weight", v.plain());
    expect_rows(*model, "blk.0.attn_k.weight", llama_rows(k.plain(), 16, 256));
    // The parts say the same as the rows, with llama's order of outputs applied.
    for (const auto& [linear, name, order] :
         {std::tuple{&v, "blk.0.attn_v.weight", false}, {&k, "blk.0.attn_k.weight", true}}) {
      const auto parts = model->paro(*model->find(name));
      ASSERT_TRUE(parts.ok()) << parts.error().message;
      EXPECT_EQ(parts->rotations, 3);
      EXPECT_EQ(parts->pairs, linear->pairs);
      EXPECT_EQ(parts->theta, linear->theta);
      EXPECT_EQ(parts->channel_scales, linear->channel);
      ParoRows rows(*parts);
      std::vector<float> row(256);
      const auto wanted = order ? llama_rows(linear->plain(), 16, 256) : linear->plain();
      for (const int64_t o : {0, 15, 7, 8}) {
        rows.read(0, o, row.data());
        for (size_t i = 0; i < 256; ++i) ASSERT_NEAR(row[i], wanted[static_cast<size_t>(o) * 256 + i], 2e-6);
      }
    }
    // A converted file holds plain F16.
    const TemporaryFolder other;
    const auto converted = open(b, other, true);
    ASSERT_NE(converted, nullptr);
    EXPECT_EQ(converted->find("blk.0.attn_v.weight")->dtype, DType::kF16);
    const auto data = converted->data(*converted->find("blk.0.attn_v.weight"));
    ASSERT_TRUE(data.ok());
    uint16_t last = 0;
    std::memcpy(&last, data->bytes.data() + data->bytes.size() - 2, 2);
    EXPECT_NEAR(tensor::f16_to_f32(last), v.plain().back(), 1e-3);
  }
}

// Experts: packed one by one, one rotation for all of a layer; V heads of the mixer reordered inside packed linears.
TEST(ParoQuant, ExpertsAndValueHeads) {
  HfBuilder b = make_qwen35(true, "model.language_model.", false);
  auto& text = b.config["text_config"];
  text["num_hidden_layers"] = 1;
  text["hidden_size"] = 128;
  text["moe_intermediate_size"] = 128;
  text["num_experts"] = 3;
  text["layer_types"] = {"linear_attention"};
  text["linear_key_head_dim"] = text["linear_value_head_dim"] = 128;
  text["linear_num_key_heads"] = 2;
  text["linear_num_value_heads"] = 4;
  b.config["quantization_config"] = {{"quant_method", "paroquant"}};
  b.tensors.clear();
  const std::string root = "model.language_model.", layer = root + "layers.0.", attn = layer + "linear_attn.";
  b.add(root + "embed_tokens.weight", {40, 128});
  b.add(root + "norm.weight", {128});
  b.add("lm_head.weight", {40, 128});
  b.add(layer + "input_layernorm.weight", {128});
  b.add(layer + "post_attention_layernorm.weight", {128});
  const Linear out(128, 512, b.random), z(512, 128, b.random);
  b.add(attn + "in_proj_qkv.weight", {1024, 128});
  z.add(b, attn + "in_proj_z");
  b.add(attn + "in_proj_a.weight", {4, 128});
  b.add(attn + "in_proj_b.weight", {4, 128});
  b.add(attn + "conv1d.weight", {1024, 1, 4});
  b.add(attn + "A_log", {4});
  b.add(attn + "dt_bias", {4});
  b.add(attn + "norm.weight", {128});
  out.add(b, attn + "out_proj");
  b.add(layer + "mlp.gate.weight", {3, 128});
  b.add_mlp(layer + "mlp.shared_expert.", 128, 12);
  b.add(layer + "mlp.shared_expert_gate.weight", {1, 128});
  const Linear rotation(128, 128, b.random), down_rotation(128, 128, b.random);
  rotation.add_rotation(b, layer + "mlp.experts.gate_up_weight_");
  down_rotation.add_rotation(b, layer + "mlp.experts.down_weight_");
  std::vector<float> up, down;
  for (int e = 0; e < 3; ++e) {
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      Linear expert(128, 128, b.random);
      const Linear& shared = std::string_view(name) == "down_proj" ? down_rotation : rotation;
      expert.theta = shared.theta;
      expert.pairs = shared.pairs;
      expert.channel = shared.channel;
      expert.add_matrix(b, fmt::format("{}mlp.experts.{}.{}.", layer, e, name));
      const auto w = expert.plain();
      if (std::string_view(name) == "up_proj") up.insert(up.end(), w.begin(), w.end());
      if (std::string_view(name) == "down_proj") down.insert(down.end(), w.begin(), w.end());
    }
  }
  const TemporaryFolder folder;
  const auto model = open(b, folder);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->find("blk.0.ffn_up_exps.weight")->shape, (Shape{128, 128, 3}));
  const auto parts = model->paro(*model->find("blk.0.ffn_up_exps.weight"));
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  EXPECT_EQ(parts->matrices.size(), 3u);
  EXPECT_TRUE(parts->matrices[2].qweight.mapped);
  expect_rows(*model, "blk.0.ffn_up_exps.weight", up);
  expect_rows(*model, "blk.0.ffn_down_exps.weight", down);
  expect_rows(*model, "blk.0.ssm_out.weight", out.plain());
  const TemporaryFolder other;
  const auto converted = open(b, other, true);
  ASSERT_NE(converted, nullptr);
  std::vector<float> gate_rows, out_columns;
  const auto head = [](int64_t h) { return h % 2 * 2 + h / 2; };
  const auto plain_z = z.plain(), plain_out = out.plain();
  for (int64_t i = 0; i < 512; ++i) {
    const int64_t source = head(i / 128) * 128 + i % 128;
    gate_rows.insert(gate_rows.end(), plain_z.begin() + source * 128, plain_z.begin() + (source + 1) * 128);
  }
  for (int64_t r = 0; r < 128; ++r) {
    for (int64_t i = 0; i < 512; ++i)
      out_columns.push_back(plain_out[static_cast<size_t>(r * 512 + head(i / 128) * 128 + i % 128)]);
  }
  expect_rows(*converted, "blk.0.attn_gate.weight", gate_rows);
  expect_rows(*converted, "blk.0.ssm_out.weight", out_columns);
}

TEST(ParoQuant, BrokenPartsAreRefused) {
  const std::string module = "model.layers.0.self_attn.v_proj";
  const auto error_of = [&](const std::function<void(HfBuilder&)>& change) {
    HfBuilder b = base();
    Linear(16, 256, b.random).add(b, module);
    change(b);
    const TemporaryFolder folder;
    b.write(folder);
    const auto model = ModelFile::open(folder.path());
    if (!model.ok()) return model.error().message;
    const auto parts = (*model)->paro(*(*model)->find("blk.0.attn_v.weight"));
    return parts.ok() ? std::string() : parts.error().message;
  };
  const auto contains = [](const std::string& text, std::string_view word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  EXPECT_EQ(error_of([](HfBuilder&) {}), "");
  contains(error_of([&](HfBuilder& b) { b.tensors.erase(module + ".theta"); }), "v_proj.theta is missing");
  contains(error_of([&](HfBuilder& b) { b.tensors[module + ".qweight"].shape = {128, 4}; }),
           "is I32 [128, 4], expected I32 [256, 2]");
  contains(error_of([&](HfBuilder& b) { b.tensors[module + ".scales"].dtype = "BF16"; }), "expected F16 [2, 16]");
  contains(error_of([&](HfBuilder& b) { b.tensors[module + ".pairs"].bytes[0] = static_cast<char>(200); }),
           "uses every channel 0 to 127 of a group once");
  contains(error_of([&](HfBuilder& b) { std::memcpy(b.tensors[module + ".theta"].bytes.data(), "\x00\x7e", 2); }),
           "element 0 is nan");
  contains(error_of([&](HfBuilder& b) { b.config["quantization_config"]["bits"] = 8; }), "bits is 8");
  contains(error_of([&](HfBuilder& b) { b.config["quantization_config"]["group_size"] = 64; }), "group_size is 64");
}

}  // namespace
}  // namespace crest::format
