#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "engine/evaluate.h"
#include "format/convert.h"
#include "tensor/half.h"
#include "testing/model_data.h"
#include "testing/temporary_folder.h"

// A hybrid model whose linears are ParoQuant: rotated, int4, value heads grouped. The same weights with the rotation
// undone and the value heads tiled, as convert writes them, must give the same logits. (Kind of fault: hipEngine's KL
// of 12 with grouped heads read as tiled; a rotation applied the wrong way round.)
namespace crest::engine {
namespace {

constexpr int64_t kGroup = 128;
constexpr int64_t kRounds = 3;

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Tensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};
using Tensors = std::map<std::string, Tensor>;

std::vector<uint16_t> halves(std::mt19937& random, int64_t count, float middle, float spread) {
  std::uniform_real_distribution<float> uniform(-spread, spread);
  std::vector<uint16_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(tensor::f32_to_f16(middle + uniform(random)));
  return values;
}

/// Random ParoQuant parts of a [out, in] linear, in place of its weight.
void add_paro(Tensors& tensors, const std::string& module, int64_t out, int64_t in, std::mt19937& random) {
  const auto words = [&](int64_t count) {
    std::vector<uint32_t> values(static_cast<size_t>(count));
    for (auto& value : values) value = static_cast<uint32_t>(random());
    return bytes_of(values);
  };
  std::vector<int16_t> pairs;
  for (int64_t g = 0; g < kRounds * in / kGroup; ++g) {
    std::vector<int16_t> channels(kGroup);
    std::iota(channels.begin(), channels.end(), int16_t{0});
    std::shuffle(channels.begin(), channels.end(), random);
    pairs.insert(pairs.end(), channels.begin(), channels.end());
  }
  // Uniform nibbles minus uniform zeros have a deviation of 6.5: this gives weights of about 1/sqrt(in).
  const float scale = 0.15f / std::sqrt(static_cast<float>(in));
  tensors[module + ".qweight"] = {"I32", {in, out / 8}, words(in * out / 8)};
  tensors[module + ".qzeros"] = {"I32", {in / kGroup, out / 8}, words(in / kGroup * out / 8)};
  tensors[module + ".scales"] = {
      "F16", {in / kGroup, out}, bytes_of(halves(random, in / kGroup * out, scale, scale / 3))};
  tensors[module + ".theta"] = {"F16", {kRounds, in / 2}, bytes_of(halves(random, kRounds * in / 2, 0, 3))};
  tensors[module + ".pairs"] = {"I16", {kRounds, in}, bytes_of(pairs)};
  tensors[module + ".channel_scales"] = {"F16", {1, in}, bytes_of(halves(random, in, 1, 0.5f))};
}

void write_safetensors(const std::filesystem::path& path, const Tensors& tensors) {
  nlohmann::json header;
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&size), sizeof size) << text << data;
}

/// Every tensor of the micro model, read back from its file.
Tensors read_tensors(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  uint64_t size = 0;
  file.read(reinterpret_cast<char*>(&size), sizeof size);
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  const auto header = nlohmann::json::parse(text);
  const std::string data((std::istreambuf_iterator<char>(file)), {});
  Tensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    const auto begin = entry["data_offsets"][0].get<size_t>(), end = entry["data_offsets"][1].get<size_t>();
    tensors[name] = {entry["dtype"], entry["shape"].get<std::vector<int64_t>>(), data.substr(begin, end - begin)};
  }
  return tensors;
}

class ParoQuantModel : public ::testing::TestWithParam<const char*> {};

TEST_P(ParoQuantModel, EqualsItsConvertedWeights) {
  const testing::TemporaryFolder temporary;
  const auto source = testing::test_data(std::string("micro/") + GetParam());
  const auto folder = temporary.path() / "paro";
  std::filesystem::create_directory(folder);
  std::filesystem::copy(source / "tokenizer.json", folder / "tokenizer.json");
  std::ifstream config_file(source / "config.json");
  auto config = nlohmann::json::parse(config_file);
  config["quantization_config"] = {{"quant_method", "paroquant"}, {"bits", 4}, {"group_size", 128}, {"krot", kRounds}};
  std::ofstream(folder / "config.json") << config.dump();

  std::mt19937 random(11);
  auto tensors = read_tensors(source / "model.safetensors");
  int packed = 0;
  Tensors replaced;
  for (const auto& [name, tensor] : tensors) {
    const bool projection =
        name.ends_with("_proj.weight") || name.ends_with("in_proj_qkv.weight") || name.ends_with("in_proj_z.weight");
    const bool small = name.find("in_proj_a") != std::string::npos || name.find("in_proj_b") != std::string::npos;
    const bool fits = tensor.shape.size() == 2 && tensor.shape[1] % kGroup == 0 && tensor.shape[0] % 8 == 0;
    if (projection && !small && fits && !name.starts_with("mtp.")) {
      add_paro(replaced, name.substr(0, name.size() - 7), tensor.shape[0], tensor.shape[1], random);
      ++packed;
    } else {
      replaced[name] = tensor;
    }
  }
  ASSERT_GE(packed, 12);
  write_safetensors(folder / "model.safetensors", replaced);

  const auto converted = temporary.path() / "converted.gguf";
  core::ThreadPool pool(2);
  const auto report = format::convert(folder, converted, {.type = "f32"}, pool);
  ASSERT_TRUE(report.ok()) << report.error().message;
  std::vector<float> logits[2];
  const auto ids = testing::OracleFolder(source / "oracle").ids("ids");
  for (const auto& path : {folder, converted}) {
    // Weights as they are in the file are multiplied in fp32; repacked int4 ones meet int8 activations.
    auto engine = Engine::load(path, {.context_length = 256, .kv_type = KvType::kF32, .keep_mapping = true});
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    EXPECT_EQ((*engine)->model().config().delta_net.tiled, path == converted);
    auto result = evaluate(**engine, ids, {});
    ASSERT_TRUE(result.ok()) << result.error().message;
    logits[path == converted] = std::move(result->logits);
  }
  const double share = testing::largest_difference(logits[0], logits[1]) / testing::standard_deviation(logits[1]);
  EXPECT_LE(share, 1e-4);
  std::printf("%s: %d ParoQuant linears, largest difference %.2g of the standard deviation\n", GetParam(), packed,
              share);
}

INSTANTIATE_TEST_SUITE_P(Models, ParoQuantModel, ::testing::Values("qwen3_5", "qwen3_5_moe"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace crest::engine
