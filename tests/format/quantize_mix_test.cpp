#include "format/quantize_mix.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

namespace crest::format {
namespace {

using tensor::DType;

struct GoldenModel {
  Metadata metadata{"golden"};
  std::vector<TensorEntry> tensors;
  std::vector<std::vector<std::string>> types;  // [tensor][mix]
};
struct Golden {
  std::vector<std::string> mixes;
  std::vector<GoldenModel> models;
};

GoldenModel parse_model(std::istream& line) {
  GoldenModel model;
  std::string arch;
  uint32_t blocks, experts, heads, kv_heads;
  line >> arch >> blocks >> experts >> heads >> kv_heads;
  model.metadata.set("general.architecture", Value::string(arch));
  model.metadata.set(arch + ".block_count", Value::u32(blocks));
  if (experts > 0) model.metadata.set(arch + ".expert_count", Value::u32(experts));
  model.metadata.set(arch + ".attention.head_count", Value::u32(heads));
  model.metadata.set(arch + ".attention.head_count_kv", Value::u32(kv_heads));
  return model;
}

void parse_tensor(const std::string& name, std::istream& line, GoldenModel& model) {
  int64_t row = 0;
  std::string type;
  TensorEntry entry;
  entry.name = name;
  line >> row >> entry.shape.rank >> type;
  entry.shape.ne[0] = row;
  for (int i = 1; i < entry.shape.rank; ++i) entry.shape.ne[static_cast<size_t>(i)] = 16;
  entry.dtype = tensor::dtype_from_name(type).value();
  model.tensors.push_back(entry);
  model.types.emplace_back();
  while (line >> type) model.types.back().push_back(type);
}

Golden read_golden() {
  Golden golden;
  std::ifstream file(std::string(CREST_TEST_DATA) + "/quantize_types.txt");
  std::string text;
  while (std::getline(file, text)) {
    if (text.starts_with("#")) continue;
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "mixes") {
      while (line >> word) golden.mixes.push_back(word);
    } else if (word == "model") {
      golden.models.push_back(parse_model(line));
    } else {
      parse_tensor(word, line, golden.models.back());
    }
  }
  return golden;
}

// Every tensor of four models (16 experts, dense, 8 experts, SmolLM2 with rows no multiple of 256) gets the type that
// llama.cpp gives it, in every mix.
TEST(QuantizeMix, SameTypesAsLlamaCpp) {
  const Golden golden = read_golden();
  ASSERT_EQ(golden.models.size(), 4u);
  ASSERT_EQ(golden.mixes.size(), quant_mixes().size() - 2);  // all but F32 and plain MXFP4, which it has not
  for (const GoldenModel& model : golden.models) {
    for (size_t m = 0; m < golden.mixes.size(); ++m) {
      const QuantMix* mix = find_quant_mix(golden.mixes[m]).value();
      const auto choices = choose_quant_types(model.metadata, model.tensors, *mix, false).value();
      for (size_t i = 0; i < choices.size(); ++i) {
        EXPECT_EQ(tensor::name(choices[i].dtype), model.types[i][m]) << model.tensors[i].name << " in " << mix->name;
      }
    }
  }
}

// Rows of 576: engines have asserted, or looked at rows * columns instead of the row's length.
TEST(QuantizeMix, RowsThatFitNoSuperBlock) {
  const Golden golden = read_golden();
  ASSERT_EQ(golden.models.size(), 4u);
  const GoldenModel& smol = golden.models[3];
  const auto choices =
      choose_quant_types(smol.metadata, smol.tensors, *find_quant_mix("q4_k_m").value(), false).value();
  std::map<std::string, int> counts;
  int fallbacks = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    fallbacks += choices[i].fell_back_from.has_value();
    if (!choices[i].quantise) continue;
    std::string name = smol.tensors[i].name;
    if (name.starts_with("blk.")) name = name.substr(name.find('.', 4) + 1);
    ++counts[name + " " + std::string(tensor::name(choices[i].dtype))];
  }
  EXPECT_EQ(fallbacks, 180);
  EXPECT_EQ(choices.size(), 272u);
  const std::map<std::string, int> expected = {{"token_embd.weight Q8_0", 1}, {"attn_q.weight Q5_0", 30},
                                               {"attn_k.weight Q5_0", 30},    {"attn_output.weight Q5_0", 30},
                                               {"attn_v.weight Q8_0", 14},    {"attn_v.weight Q5_0", 16},
                                               {"ffn_gate.weight Q5_0", 30},  {"ffn_up.weight Q5_0", 30},
                                               {"ffn_down.weight Q6_K", 14},  {"ffn_down.weight Q4_K", 16}};
  EXPECT_EQ(counts, expected);
}

TEST(QuantizeMix, KeepsWhatMustStay) {
  std::vector<TensorEntry> tensors;
  for (const auto& [name, shape] :
       std::initializer_list<std::pair<const char*, Shape>>{{"blk.0.attn_norm.weight", {256}},
                                                            {"blk.0.ffn_gate_inp.weight", {256, 16}},
                                                            {"blk.0.ssm_conv1d.weight", {4, 256}},
                                                            {"blk.0.attn_q.bias", {256}},
                                                            {"blk.0.ssm_a", {4}},
                                                            {"blk.0.attn_q_norm.weight", {256, 2}},
                                                            {"blk.0.some_table.weight", {256, 256}}}) {
    TensorEntry entry;
    entry.name = name;
    entry.shape = shape;
    tensors.push_back(entry);
  }
  tensors.back().dtype = DType::kI32;
  for (const QuantMix& mix : quant_mixes()) {
    if (mix.default_dtype == DType::kF32) continue;
    const auto choices = choose_quant_types(Metadata("x"), tensors, mix, false).value();
    for (const QuantChoice& choice : choices) EXPECT_FALSE(choice.quantise) << mix.name;
  }
}

TEST(QuantizeMix, ImportanceChangesTheRules) {
  Metadata metadata("x");
  metadata.set("general.architecture", Value::string("llama"));
  metadata.set("llama.block_count", Value::u32(16));
  TensorEntry down;
  down.name = "blk.0.ffn_down.weight";
  down.shape = {512, 256};
  const auto choose = [&](const char* mix, bool imatrix) {
    return choose_quant_types(metadata, std::span(&down, 1), *find_quant_mix(mix).value(), imatrix).value()[0].dtype;
  };
  EXPECT_EQ(choose("IQ4_XS", false), DType::kQ5_K);
  EXPECT_EQ(choose("IQ4_XS", true), DType::kIQ4_XS);
  EXPECT_EQ(choose("Q4_0", false), DType::kQ4_0);
  EXPECT_EQ(choose("Q4_0", true), DType::kQ4_1);
  EXPECT_EQ(choose("Q5_0", true), DType::kQ5_1);
}

TEST(QuantizeMix, Names) {
  EXPECT_EQ(find_quant_mix("q4_k").value()->name, "Q4_K_M");
  EXPECT_EQ(find_quant_mix("Q3_K_s").value()->name, "Q3_K_S");
  // Every type that can be written is a name, as it is printed.
  for (const char* name : {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                           "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"})
    EXPECT_TRUE(find_quant_mix(name).ok()) << name;
  const auto unknown = find_quant_mix("Q4_K_XL");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("'Q4_K_XL'"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("Q4_K_M"), std::string::npos);
}

}  // namespace
}  // namespace crest::format
