#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "format/hf_config.h"
#include "tensor/half.h"
#include "testing/temporary_folder.h"

namespace crest::format {

/// safetensors bytes from a header object and data.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  return bytes + header + data;
}

inline std::string bf16_bytes(const std::vector<float>& values) {
  std::string bytes;
  for (const float value : values) {
    const uint16_t half = tensor::f32_to_bf16(value);
    bytes.append(reinterpret_cast<const char*>(&half), sizeof half);
  }
  return bytes;
}

/// A Hugging Face folder made by a test. Values are random but kept, exact in bf16.
struct HfBuilder {
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  nlohmann::json config;
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::vector<float>> values;
  std::mt19937 random{1234};

  std::vector<float>& add(const std::string& name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float>& data = values[name];
    data.clear();
    for (int64_t i = 0; i < count; ++i) data.push_back(tensor::bf16_to_f32(tensor::f32_to_bf16(uniform(random))));
    tensors[name] = {"BF16", std::move(shape), bf16_bytes(data)};
    return data;
  }
  void raw(const std::string& name, std::string dtype, std::vector<int64_t> shape, std::string bytes) {
    tensors[name] = {std::move(dtype), std::move(shape), std::move(bytes)};
  }

  static std::string pack(const std::map<std::string, Tensor>& some, size_t misalign = 0) {
    nlohmann::json header = nlohmann::json::object();
    std::string data;
    for (const auto& [name, t] : some) {
      header[name] = {
          {"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {data.size(), data.size() + t.bytes.size()}}};
      data += t.bytes;
    }
    // Padded as writers do, so that the data lie aligned; `misalign` more to try the other case.
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8 + misalign, ' ');
    return safetensors_bytes(text, data);
  }
  void write(const crest::testing::TemporaryFolder& folder) const {
    folder.write("config.json", config.dump());
    folder.write("model.safetensors", pack(tensors));
  }
  /// As write(), in `count` files with an index.
  void write_sharded(const crest::testing::TemporaryFolder& folder, size_t count) const {
    folder.write("config.json", config.dump());
    std::vector<std::map<std::string, Tensor>> parts(count);
    nlohmann::json map;
    size_t i = 0;
    for (const auto& [name, t] : tensors) {
      const size_t part = i++ % count;
      parts[part][name] = t;
      map[name] = fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, count);
    }
    for (size_t part = 0; part < count; ++part)
      folder.write(fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, count), pack(parts[part]));
    folder.write("model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  }

  void add_attention(const std::string& prefix, int64_t hidden, int64_t q, int64_t kv, int64_t o, int64_t norm) {
    add(prefix + "q_proj.weight", {q, hidden});
    add(prefix + "k_proj.weight", {kv, hidden});
    add(prefix + "v_proj.weight", {kv, hidden});
    add(prefix + "o_proj.weight", {hidden, o});
    if (norm > 0) add(prefix + "q_norm.weight", {norm});
    if (norm > 0) add(prefix + "k_norm.weight", {norm});
  }
  void add_mlp(const std::string& prefix, int64_t hidden, int64_t inner) {
    add(prefix + "gate_proj.weight", {inner, hidden});
    add(prefix + "up_proj.weight", {inner, hidden});
    add(prefix + "down_proj.weight", {hidden, inner});
  }
};

/// Small folders of each architecture: every dimension differs, so that a mix-up shows.
HfBuilder make_llama();
HfBuilder make_qwen2();
HfBuilder make_qwen3_moe(bool fused);
HfBuilder make_qwen35(bool moe, const std::string& prefix = "model.", bool mtp = true);
HfBuilder make_gemma3(bool multimodal);

}  // namespace crest::format
